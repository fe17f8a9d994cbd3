"""Obstacles of people who typed commands."""

import sys
from pathlib import Path

import numpy as np
import pytest
from support.terminal import Terminal


def test_the_examples_are_written_without_the_extra_of_linkage(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anyascii", None)
    terminal("example", "wine")
    assert (tmp_path / "wine" / "table.csv").exists()


def test_the_examples_replace_no_file_unless_forced(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "people").mkdir()
    own = tmp_path / "people" / "truth.csv"
    own.write_text("mine")
    refusal = terminal("example", ".", expect=3).stderr
    assert "truth.csv already exists" in refusal
    assert "choose another folder" in refusal
    assert not (tmp_path / "table.csv").exists()
    assert own.read_text() == "mine"
    terminal("example", ".", "--force")
    assert own.read_text() != "mine"
    terminal("example", ".")  # the same files


@pytest.mark.parametrize("pairs", [0, 1, 2])
def test_one_pair_of_namesakes_leaves_the_best_key(
    terminal: Terminal, tmp_path: Path, pairs: int
) -> None:
    rng = np.random.default_rng(5)
    rows = [
        f"Vogt{row:03},Anna{row % 20},{1945 + row % 50}-0{1 + row % 9}-1{row % 10}"
        for row in range(400)
    ]
    rows[400 - pairs :] = rows[:pairs]
    codes = rng.permutation(np.arange(10_000, 99_999))[:400]
    lines = [
        f"{person},{code},{1000 + row}.5"
        for row, (person, code) in enumerate(zip(rows, codes, strict=True))
    ]
    path = tmp_path / "bank.csv"
    path.write_text("\n".join(["surname,given,birth,postcode,income", *lines]))
    keys = terminal.json("table", path, "--link")
    serving = [key["key"] for key in keys if key["serves"]]
    assert any("postcode" not in key for key in serving)


def test_a_median_without_bounds_is_told_what_it_needs(
    terminal: Terminal, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    lines = [
        f"C{row:02},{20 + row * 17 % 61},{'' if row % 20 == 7 else rng.integers(20, 90)}"
        for row in range(60)
    ]
    path = tmp_path / "customers.csv"
    path.write_text("\n".join(["customer,age,income", *lines]))
    dictionary = tmp_path / "dictionary.json"
    words = [path, "--id-column", "customer"]
    terminal("schema", "infer", *words, "--out", dictionary)
    words += ["--schema", dictionary, "--missing", "median"]
    said = " ".join(terminal("compare", *words, expect=5).output.split())
    assert said.count("a median needs a minimum and a maximum") == 1

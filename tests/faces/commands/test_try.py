"""`coterie try`: an ordinary table gives labels and a report without a question."""

import html
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from support.terminal import Terminal

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.terms.schema import Schema
from party_sdk.tables import ReadOptions
from party_sdk.tables.drafts import draft_options


def customers(n: int = 240) -> tuple[pd.DataFrame, np.ndarray]:
    """Return three kinds of customers: words, dates, gaps, comments, a constant."""
    rng = np.random.default_rng(4)
    kinds = rng.integers(0, 3, n)
    table = pd.DataFrame(
        {
            "customer": [f"C{n:04}" for n in rng.permutation(n)],
            "age": (30 + 20 * kinds + rng.normal(0, 2, n)).round(),
            "income": (20 + 30 * (kinds == 1) + rng.normal(0, 2, n)).round(1),
            "city": np.array(["Lille", "Lyon", "Metz"])[kinds],
            "signup": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
            "note": [f"note {n}" for n in range(n)],
            "country": 33,
        }
    )
    table.loc[::17, "income"] = np.nan
    return table, kinds


def write(table: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    elif path.suffix == ".xlsx":
        table.to_excel(path, index=False, engine="xlsxwriter")
    elif path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        pytest.importorskip("pyreadstat").write_sav(table, path)


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet", "sav"])
@pytest.mark.quick(1)
def test_any_table_gives_labels_a_report_and_the_next_step(
    terminal: Terminal, tmp_path: Path, ending: str
) -> None:
    table, kinds = customers()
    path = tmp_path / f"customers.{ending}"
    write(table, path)
    result = terminal("try", path)
    labels = pd.read_csv(tmp_path / "labels.csv").set_index("customer")["label"]
    assert adjusted_rand_score(kinds, labels.loc[table["customer"]]) > 0.95
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Lyon" in page
    schema = Schema.model_validate_json((tmp_path / "dictionary.json").read_text())
    assert schema.clustered_part.names == ("age", "income", "city")
    last = result.output.strip().splitlines()[-1]
    assert last.startswith("The same as a session: coterie session create customers")
    words = shlex.split(last.partition(": ")[2])
    assert {"--schema", "dictionary.json", "--clusters", "mean"} <= set(words)
    for name in ("signup (", "country (one value)", "note ("):
        assert f"left out: {name}" in result.output
    assert "15 empty cells" in result.output


@pytest.mark.slow
def test_without_a_file_wine_is_clustered(terminal: Terminal, tmp_path: Path) -> None:
    terminal("try")
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 179


@pytest.mark.parametrize("command", ["try", "simulate"])
@pytest.mark.parametrize("gaps", [11, 1])
def test_codes_of_missing_values_are_named_before_anything_is_clustered(
    terminal: Terminal, tmp_path: Path, command: str, gaps: int
) -> None:
    """A single 999 ends in a refusal, which no option of these commands could lift."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(14, 1.5, (60, 2)).round(1), columns=["hb", "ldl"])
    table.loc[: gaps - 1, "hb"] = 999
    write(table, tmp_path / "codes.csv")
    words = ["try", tmp_path / "codes.csv"]
    if command == "simulate":
        words = ["simulate", "llf", "--data", words[1], "--param", "n_clusters=3"]
    result = terminal(*words, expect=0 if gaps > 1 else 3)
    assert f"warning: 'hb': 999 in {gaps} row" in result.output
    for option in ("--choice", "--csv"):
        assert option not in result.output
    if command == "try":
        assert "clusters of this trial may be these codes" in result.output
    if command == "try" and gaps > 1:
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert "far from all others" in page
        assert f"'hb': 999 in {gaps} row" not in html.unescape(page)


def test_files_of_others_are_not_replaced(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("mine")
    path = tmp_path / "small.csv"
    write(customers(30)[0], path)
    assert "--force" in terminal("try", path, expect=3).output
    assert (tmp_path / "labels.csv").read_text() == "mine"
    terminal("try", path, "--out", "elsewhere")


@pytest.mark.slow
def test_a_large_table_gets_labels_for_all_rows(
    terminal: Terminal, tmp_path: Path
) -> None:
    path = tmp_path / "large.csv"
    table, kinds = customers(4_000)
    write(table, path)
    result = terminal("try", path)
    assert "tried on 3,000 rows" in result.output
    labels = pd.read_csv(tmp_path / "labels.csv")["label"]
    assert adjusted_rand_score(kinds, labels) > 0.95


def test_nothing_to_cluster_is_said_with_its_reasons(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    table = customers()[0][["customer", "note", "signup"]]
    write(table, path)
    with pytest.raises(InvalidData, match="'signup': dates"):
        draft_options(path, ReadOptions())


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"nr": range(60), "age": [40, 41, 42] * 20}, ("nr",)),
        ({"age": [40, 41, 42] * 20, "PatientID": range(60, 0, -1)}, ("PatientID",)),
        ({"age": [40, 41, 42] * 20, "sex": ["f", "m"] * 30}, ()),
        ({"age": [40, 41, 42] * 20, "id": ["a", "b"] * 30}, ()),
    ],
)
def test_the_id_column_is_found(
    tmp_path: Path, columns: dict[str, object], expected: tuple[str, ...]
) -> None:
    path = tmp_path / "table.csv"
    write(pd.DataFrame(columns), path)
    assert draft_options(path, ReadOptions()).options.id_columns == expected


def test_compare_and_simulate_draft_the_dictionary(
    terminal: Terminal, tmp_path: Path
) -> None:
    path = tmp_path / "customers.csv"
    write(customers(90)[0], path)
    words = ("simulate", "dc", "--data", path, "--param", "n_clusters=3")
    for command in (words, ("compare", path)):
        refused = terminal(*command, expect=5)
        assert "cells are empty in 'income'" in refused.output
        assert "--missing" in refused.output
    terminal(*words, "--missing", "mean")


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

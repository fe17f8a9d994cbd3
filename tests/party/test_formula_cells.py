"""Ids that a spreadsheet would work out: they stay as they are, and it is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv

from party_sdk.results.label_files import formula_cells, formula_note, write_labels

HOSTILE = ("=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(A1)", "\t=1", "\r=1")
HARMLESS = ("KV-1", "-1", "+4.5", "-1e-05", "1=1", "a@b", "", "a\n=1")


def written(path: Path, ids: tuple[str, ...], column: str = "id") -> Path:
    labels = np.full(len(ids), -1)
    more = {"membership_0": np.full(len(ids), -0.5)}
    return write_labels(path, labels, ids, (column,), more)


@pytest.mark.threat(177)
def test_what_begins_like_a_formula_is_counted_and_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "labels.csv", (*HOSTILE, *HARMLESS))
    assert formula_cells(path) == len(HOSTILE)
    whole = csv.ParseOptions(newlines_in_values=True)
    ids = csv.read_csv(path, parse_options=whole)["id"].to_pylist()
    assert tuple(ids) == (*HOSTILE, *HARMLESS)
    note = formula_note(path)
    assert str(len(HOSTILE)) in note
    assert not [text for text in HOSTILE if text in note]


def test_nothing_is_said_where_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert formula_note(written(tmp_path / "labels.csv", HARMLESS)) == ""


@pytest.mark.parametrize("ending", [".xlsx", ".parquet"])
def test_files_that_know_texts_hold_no_formula(tmp_path: Path, ending: str) -> None:
    assert formula_cells(written(tmp_path / f"labels{ending}", HOSTILE)) == 0


def test_a_column_may_have_such_a_name(tmp_path: Path) -> None:
    assert formula_cells(written(tmp_path / "labels.csv", HARMLESS, "=id")) == 1


def test_a_long_file_is_read_in_parts(tmp_path: Path) -> None:
    ids = (*(f"KV-{n:08d}" for n in range(200_000)), "=1")
    assert formula_cells(written(tmp_path / "labels.csv", ids)) == 1

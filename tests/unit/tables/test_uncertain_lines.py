"""Where stray quotation marks hide the lines of rows, no line is named or left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from clustering_protocols.terms.schema import Schema
from party_sdk.tables import ReadOptions, drafts, examine_table, read_table
from party_sdk.tables.drafts import draft_mapping
from party_sdk.tables.source import RowLocations
from party_sdk.tables.table_opening import Excerpt

SCHEMA = Schema.model_validate(
    {"fields": [{"name": "age", "type": "integer"}, {"name": "crp", "type": "number"}]}
)
IDS = ReadOptions(id_column="id")


def write(folder: Path, line: str = "", visits: str = "1 1") -> Path:
    """A table whose row on line 14 repeats that on line 13 up to its last cell."""
    rows = [f"p{i},{30 + i},4.75,1" for i in range(1, 12)]
    rows += [f"p12,50,4.75,{visit}" for visit in visits.split()]
    rows += [f"p{i},{40 + i},4.75,1" for i in range(13, 16)]
    if line:
        rows[3] = line
    path = folder / "rows.csv"
    path.write_text("\n".join(["id,age,crp,visit", *rows, ""]))
    return path


@pytest.mark.parametrize("line", ['p3,"33"a,4.75,1', 'p3,33,4.75"x,1'])
def test_a_draft_leaves_out_no_row_on_an_uncertain_line(
    tmp_path: Path, line: str
) -> None:
    assert draft_mapping(write(tmp_path), IDS, SCHEMA).copies == (14,)
    assert draft_mapping(write(tmp_path, line), IDS, SCHEMA).copies == ()


def test_rows_that_differ_in_an_unused_column_are_no_copies(tmp_path: Path) -> None:
    assert draft_mapping(write(tmp_path, visits="1 2"), IDS, SCHEMA).copies == ()


def test_copies_are_named_among_other_rows_with_the_same_id(tmp_path: Path) -> None:
    path = write(tmp_path, visits="1 2 1 2 3")
    assert draft_mapping(path, IDS, SCHEMA).copies == (15, 16)


def test_rows_with_one_id_are_counted_if_the_file_is_gone(tmp_path: Path) -> None:
    path = write(tmp_path)
    table = read_table(path, replace(IDS, schema=SCHEMA))
    path.unlink()
    assert table.describe_same_ids() == "Rows 12 and 13 have the same id."


def test_copies_are_found_one_column_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    names, n_rows = [f"c{i}" for i in range(100)], 4_000
    cells = pa.array([f"{row % 2_000:0100}" for row in range(n_rows)])
    batch = pa.record_batch([cells] * len(names), names)
    locations = RowLocations("line", lambda: np.arange(n_rows) + 2)
    found = Excerpt([batch], locations, ())
    monkeypatch.setattr(drafts, "read_excerpt", lambda *_, **__: found)
    source: Any = SimpleNamespace(names=SimpleNamespace(all=names))
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(pool)
    try:
        copies = drafts._find_copies(source, [cells])
    finally:
        pa.set_memory_pool(usual)
    assert len(copies) == 1_000
    assert pool.max_memory() < 10 * cells.nbytes


@pytest.mark.parametrize("line", ['p3,"33"a,4.75,1', 'p3,33,4.75"x,1'])
def test_problems_on_uncertain_lines_name_only_their_column(
    tmp_path: Path, line: str
) -> None:
    path = write(tmp_path, line)
    path.write_text(path.read_text() + "p16,fifty,4.75,1\n")
    report, _ = examine_table(path, ReadOptions(id_column="id", schema=SCHEMA))
    problems = [problem for problem in report.problems if problem.column == "age"]
    assert [problem.line for problem in problems] == [None]
    [cell] = [cell for cell in report.cells if cell.column == "age"]
    assert cell.to_sentence("line").startswith("age: 'fifty' (1) is not a number")
    assert "None" not in "".join(report.problem_sentences)


def test_rows_with_the_same_id_are_counted_if_lines_are_uncertain(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('id,age,note\na,30,5" tall\nb,31,\nc,37,\nb,44,\n')
    options = ReadOptions(id_column="id", columns=("age",))
    _, table = examine_table(path, options)
    assert table is not None
    assert table.describe_same_ids() == "Rows 2 and 4 have the same id."

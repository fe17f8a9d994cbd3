"""Tables that would take a machine: each is refused in a sentence, and nothing dies."""

import resource
from pathlib import Path

import pytest
from support.hostile_tables import HOSTILE, TOO_LARGE, sheet

from clustering_protocols.numerics.data_source import matrix
from party_sdk.tables import ReadOptions, examine_table, open_table
from party_sdk.tables.files import LARGE_FILE
from party_sdk.tables.unpacking import MOST_MEMORY

pytestmark = pytest.mark.usefixtures("cold_readers")

_KIBIBYTE = 1024
_OWN_GROWTH = 400 << 20


@pytest.mark.threat(163)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.quick(2)
def test_a_table_that_would_exhaust_memory_is_refused(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    HOSTILE[name](path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report, table = examine_table(path, ReadOptions(id_column="id"))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    reader = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss

    assert table is None
    [problem] = report.problems
    assert LARGE_FILE in problem.what or name not in TOO_LARGE
    assert "root" not in problem.what
    assert grown * _KIBIBYTE < _OWN_GROWTH
    assert reader * _KIBIBYTE < MOST_MEMORY


def test_a_cell_with_a_format_and_no_value_makes_no_sheet_large(tmp_path: Path) -> None:
    path = tmp_path / "rows.xlsx"
    sheet(path, "A2", "B2", said="A1:ZZ1048576")
    assert matrix(open_table(path, columns=["x"])).tolist() == [[1.0]]


@pytest.mark.slow
def test_columns_that_are_not_chosen_make_no_parquet_file_large(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    HOSTILE["rows.parquet"](path)
    report, _ = examine_table(path, ReadOptions(columns=["x"]))
    assert report.rows == 50_000_000

"""A Parquet file is read, and unpacked, with pyarrow alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

READING = """
import sys
from party_sdk.tables import open_table
rows = [row for batch in open_table(sys.argv[1]).batches() for row in batch.tolist()]
assert rows[0] == [0.0, 0.5] and len(rows) == 9, rows
"""
UNPACKING = """
import sys
from pathlib import Path
from party_sdk.tables import unpacking
file = Path(sys.argv[1])
unpacking.Question(path=file, kind="parquet").unpack(file.parent)
"""


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        (READING, {"pandas", "duckdb"}),
        (UNPACKING, {"pandas", "duckdb", "httpx", "clustering_protocols.contract"}),
    ],
)
def test_a_parquet_file_is_read_with_pyarrow_alone(
    tmp_path: Path, program: str, absent: set[str]
) -> None:
    """pyarrow imports pandas to hand out an array, where it is installed."""
    numbers = [float(row) for row in range(9)]
    table = pa.table({"x": range(9), "y": [number + 0.5 for number in numbers]})
    parquet.write_table(table, tmp_path / "table.parquet")
    program += f"assert not {absent} & set(sys.modules)"
    command = [sys.executable, "-c", program, str(tmp_path / "table.parquet")]
    subprocess.run(command, check=True)

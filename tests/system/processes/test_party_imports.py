"""What the process of a party has imported at the end of a session, by protocol."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from support.analyst_process import Analyst
from support.examples import dealt
from support.tables import write_csv

from clustering_protocols import catalogue
from tests.system.processes.test_starts import CLIENT, MATHEMATICS, OPTIONAL, packages

PARTY = CLIENT | {"duckdb", "pyarrow", "pycparser", "threadpoolctl"}
# what pyarrow and SciPy import where it is installed, which no home needs
OTHERS = OPTIONAL | {
    "charset_normalizer",
    "coverage",
    "cython_runtime",
    "dateutil",
    "pandas",
    "yaml",
}


@pytest.mark.parametrize(
    ("name", "mathematics"),
    [
        ("dc", {"scipy"}),  # normal numbers
        ("dummy", set()),
        ("fccm", {"scipy"}),
        ("llf", set()),
        ("omnifc", set()),
        ("pqmds", set()),
    ],
)
def test_a_party_imports_what_it_runs(
    analyst: Analyst, tmp_path: Path, name: str, mathematics: set[str]
) -> None:
    example = catalogue.protocol(name).reference().examples()[0]
    for slot, data in dealt(example, seed=1).data.items():
        write_csv(tmp_path / f"{slot}.csv", data)
    with analyst.coordinator(tmp_path / "coordinator") as coordinator:
        session = coordinator.create_session(
            "wards", example.params, example.layout, **example.sections
        )
        invitations = session.invite()
        risks = list(session.status().risks)
        content = json.dumps({"risks": risks, "invitations": invitations})
        (tmp_path / "session.json").write_text(content)
        program = Path(__file__).with_name("party_imports.py")
        ended = subprocess.run(
            [sys.executable, program, tmp_path],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        assert session.status().state == "completed"
    found = packages(json.loads(ended.stdout))
    assert found & MATHEMATICS == mathematics & MATHEMATICS
    assert found <= PARTY | OTHERS | mathematics


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

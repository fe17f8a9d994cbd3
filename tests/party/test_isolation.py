"""A file is read by a process that may die, lie or be left alone."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from support.analyst_process import wait_for
from support.hostile_tables import MEBIBYTE

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.data_source import matrix
from party_sdk.tables import ReadOptions, examine_table, open_table, unpacking
from party_sdk.tables.files import (
    LARGE_FILE,
    PREFIX,
    remove_abandoned_folders,
    temporary_folder,
)

pytestmark = pytest.mark.usefixtures("cold_readers")

ROWS = {"id": ["ann", "bob", "cyd"], "x": [1.5, 2.5, 4.0], "y": [2, 3, 5]}
SECRET = "PATIENT-4711"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(ROWS), path)
    return path


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


ANSWERING = """
import os, pathlib, signal, sys
folder = pathlib.Path(sys.argv[1])
(folder / "question.json").unlink()
{does}
os._exit({status})
"""
UNPACKED = '{"names": ["id", "x"], "kinds": ["words", "number"], "columns": [0, 1], "first": 1}'
COPY = """
import pyarrow as pa
ids = pa.array(["a", "b", "c"], pa.string())
{spoil}
table = pa.table({{"0": ids, "1": [1.5, 2.5, 4.0]}})
with pa.ipc.new_stream(str(folder / "rows.arrow"), table.schema) as stream:
    stream.write_table(table)
"""
SPOILED = (
    "ids = pa.Array.from_buffers(pa.string(), 3, [None, "
    "pa.array([0, 1, 1 << 28, 1 << 29], pa.int32()).buffers()[1], pa.py_buffer(b'abc')])"
)


def answering(does: str, status: int = 0) -> tuple[str, str]:
    return "-c", ANSWERING.format(does=does, status=status)


def writing(text: str) -> str:
    return f"(folder / 'answer.json').write_bytes({text.encode()!r})"


FALSE: dict[str, tuple[str, str]] = {
    "it is killed": answering("os.kill(os.getpid(), signal.SIGKILL)"),
    "it crashes": answering("os.abort()"),
    "it does not begin": ("-c", "raise SystemExit(3)"),
    "nothing": answering(""),
    "no JSON": answering(writing("{")),
    "no copy": answering(writing(UNPACKED)),
    "another copy": answering(
        writing(UNPACKED.replace('"columns": [0, 1]', '"columns": [0]'))
        + COPY.format(spoil="")
    ),
    "columns of no kind": answering(
        writing(UNPACKED.replace('"words", ', "")) + COPY.format(spoil="")
    ),
    "texts outside their file": answering(
        writing(UNPACKED) + COPY.format(spoil=SPOILED)
    ),
    "an error of no kind": answering(
        writing('{"refusal": {"problem": "?", "detail": "", "remedy": ""}}')
    ),
}


@pytest.mark.threat(164)
@pytest.mark.parametrize("name", FALSE)
def test_a_reader_that_dies_or_lies_costs_a_sentence(
    rows: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(unpacking, "READER", FALSE[name])
    report, table = examine_table(rows, ReadOptions(id_column="id"))
    assert table is None
    [problem] = report.problems
    assert "rows.parquet" in problem.what


def test_a_false_reader_that_tells_the_truth_is_believed(
    rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the others are refused for their lies."""
    true = answering(writing(UNPACKED) + COPY.format(spoil=""))
    monkeypatch.setattr(unpacking, "READER", true)
    read = open_table(rows, id_column="id")
    assert matrix(read).tolist() == [[1.5], [2.5], [4.0]]
    assert read.ids == ("a", "b", "c")


def test_a_reader_that_takes_too_long_is_ended(
    rows: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "READER", answering("import time; time.sleep(60)"))
    monkeypatch.setattr(unpacking, "MOST_SECONDS", 0.5)
    begin = time.monotonic()
    with pytest.raises(InvalidData) as raised:
        open_table(rows)
    assert time.monotonic() - begin < 30
    assert LARGE_FILE in raised.value.detail
    assert not list(temporary.iterdir())


BOUNDED = """
import resource, sys
from party_sdk.tables import ReadOptions, examine_table
from party_sdk.tables import table_opening  # nothing is loaded under the limit
# Anyone who asks has room already, whatever the machine has loaded: the reader has none.
small, large = [object() for _ in range(1 << 20)], [bytes(100_000) for _ in range(200)]
held = small[::30_000], large[-1]
del small, large
resource.setrlimit(getattr(resource, sys.argv[2]), (int(sys.argv[3]),) * 2)
[problem] = examine_table(sys.argv[1], ReadOptions(id_column="id"))[0].problems
print(problem.what)
"""


@pytest.mark.parametrize(
    ("limit", "mebibytes", "word"),
    [
        ("RLIMIT_FSIZE", 4, "disk space"),
        ("RLIMIT_DATA", 170, "memory"),
        ("RLIMIT_DATA", 8, "memory"),  # Python does not begin
    ],
)
@pytest.mark.quick(1)
def test_a_limit_that_a_reader_meets_is_named(
    tmp_path: Path, limit: str, mebibytes: int, word: str
) -> None:
    """The limits of anyone who asks count where they are lower."""
    path = tmp_path / "rows.parquet"
    n = 300_000
    cells = pa.array([f"{i:040}" for i in range(n)])
    parquet.write_table(pa.table({"id": cells, "x": np.arange(n) % 7.5}), path)
    most = str(mebibytes * MEBIBYTE)
    words = [sys.executable, "-c", BOUNDED, str(path), limit, most]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert word in said
    assert "'ulimit'" in said


def test_a_defect_is_told_by_its_place_and_not_by_a_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import sys\n"
        "from party_sdk.tables import unpacking\n"
        f"def unpack(*_): raise RuntimeError({SECRET!r})\n"
        "unpacking.Question.unpack = unpack\n"
        "unpacking.main(sys.argv[1])"
    )
    monkeypatch.setattr(unpacking, "READER", ("-c", program))
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"id": [SECRET], "x": [1.0]}), path)
    report, _ = examine_table(path, ReadOptions())
    [problem] = report.problems
    assert "RuntimeError" in problem.what
    assert SECRET not in problem.what


READING = """
import sys
from party_sdk.tables import open_table
open_table(sys.argv[1], id_column="id")
"""


@pytest.fixture
def reading(tmp_path: Path, temporary: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose reader has cells in a copy."""
    path = tmp_path / "rows.parquet"
    n = 10_000_000
    ids = pa.array(["PATIENT"] * n).dictionary_encode()
    parquet.write_table(pa.table({"id": ids, "x": np.arange(n) % 7.5}), path)
    with subprocess.Popen([sys.executable, "-c", READING, str(path)]) as process:
        wait_for(lambda: list(temporary.glob(f"{PREFIX}*/rows.arrow")))
        yield process
        process.kill()


def readers(process: subprocess.Popen[bytes]) -> list[int]:
    said = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(word) for word in said.split()]


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.threat(165)
def test_a_reader_ends_with_its_parent_and_removes_its_copies(
    reading: subprocess.Popen[bytes], temporary: Path
) -> None:
    [reader] = readers(reading)
    reading.kill()
    wait_for(lambda: not is_alive(reader))
    assert not list(temporary.iterdir())


def test_only_own_folders_are_swept(temporary: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for folder in (mine, temporary / "coterie-other", temporary / f"{PREFIX}new"):
        folder.mkdir()
    for folder in (mine, temporary / "coterie-other"):
        (folder / "lock").touch()
    (temporary / f"{PREFIX}link").symlink_to(mine)
    with temporary_folder() as held:
        remove_abandoned_folders(temporary)
        assert held.is_dir()
    assert (mine / "lock").exists(), "a link is not followed"
    names = {path.name for path in temporary.iterdir()}
    assert names == {"coterie-other", f"{PREFIX}new", f"{PREFIX}link"}

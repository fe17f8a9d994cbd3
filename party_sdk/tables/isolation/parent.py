"""Files that only a library can take apart are read in a process of their own.

Question and answer are JSON (:mod:`~party_sdk.tables.isolation.jobs`); they and cells
lie in files without a name, which both processes hold. A reader has limits of memory,
of room and of time. Whatever ends it, this process says so in a sentence and continues.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import pyarrow as pa

from clustering_protocols.common.errors import InvalidData
from party_sdk.home.disk_room import no_room, report_full_disk
from party_sdk.tables.formats.study_files import STUDIES, StudyLabels, require_reader
from party_sdk.tables.isolation.jobs import (
    Answer,
    CellsRead,
    CodebookRead,
    Examine,
    ExaminedTable,
    Job,
    ReadCells,
    ReadCodebook,
    ReadSheets,
    Refusal,
    SheetsRead,
    answer_of,
)
from party_sdk.tables.parsing.encoding import FileKind, kind_of
from party_sdk.tables.parsing.limits import (
    DISK_FULL,
    MOST_SECONDS,
    OUT_OF_MEMORY,
    OUT_OF_ROOM,
    UNPACK,
    Limits,
    is_memory_bounded,
)
from party_sdk.tables.read_options import How
from party_sdk.tables.report import CheckReport
from party_sdk.tables.scratch import Scratch, new_scratch
from party_sdk.tables.source_opening import file_of
from party_sdk.tables.spool import mapped_batches
from party_sdk.tables.table import Table

AnswerT = TypeVar("AnswerT", bound=Answer)

READER: Final = ("-P", "-m", "party_sdk.tables.isolation.child")
"""What Python is told to run: nothing of the working folder is imported."""
_MOST_ANSWERED: Final = 1 << 28
_REMEDIES: Final[dict[FileKind, str]] = {
    "excel": "Delete what stands far from the table, save the sheet as CSV",
    "parquet": "Choose fewer columns with --columns, save the table as CSV",
    "gzip": UNPACK,
}
_KEPT: Final = "What is read of the table goes there; TMPDIR names another folder."
_ELSE: Final = "Save the table as CSV"


def find_isolated_file(table: Any) -> Path | None:
    """Return the file of a table that is read in a process of its own; else None.

    Plain text is read here: its size is what the operator sees, and its reader holds a
    part of it. So are queries, and tables in memory.

    Raises InvalidData if there is no such file.
    """
    file = file_of(table)
    if file is None or kind_of(file) == "text":
        return None
    return file


def examine(file: Path, how: How, scratch: Scratch) -> tuple[CheckReport, Table | None]:
    """Return how another process reads a file, and its table unless there are problems.

    Raises CoterieError: as :func:`ask`.
    """
    answer = ask(Examine(path=file, how=how), ExaminedTable, scratch)
    try:
        report, table = answer.open_table(file, scratch)
        if table is not None and table.ids is not None:
            table.ids.arrow.validate(full=True)
    except (pa.ArrowException, ValueError):
        raise _unusable(file) from None
    return report, table


def read_cells(
    job: ReadCells, scratch: Scratch
) -> tuple[CellsRead, list[pa.RecordBatch]]:
    """Return what another process says of a file, and the cells that were asked for.

    Raises CoterieError: as :func:`ask`.
    """
    said = ask(job, CellsRead, scratch)
    try:
        batches = mapped_batches(scratch.cells)
        for batch in batches:
            batch.validate(full=True)
    except (pa.ArrowException, ValueError):
        raise _unusable(job.path) from None
    return said, batches


def codebook(file: Path) -> StudyLabels:
    """Return how a file of a study calls columns and values, as another process reads it.

    Raises CoterieError: as :func:`ask`.
    """
    with new_scratch() as scratch:
        return ask(ReadCodebook(path=file), CodebookRead, scratch).codebook


def sheet_names(file: Path) -> tuple[str, ...]:
    """Return the sheets of a file, as another process reads it; none of another kind.

    Raises CoterieError: as :func:`ask`.
    """
    if kind_of(file) != "excel":
        return ()
    with new_scratch() as scratch:
        return ask(ReadSheets(path=file), SheetsRead, scratch).names


def ask(job: Job, expected: type[AnswerT], scratch: Scratch) -> AnswerT:
    """Run a job in a process of its own, and return its answer.

    On Windows, where open files cannot be handed on as here, it runs in this process.

    Raises CoterieError: as the job does.
    Raises InvalidData if the process ends before it has answered, or takes too long or
        too much, or if this process has no memory to start it or to read its answer.
    """
    if sys.platform == "win32":
        answer: Answer = job.run(scratch)
    else:
        answer = _answer_to(job, scratch)
    if isinstance(answer, Refusal):
        raise answer.error()
    if not isinstance(answer, expected):
        raise _unusable(job.path)
    return answer


def _answer_to(job: Job, scratch: Scratch) -> Answer:
    """Return what a reader's process answers, or raise what ended it."""
    limits, kind = Limits.of(job.path, job.how.allow), kind_of(job.path)
    remedy = _REMEDIES.get(kind, _ELSE)
    if kind in STUDIES:
        require_reader()
    with _explain_memory(limits, remedy), tempfile.TemporaryFile() as talk:
        with report_full_disk(Path(tempfile.gettempdir()), _KEPT):
            talk.write(_text_of(job))
            talk.flush()
        try:
            status = _run(scratch, talk, None if limits.large else MOST_SECONDS)
        except subprocess.TimeoutExpired:
            raise limits.explain_time(remedy) from None
        if status == OUT_OF_ROOM:
            raise limits.explain_room(remedy)
        if status == DISK_FULL:
            raise no_room(Path(tempfile.gettempdir()), _KEPT)
        n_bytes = talk.seek(0, os.SEEK_END)
        if status == OUT_OF_MEMORY or status < 0:
            raise limits.explain_memory(remedy)
        if status:
            # What is loaded without memory ends with a status of its loader's: before
            # the question is read under an outer limit alone, afterwards under any.
            if not n_bytes or is_memory_bounded(large=limits.large):
                raise limits.explain_memory(remedy)
            raise InvalidData(
                f"The process that reads {job.path.name!r} did not begin (status {status}). "
                "Free memory on this machine and try again, or install Coterie anew."
            )
        talk.seek(0)
        return _answer_in(talk.read(min(n_bytes, _MOST_ANSWERED)), job.path)


@contextmanager
def _explain_memory(limits: Limits, remedy: str) -> Iterator[None]:
    """Say of this process's own allocations what is said of a reader's."""
    try:
        yield
    except MemoryError:
        raise limits.explain_memory(remedy) from None
    except OSError as error:  # a process is not started, or a file not mapped
        if error.errno != errno.ENOMEM:
            raise
        raise limits.explain_memory(remedy) from None


def _run(scratch: Scratch, talk: IO[bytes], seconds: float | None) -> int:
    """Return the status with which a reader's process ended."""
    written = (talk, scratch.numbers, scratch.cells, scratch.original)
    files = [each.fileno() for each in written]
    with subprocess.Popen(  # noqa: S603  this interpreter, and no shell
        [sys.executable, *READER, str(scratch.folder), *map(str, files)],
        stdin=subprocess.PIPE,  # nothing is written: it is open as long as this process
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # what libraries say there may hold cells
        pass_fds=files,
        env=_environment(),
    ) as process:
        try:
            return process.wait(seconds)
        finally:
            process.kill()


def _text_of(job: Job) -> bytes:
    try:
        return job.model_dump_json().encode()
    except ValueError:  # pydantic's own, for a name that is no Unicode
        raise InvalidData(
            f"{job.path.name!a} is a name that is no text: rename the file."
        ) from None


def _answer_in(text: bytes, file: Path) -> Answer:
    try:
        return answer_of(text)
    except ValueError:
        raise _unusable(file) from None


def _unusable(file: Path) -> InvalidData:
    return InvalidData(f"The process that read {file.name!r} gave no usable answer.")


def _environment() -> dict[str, str]:
    """Return the environment of a reader: without secrets, with few threads.

    Each thread of a library takes addresses, which count against the limit of memory
    whether it is used or not.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith("COTERIE_")}
    few = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "2", "MALLOC_ARENA_MAX": "2"}
    return {**own, **few}

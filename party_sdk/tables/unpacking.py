"""Unpack workbooks, statistics files and Parquet in a separate process.

A damaged or hostile file may crash the library that parses it, or make it use all
memory. Therefore a separate process parses it, with limits on memory, disk and time. It
reads its request from a private folder, and writes there the table as an Arrow stream
and an answer in JSON. Without an answer, the calling process reports why and continues.

    python -m party_sdk.tables.unpacking FOLDER
"""

from __future__ import annotations

if __name__ == "__main__":  # run the imported module, so that each class exists once
    import sys
    from importlib import import_module

    import_module("party_sdk.tables.unpacking").main(sys.argv[1])

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

import numpy as np
from pydantic import BaseModel, ConfigDict

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError, InvalidData
from clustering_protocols.common.extras import require_extra
from party_sdk.home.disk_room import disk_full_error, report_full_disk
from party_sdk.home.process_exit import error_location
from party_sdk.tables.cells import Dialect, Kind
from party_sdk.tables.files import LARGE_FILE, STATISTICS, FileKind

MOST_UNPACKED: Final = 1 << 30
"""Maximum size in bytes of an unpacked file, and of a file that a reader process writes."""
MOST_MEMORY: Final = 4 << 30
"""The maximum memory of a reader process in bytes."""
MOST_SECONDS: Final = 900.0
"""The maximum running time of a reader process in seconds."""
NUMBER_BYTES: Final = 8
TEXT_BYTES: Final = 32
"""Estimated bytes that a number and a text occupy."""
READER: Final = ("-P", "-m", "party_sdk.tables.unpacking")
"""Arguments of Python; with -P nothing is imported from the working folder."""
COPY: Final = "rows.arrow"
_QUESTION: Final = "question.json"
_ANSWER: Final = "answer.json"
_MOST_ANSWER_BYTES: Final = 1 << 28
_EXCEEDED: Final = frozenset({errno.ENOMEM, errno.EFBIG, errno.ENOSPC, errno.EDQUOT})
"""Error numbers, and exit statuses, of a reader process that exceeded a limit."""
_REMEDIES: Final[dict[FileKind, str]] = {
    "excel": "Delete the cells far from the table, save the sheet as CSV",
    "parquet": "Choose fewer columns with --columns, save the table as CSV",
}
_DISK_NOTE: Final = "Data of the table does not fit; set TMPDIR to another folder."


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Labels(_Message):
    """The column titles and value labels of a statistics file, each by column name."""

    titles: dict[str, str] = {}
    labels: dict[str, dict[float, str]] = {}


class Unpacked(_Message):
    """The reader process's answer about the copy of the rows that it has written.

    names, kinds: names of all columns of the file, and the kind of value in each.
    columns: for each column of the copy, its index among all columns.
    is_text: whether columns of texts may in fact contain numbers or dates.
    first: number of the first row.
    empty: numbers of empty rows, which are left out.
    format: the part of the file that was read, such as its sheet.
    pointed: indices of the columns whose numbers are written with a decimal point.
    mixed: indices of the columns that also held numbers written as texts.
    problems: findings that a person has to decide on, such as hidden rows.
    sheets: names of the sheets of a workbook that are not empty.
    refusal: the problem, detail and remedy of an error, none of which quotes a cell.
    """

    names: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    columns: tuple[int, ...] = ()
    is_text: bool = False
    first: int = 1
    empty: tuple[int, ...] = ()
    format: dict[str, str | int] = {}
    pointed: tuple[int, ...] = ()
    mixed: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    sheets: tuple[str, ...] = ()
    labels: Labels = Labels()
    refusal: tuple[str, str, str] | None = None


class Question(_Message):
    """The request to the reader process, which asks for one ``part`` of the file.

    columns: names of the columns to read; None for all.
    large: whether the operator has lifted the limits.
    """

    path: Path
    kind: FileKind
    part: Literal["rows", "sheets", "labels"] = "rows"
    dialect: Dialect = Dialect()
    columns: tuple[str, ...] | None = None
    large: bool = False

    def check_unpacked(self, n_bytes: int, remedy: str) -> None:
        """Raise InvalidData if a table unpacks to more than :data:`MOST_UNPACKED`.

        n_bytes: size of the whole table, or of the part unpacked so far.
        remedy: the start of the error's second sentence, which says what to do.
        """
        if self.large or n_bytes <= MOST_UNPACKED:
            return
        raise InvalidData(
            f"{self.path.name!r} takes more than {_as_size(MOST_UNPACKED)} once unpacked. "
            f"{remedy}, or read it with --allow {LARGE_FILE}."
        )

    def excess_error(self, resource: Literal["time", "memory", "disk"]) -> InvalidData:
        """Return the error for a file that exceeds the limit of a resource."""
        memory = _as_size(memory_limit(large=self.large))
        excess = {
            "time": f"more than {MOST_SECONDS / 60:.0f} minutes",
            "memory": f"more memory than allowed ({memory} or 'ulimit')",
            "disk": f"more disk space than allowed ({_as_size(MOST_UNPACKED)} or 'ulimit')",
        }[resource]
        remedy = _REMEDIES.get(self.kind, "Save the table as CSV")
        if not self.large:
            remedy = f"{remedy}, or read it with --allow {LARGE_FILE}"
        return InvalidData(f"{self.path.name!r} takes {excess} to read. {remedy}.")

    def unpack(self, folder: Path) -> Unpacked:
        """Read the requested part of the file, and copy its rows to the folder.

        Raises CoterieError if the file cannot be read.
        """
        # Imported here, because each kind of file needs a different library.
        if self.kind == "parquet":
            from party_sdk.tables.arrow_tables import unpack_parquet

            return unpack_parquet(self, folder / COPY)
        if self.kind == "excel":
            from party_sdk.tables.workbooks import read_sheet_names, unpack_sheet

            if self.part == "sheets":
                return Unpacked(sheets=read_sheet_names(self.path))
            return unpack_sheet(self.path, self.dialect, self.columns, folder / COPY)
        if self.part == "labels":
            return Unpacked(labels=read_labels(self.path))
        return unpack_statistics(self, folder / COPY)


def unpack_file(question: Question, folder: Path) -> Unpacked:
    """Unpack a file into a folder in a separate process, and return its answer.

    On Windows the file is unpacked in the current process.

    Raises CoterieError as :meth:`Question.unpack` does.
    Raises InvalidData if the process crashes or exceeds a limit, or if there is too
        little memory to start it or to read its answer.
    """
    if question.kind in STATISTICS:
        require_pyreadstat()
    if sys.platform == "win32":
        return question.unpack(folder)
    try:
        try:
            text = question.model_dump_json().encode()
        except ValueError:  # pydantic cannot encode lone surrogates
            raise InvalidData(
                f"The file name {question.path.name!a} is not valid Unicode: rename it."
            ) from None
        with report_full_disk(folder, _DISK_NOTE):
            (folder / _QUESTION).write_bytes(text)
        try:
            status = _run_reader(folder, None if question.large else MOST_SECONDS)
        except subprocess.TimeoutExpired:
            raise question.excess_error("time") from None
        _check_status(status, question, folder)
        with (folder / _ANSWER).open("rb") as file:
            answer = Unpacked.model_validate_json(file.read(_MOST_ANSWER_BYTES))
        if answer.refusal is None:
            return answer
        slug, detail, remedy = answer.refusal
        error = CoterieError.of(Problem.from_slug(slug), detail)
    except (FileNotFoundError, LookupError, ValueError):
        raise invalid_answer_error(question.path) from None
    except (MemoryError, OSError) as failed:  # on starting it or reading its answer
        if _exit_status_of(failed) != errno.ENOMEM:
            raise
        raise question.excess_error("memory") from None
    error.remedy = remedy
    raise error


def memory_limit(*, large: bool) -> int:
    """Return the memory limit of a reader process in bytes; at most half of all memory."""
    if not large or not hasattr(os, "sysconf"):
        return MOST_MEMORY
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(MOST_MEMORY, total // 2)


def _as_size(n_bytes: int) -> str:
    return f"{n_bytes >> 30} GiB"


def invalid_answer_error(path: Path) -> InvalidData:
    """Return the error to raise if the reader process gave no valid answer."""
    return InvalidData(f"The process that read {path.name!r} gave no usable answer.")


def _run_reader(folder: Path, seconds: float | None) -> int:
    # No secrets, and few threads, because their address space counts against the limit.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COTERIE_")}
    environment |= {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "2",
        "MALLOC_ARENA_MAX": "2",
        "PYDANTIC_DISABLE_PLUGINS": "__all__",  # plugins must not see cells
    }
    with subprocess.Popen(  # noqa: S603  this interpreter, and no shell
        [sys.executable, *READER, str(folder)],
        stdin=subprocess.PIPE,  # never written to; it closes when this process ends
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # error messages of libraries may quote cells
        env=environment,
    ) as process:
        try:
            return process.wait(seconds)
        finally:
            process.kill()


def _check_status(status: int, question: Question, folder: Path) -> None:
    if status == errno.EFBIG:
        raise question.excess_error("disk")
    if status in {errno.ENOSPC, errno.EDQUOT}:
        raise disk_full_error(folder, _DISK_NOTE)
    # It deletes its request on starting; a later failure is probably a lack of memory.
    failed_later = status > 0 and not (folder / _QUESTION).exists()
    if status == errno.ENOMEM or status < 0 or failed_later:
        raise question.excess_error("memory")
    if status:
        raise InvalidData(
            f"The process that reads {question.path.name!r} did not start (status {status}). "
            "Free memory on this machine, raise its 'ulimit' and try again, or reinstall "
            "Coterie."
        )


# The reader process


def main(path: str) -> NoReturn:
    """Read the request in a folder, write the answer there and exit."""
    folder = Path(path)

    def end_with_parent() -> None:
        os.read(sys.stdin.fileno(), 1)  # sys.stdin.read would keep its lock on exit
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    question = Question.model_validate_json((folder / _QUESTION).read_bytes())
    (folder / _QUESTION).unlink()
    _limit_resources(large=question.large)
    try:
        answer = _answer_question(question, folder)
        (folder / _ANSWER).write_bytes(answer.model_dump_json().encode())
    except (MemoryError, OSError) as error:
        os._exit(_exit_status_of(error) or errno.EFBIG)
    os._exit(0)  # skips the slow cleanup of the interpreter


def _answer_question(question: Question, folder: Path) -> Unpacked:
    try:
        return question.unpack(folder)
    except CoterieError as error:
        failure: CoterieError = error
    except Exception as error:  # its message may quote cells
        if _exit_status_of(error):
            raise
        failure = InvalidData(
            f"{question.path.name!r} was not read: {error_location(error)}."
        )
    return Unpacked(refusal=(failure.problem.slug, failure.detail, failure.remedy))


def _exit_status_of(error: Exception) -> int | None:
    """Return the exit status for an exceeded limit, or None for any other error."""
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    code = error.errno if isinstance(error, OSError) else None
    return code if code in _EXCEEDED else None


def _limit_resources(*, large: bool) -> None:
    """Limit the memory, file size and CPU time of this process, and disable core dumps.

    RLIMIT_AS also counts memory-mapped files, unlike RLIMIT_DATA. macOS ignores both.
    """
    import resource

    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_DATA: memory_limit(large=large)}
    if not large:
        limits[resource.RLIMIT_AS] = 2 * MOST_MEMORY
        limits[resource.RLIMIT_FSIZE] = MOST_UNPACKED
        # A sum over all threads. The waiting process usually kills this one earlier.
        limits[resource.RLIMIT_CPU] = int(4 * MOST_SECONDS)
    for resource_id, limit in limits.items():
        _, hard = resource.getrlimit(resource_id)
        soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource_id, (soft, soft))
    # If the machine still runs out of memory, the kernel kills this process first.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


_READERS: Final = {
    ".sav": "read_sav", ".zsav": "read_sav",
    ".sas7bdat": "read_sas7bdat", ".dta": "read_dta",
}  # fmt: skip
_CHUNK_ROWS: Final = 50_000


def unpack_statistics(question: Question, copy: Path) -> Unpacked:
    """Copy the rows of a statistics file; user-defined missing values become missing.

    Raises InvalidData if it is not a readable statistics file, or exceeds the limits.
    """
    from party_sdk.tables.arrow_tables import write_rows

    path = question.path
    pyreadstat, reader = _import_pyreadstat(path)
    try:
        pieces = pyreadstat.read_file_in_chunks(
            reader, str(path), chunksize=_CHUNK_ROWS, output_format="dict"
        )
        first = next(pieces, None)
        names = list(first[0]) if first else []
        if first is None or not any(len(values) for values in first[0].values()):
            raise InvalidData(f"{path.name!r} has no rows.")
        numeric = [
            index
            for index, values in enumerate(first[0].values())
            if getattr(values, "dtype", None) == np.float64
        ]
        return write_rows(
            names, _iterate_rows(chain([first], pieces), question), copy, numeric
        )
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, ValueError):
        raise InvalidData(f"{path.suffix} file {path.name!r} cannot be read.") from None


def read_labels(path: Path) -> Labels:
    """Read the column titles and value labels of a statistics file, but not its rows."""
    _, read = _import_pyreadstat(path)
    _, metadata = read(str(path), metadataonly=True, output_format="dict")
    titles = metadata.column_names_to_labels or {}
    return Labels(
        titles={name: title for name, title in titles.items() if title},
        labels={
            name: {v: text for v, text in labels.items() if isinstance(v, int | float)}
            for name, labels in (metadata.variable_value_labels or {}).items()
        },
    )


def require_pyreadstat() -> None:
    """Raise the error that says how to install pyreadstat, if it is not installed."""
    why = "SPSS, SAS and Stata files are read by pyreadstat"
    require_extra("statistics", why, "pyreadstat")


def _import_pyreadstat(path: Path) -> tuple[Any, Any]:
    require_pyreadstat()
    import pyreadstat

    return pyreadstat, getattr(pyreadstat, _READERS[path.suffix.lower()])


def _iterate_rows(
    pieces: Iterator[tuple[dict[str, Any], Any]], question: Question
) -> Iterator[Sequence[Any]]:
    n_cells = 0
    for columns, _ in pieces:
        lists = [
            values.tolist() if hasattr(values, "tolist") else list(values)
            for values in columns.values()
        ]
        n_cells += sum(map(len, lists))
        question.check_unpacked(NUMBER_BYTES * n_cells, "Save the columns you need")
        yield from zip(*lists, strict=True)

"""Read text files: detect the dialect, then let DuckDB split the lines into cells."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final, Self

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.records.arrays import IntArray
from party_sdk.home.disk_room import report_full_disk
from party_sdk.tables.cells import (
    Dialect,
    column_warnings,
    detect_dialect,
    find_forms,
    guess_kind,
    is_any_number,
    resolve_dialect,
    split_into_rows,
    split_lines,
)
from party_sdk.tables.files import CELL_LINES, MOST_CELL, rows_per_batch
from party_sdk.tables.read_options import Names
from party_sdk.tables.report import Finding
from party_sdk.tables.source import RowLocations, TableSource

_SAMPLE_BYTES: Final = 1 << 18
_LONGEST_HEAD: Final = 1 << 24
_PIECE_BYTES: Final = 1 << 20
_MEMORY_BYTES: Final = 512 << 20
_MOST_COLUMNS: Final = 20_000
_WIDE: Final = 2_000
_MOST_REJECTS: Final = 10_000
_FEED, _RETURN = b"\n\r"
_REPLACEMENT: Final = "\ufffd"
_ASCII: Final = bytes(range(128))
_UTF8_ENCODINGS: Final = frozenset({"utf-8", "utf-8-sig"})
_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_REJECT_PROBLEMS: Final = {
    "MISSING COLUMNS": "fewer cells than the {} columns",
    "TOO MANY COLUMNS": "more cells than the {} columns",
    "UNQUOTED VALUE": "an unclosed quotation mark, or one inside a cell",
    "LINE SIZE OVER MAXIMUM": "a line of more than two mebibytes",
    "INVALID ENCODING": "bytes that are not text in this encoding: save the file in one "
    "encoding, or name it with --csv encoding=…",
}
"""Our own wording of DuckDB's reasons, because its messages may quote cells."""


class TextSource(TableSource):
    """A text file with the column names in its first line and one row per line.

    dialect: the settings that the operator chose; all others are detected.
    folder: the folder for a UTF-8 copy, if DuckDB cannot read the file itself.
    allow: guards that are switched off.
    """

    def __init__(
        self,
        path: Path,
        dialect: Dialect,
        folder: Path,
        allow: Sequence[str] = (),
    ) -> None:
        head = _read_head(path)
        encoding = dialect.encoding or _find_encoding(path, head)
        text = _decode_head(path, head, encoding, is_named=dialect.encoding is not None)
        self._path, self._folder = path, folder
        self._cells_hold_lines = CELL_LINES in allow
        self._longest = max(map(len, head.splitlines()), default=0)
        self.dialect, warnings = detect_dialect(
            text, replace(dialect, encoding=encoding)
        )
        rows = split_into_rows(text, self.dialect)
        if not rows:
            raise InvalidData(f"{path.name!r} has no line with the column names.")
        line = (self.dialect.skip or 0) + 1
        if any(_REPLACEMENT in cell for cell in rows[0]) and not _is_valid(
            head, encoding
        ):
            problem = _REJECT_PROBLEMS["INVALID ENCODING"]
            raise InvalidData(f"{path.name!r}, line {line} contains {problem}.")
        numbers_read = [cell for cell in rows[0] if is_any_number(cell)]
        if not all(cell.strip().isdigit() for cell in numbers_read):
            raise InvalidData(
                f"{path.name!r}, line {line} contains numbers where the column names "
                "are expected: insert a line with the names."
            )
        if len(rows[0]) > _MOST_COLUMNS:
            raise InvalidData(
                f"{len(rows[0]):,} columns; a text file has at most {_MOST_COLUMNS:,}."
            )
        self.names = Names(rows[0])
        width = len(self.names.all)
        complete_rows = [cells for cells in rows[1:] if len(cells) == width]
        cells = [[row[position] for row in complete_rows] for position in range(width)]
        self.forms = find_forms(cells, self.dialect)
        self.dialect = resolve_dialect(self.dialect, self.forms)
        pairs = list(zip(cells, self.forms, strict=True))
        self.kinds = tuple(guess_kind(*pair) for pair in pairs)
        self._format_warnings = [
            *warnings,
            *column_warnings(self.names.all, self.kinds, cells, self.forms),
        ]
        self._utf8_path = path
        # Lines may end in different ways, or with a single carriage return.
        feeds, returns = head.count(b"\n"), head.count(b"\r")
        has_mixed_ends = returns > (crlfs := head.count(b"\r\n")) or 0 < crlfs < feeds
        is_plain = encoding in _UTF8_ENCODINGS and not has_mixed_ends
        # DuckDB would take a path with these characters for a glob pattern.
        if not is_plain or re.search(r"[*?[]", str(path.absolute())):
            self._utf8_path = folder / "decoded.csv"
            copy_as_utf8(path, encoding, self._utf8_path)
        # the first byte of each part of the file that DuckDB skipped, and the reason
        self._rejects: list[tuple[int, str]] = []
        self._n_read = 0

    @property
    def format_description(self) -> dict[str, Any]:
        """Return the settings of the dialect by name."""
        return self.dialect.describe()

    def locations(self) -> RowLocations:
        """Return the line numbers of the rows that the last pass read.

        They are certain if DuckDB, which may interpret a stray quotation mark
        differently, read as many rows as begin on these lines.
        """
        rejected, n_read = self._find_rejected_lines(), self._n_read
        has_stray_mark = any(reason == "UNQUOTED VALUE" for _, reason in self._rejects)

        def find() -> IntArray | None:
            begins = np.setdiff1d(self._find_rows()[0][1:] + 1, rejected)
            return None if has_stray_mark or len(begins) != n_read else begins

        return RowLocations("line", find, rejected)

    def _read(self, positions: Sequence[int]) -> Iterator[pa.RecordBatch]:
        path, width = self._utf8_path.absolute(), len(self.names.all)
        try:
            with open_database(path, self._folder, width) as connection:
                self._n_read = 0
                for batch in read_text(
                    connection, path, self.dialect, width, positions, self._longest
                ):
                    self._n_read += len(batch)
                    yield batch
                rejects = connection.execute(
                    "SELECT coalesce(byte_position, line_byte_position)::BIGINT - 1, "
                    "error_type::VARCHAR FROM reject_errors ORDER BY 1"
                )
                self._rejects = rejects.fetchall()
        except duckdb.OutOfMemoryException:
            raise InvalidData(f"{width:,} columns take too much memory.") from None
        except duckdb.Error as error:  # its text may quote cells
            match = re.search(r"(?:in line |[Ll]ine: )(\d+)", str(error))
            location = f", line {match[1]}" if match else ""
            raise InvalidData(
                f"{self._path.name!r} is not a readable table{location}."
            ) from None

    def findings(self) -> list[Finding]:
        """Return the lines that the last pass could not read, and ambiguous numbers."""
        reasons = dict[int, str]()
        for line, (_, code) in zip(
            self._find_rejected_lines(), self._rejects, strict=True
        ):
            reason = _REJECT_PROBLEMS.get(code, "this line cannot be read")
            reasons.setdefault(line, reason.format(len(self.names.all)))
        problems = [*reasons.items(), *self._find_swallowed_rows()]
        problems.sort(key=lambda problem: problem[0])
        findings = [Finding(what=reason, line=line) for line, reason in problems]
        return [*findings, *self._sign_findings()]

    @cached_property
    def _line_index(self) -> _LineIndex:
        pieces = _read_pieces(self._path)
        if self._utf8_path != self._path:
            encoding = self.dialect.encoding or "utf-8"
            pieces = read_as_utf8(self._path, encoding, "replace")
        return _LineIndex.scan(pieces, self.dialect)

    def _find_rows(self) -> tuple[IntArray, IntArray]:
        one_column = len(self.names.all) == 1
        skip = self.dialect.skip or 0
        return self._line_index.row_bounds(skip, one_column=one_column)

    def _find_rejected_lines(self) -> list[int]:
        if not self._rejects:
            return []
        starts = [offset for offset, _ in self._rejects]
        lines: list[int] = (1 + np.searchsorted(self._line_index.ends, starts)).tolist()
        return lines

    def _find_swallowed_rows(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the problem of each cell that seems to contain whole rows.

        Two stray quotation marks turn all lines between them into a single cell.
        """
        quote = self.dialect.quote.encode()
        if self._cells_hold_lines or not any(
            quote in piece for piece in _read_pieces(self._utf8_path)
        ):
            return
        first, last = self._find_rows()
        is_long, ends = last > first, self._line_index.ends
        with self._utf8_path.open("rb") as file:
            for begin, end in zip(first[is_long], last[is_long], strict=True):
                file.seek(ends[begin - 1] + 1 if begin else 0)
                n_rows = 0
                while file.tell() < ends[end] and n_rows < 2:
                    text = file.readline(_PIECE_BYTES).decode("utf-8", "replace")
                    n_rows += self._looks_like_row(text)
                if n_rows > 1:
                    problem = (
                        "quotation marks make one cell of the rows up to line "
                        f"{end + 1}: delete the marks, or --allow {CELL_LINES} if they "
                        "hold a text"
                    )
                    yield int(begin) + 1, problem

    def _looks_like_row(self, line: str) -> bool:
        dialect, width = self.dialect, len(self.kinds)
        cells = line.replace(dialect.quote, "").split(dialect.delimiter or ",")
        if len(cells) != width:  # a quoted cell may contain a delimiter
            cells = next(iter(split_lines([line], dialect)), [])
        return 1 < len(cells) == width and all(
            kind in {"words", "nothing"}
            or cell.strip() in dialect.codes
            or guess_kind([cell], form) != "words"
            for kind, cell, form in zip(self.kinds, cells, self.forms, strict=True)
        )


@dataclass(frozen=True, slots=True)
class _LineIndex:
    """The positions of a UTF-8 file's lines, and what is needed to find its rows.

    ends: int64 (n,); the offset in bytes of each line's end.
    n_quotes: int64 (n,); the number of quotation marks in each line.
    is_blank: bool (n,); whether the line is empty.
    """

    ends: IntArray
    n_quotes: IntArray
    is_blank: NDArray[np.bool_]

    @classmethod
    def scan(cls, pieces: Iterable[bytes], dialect: Dialect) -> Self:
        """Build the index from the content of a file, which is read in pieces."""
        quote, n_bytes, n_quotes, last = ord(dialect.quote), 0, 0, b"\n"
        ends, counts, returns = list[IntArray](), list[IntArray](), list[IntArray]()
        for piece in filter(None, pieces):
            text = np.frombuffer(piece, np.uint8)
            feeds = np.flatnonzero(text == _FEED)
            quotes = np.flatnonzero(text == quote)
            ends.append(n_bytes + feeds)
            counts.append(n_quotes + np.searchsorted(quotes, feeds))
            returns.append(np.frombuffer(last + piece, np.uint8)[feeds] == _RETURN)
            n_bytes, n_quotes = n_bytes + len(piece), n_quotes + len(quotes)
            last = piece[-1:]
        if last != b"\n":  # the last line has no line feed
            ends.append(np.array([n_bytes]))
            counts.append(np.array([n_quotes]))
            returns.append(np.array([False]))
        all_ends = np.concatenate(ends)
        lengths = np.diff(all_ends, prepend=-1) - 1 - np.concatenate(returns)
        n_in_line: Any = np.diff(np.concatenate(counts), prepend=0)
        return cls(all_ends, n_in_line, lengths == 0)

    def row_bounds(self, skip: int, *, one_column: bool) -> tuple[IntArray, IntArray]:
        """Return the first and last line of each row, including the header, from 0.

        A quoted cell may contain line breaks. Blank lines between rows are skipped,
        except in a table of one column, where they are rows with an empty cell.
        """
        n_quotes = self.n_quotes.copy()
        n_quotes[:skip] = 0
        is_open = np.cumsum(n_quotes) % 2 == 1
        begins = ~np.concatenate([[False], is_open[:-1]])
        begins[:skip] = False
        filled = np.flatnonzero(begins & ~self.is_blank)
        first = np.flatnonzero(begins) if one_column else filled
        first = first[first >= filled[0]] if len(filled) else filled
        closed = np.flatnonzero(~is_open)
        last = np.searchsorted(closed, first)
        is_closed = last < len(closed)
        return first[is_closed], closed[last[is_closed]]


# DuckDB, which can open no other file and no network connection
#
# The file's name is passed as a parameter, and columns are named by position, so nothing
# from an operator's file becomes SQL.


@contextmanager
def open_database(
    path: Path, folder: Path, n_columns: int = 0
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory database that may read one file and write into one folder.

    DuckDB buffers 2,048 rows of all columns at a time, so that thousands of columns
    need a higher memory limit.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "memory_limit": f"{max(_MEMORY_BYTES, n_columns << 17)}B",
        "temp_directory": str(folder / "spill"),
        "threads": 2 if n_columns < _WIDE else 1,
    }
    with duckdb.connect(":memory:", config=config) as connection:
        connection.execute("SET enable_progress_bar = false")
        # timestamps must not depend on the time zone of this machine
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"SET allowed_paths = [{_sql_literal(str(path))}]")
        connection.execute(f"SET allowed_directories = [{_sql_literal(f'{folder}/')}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def read_text(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    dialect: Dialect,
    width: int,
    positions: Sequence[int],
    longest: int,
) -> Iterator[pa.RecordBatch]:
    """Yield batches of a UTF-8 text file's columns in row order; empty cells are null.

    width: number of columns in the file.
    positions: indices of the columns to read.
    longest: length of the longest line in bytes.
    """
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(width))
    options = {
        "columns": f"{{{columns}}}",
        "auto_detect": "false",
        "header": "true",
        "strict_mode": "true",
        "store_rejects": "true",
        "rejects_limit": str(_MOST_REJECTS),
        "delim": _sql_literal(dialect.delimiter or ","),
        "quote": _sql_literal(dialect.quote),
        "escape": _sql_literal(dialect.quote),
        "skip": str(dialect.skip or 0),
        "nullstr": "['']",
        "max_line_size": str(max(MOST_CELL, 4 * longest)),
        "hive_partitioning": "false",
    }
    arguments = ", ".join(f"{name} = {value}" for name, value in options.items())
    selection = ", ".join(f"c{i}" for i in positions)
    query = f"SELECT {selection} FROM read_csv($path, {arguments})"  # noqa: S608  only positions
    relation = connection.sql(query, params={"path": str(path)})
    yield from relation.to_arrow_reader(rows_per_batch(len(positions)))


def _sql_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# Bytes to text


def _read_head(path: Path) -> bytes:
    with path.open("rb") as file:
        head = file.read(_SAMPLE_BYTES + 1)
        while head.count(b"\n") < 2 and len(head) < _LONGEST_HEAD:
            more = file.read(_SAMPLE_BYTES)
            head += more
            if not more:
                return head
    if len(head) <= _SAMPLE_BYTES:
        return head
    last_end = max(head.rfind(b"\n"), head.rfind(b"\r"))
    return head[: last_end + 1] if last_end > 0 else head[:_SAMPLE_BYTES]


def _decode_head(path: Path, head: bytes, encoding: str, *, is_named: bool) -> str:
    """Decode the beginning of a file, which may end within a character.

    is_named: whether the operator chose the encoding; if not, an invalid byte becomes
        a replacement character.

    Raises InvalidData if a byte is invalid in a chosen encoding.
    """
    if not is_named:
        return head.decode(encoding, errors="replace")
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError as error:
        line = 1 + head.count(b"\n", 0, error.start)
        raise InvalidData(
            f"{path.name!r} is not written in {encoding}: see line {line}."
        ) from None


def _is_valid(head: bytes, encoding: str) -> bool:
    """Return whether the beginning of a file has no invalid byte, except at its end."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _find_encoding(path: Path, head: bytes) -> str:
    """Detect the encoding of a text file.

    If the beginning of the file is UTF-8 and not plain ASCII, the whole file is assumed
    to be UTF-8, and an invalid byte is later reported with its line. If it is plain
    ASCII, the rest of the file is read as well.

    Raises InvalidData if the file is not a text.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding
    if b"\0" in head[:4096]:
        raise InvalidData(
            "The file contains NUL bytes, so it is not text. UTF-16 text without a byte "
            "order mark is read with --csv encoding=utf-16-le (or utf-16-be)."
        )
    # Text in another encoding is rarely valid UTF-8 by chance. If only some lines are
    # invalid, two files were probably joined. Read as UTF-8, the invalid lines are
    # rejected; read in their encoding, the valid lines would be garbled unnoticed.
    lines = [line for line in head.splitlines() if not line.isascii()]
    n_valid = sum(_guess_encoding([line]) == "utf-8" for line in lines)
    if 10 * n_valid > len(lines):
        return "utf-8"
    return _guess_encoding(_read_pieces(path) if head.isascii() else [head])


def _guess_encoding(pieces: Iterable[bytes]) -> str:
    """Return utf-8 if the pieces are valid, otherwise the better of cp1252 and latin-1."""
    decoder, byte_values = codecs.getincrementaldecoder("utf-8")(), set[int]()
    is_utf8 = True
    for piece in chain(pieces, [b""]):
        if piece.isascii() and is_utf8 and not decoder.getstate()[0]:
            continue
        byte_values |= set(piece.translate(None, _ASCII))
        try:
            decoder.decode(piece, final=not piece)
        except UnicodeDecodeError:
            is_utf8 = False
    if is_utf8:
        return "utf-8"
    return "latin-1" if byte_values & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "cp1252"


def _read_pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(_PIECE_BYTES), b"")


def read_as_utf8(path: Path, encoding: str, errors: str = "strict") -> Iterator[bytes]:
    """Yield the content of a text file in pieces, as UTF-8 with line feeds."""
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    lines = io.IncrementalNewlineDecoder(decoder, translate=True)
    for piece in _read_pieces(path):
        yield lines.decode(piece).encode()
    yield lines.decode(b"", final=True).encode()


def copy_as_utf8(path: Path, encoding: str, copy: Path) -> None:
    """Copy a text file as UTF-8 with line feeds.

    Raises InvalidData if a byte is invalid in the encoding.
    Raises StorageFull if the disk has no room for the copy.
    """
    advice = "A UTF-8 copy of the table does not fit; set TMPDIR to another folder."
    try:
        with report_full_disk(copy.parent, advice), copy.open("wb") as target:
            target.writelines(read_as_utf8(path, encoding))
    except UnicodeError:
        raise InvalidData(f"{path.name!r} is not written in {encoding}.") from None

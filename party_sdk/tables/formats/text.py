"""Text files: DuckDB reads what is found out here about how they are written."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from pyarrow import compute

from clustering_protocols.common.errors import InvalidData
from party_sdk.tables.columns import Column
from party_sdk.tables.names import Names
from party_sdk.tables.parsing import duck
from party_sdk.tables.parsing.cell_forms import read_date
from party_sdk.tables.parsing.column_kinds import (
    SEPARATED,
    ambiguous,
    columns_of,
    guess,
    is_number,
    tell_doubts,
)
from party_sdk.tables.parsing.dialect import Dialect, records
from party_sdk.tables.parsing.dialect_detection import detect
from party_sdk.tables.parsing.encoding import (
    FileKind,
    copy_decoded,
    encoding_of,
    has_mixed_ends,
    read_beginning,
    single_byte,
)
from party_sdk.tables.parsing.limits import UNPACK, Limits
from party_sdk.tables.parsing.row_places import FileLines, Places, RemainingRows
from party_sdk.tables.parsing.titles import below_titles
from party_sdk.tables.report import HEADER, Findings, form
from party_sdk.tables.source import Again, Batch, Cells

_PLAIN: Final = frozenset({"utf-8", "utf-8-sig"})
_PIECE: Final = 1 << 20
_MOST_PLACES: Final = 200
"""Rejected cells that are looked up in the file."""
_WHY: Final = {
    "MISSING COLUMNS": "fewer cells than the {} columns",
    "TOO MANY COLUMNS": "more cells than the {} columns",
    "UNQUOTED VALUE": "a quotation mark that does not end, or stands inside a cell",
    "LINE SIZE OVER MAXIMUM": "a line of more than two mebibytes",
    "INVALID ENCODING": "bytes that are no text in this encoding: save the file in one "
    "encoding, or say which by --csv encoding=…",
}


class TextSource:
    """A text file with one line per row, and the names of columns in the first.

    kind: {"text", "gzip"}.
    said: what the operator says; the rest is found in the file's beginning.
    folder: for a copy, where DuckDB cannot read the file itself.
    limits: what a compressed file may unpack to.
    """

    def __init__(
        self, path: Path, kind: FileKind, said: Dialect, folder: Path, limits: Limits
    ) -> None:
        head = read_beginning(path, kind)
        encoding = said.encoding or encoding_of(head)
        # a byte that does not fit says more of its line than of the encoding then
        self._is_certain = said.encoding is not None or not head.isascii()
        text = _decode_head(path, head, encoding, is_told=said.encoding is not None)
        self._kind = kind
        self._path, self._folder, self._limits = path, folder, limits
        self._longest = max(map(len, head.splitlines()), default=0)
        self.dialect = detect(text, replace(said, encoding=encoding))
        told: list[str] = []
        if said.skip is None:
            self.dialect, told = below_titles(text, self.dialect)
        rows = records(text, self.dialect)
        if not rows:
            raise InvalidData(f"{path.name!r} has no line with the names of columns.")
        _check_header(path, rows, self.dialect)
        if len(rows[0]) > duck.MOST_COLUMNS:
            raise InvalidData(
                f"{len(rows[0]):,} columns; a text file has at most {duck.MOST_COLUMNS:,}."
            )
        self.names = Names(rows[0])
        cells = columns_of(rows[1:], len(self.names.all))
        self.kinds = tuple(guess(column, self.dialect) for column in cells)
        self.warnings: Sequence[str] = [
            *told,
            *ambiguous(cells, self.dialect),
            *tell_doubts(self.names.all, self.kinds, cells, self.dialect),
        ]
        self._copy: Path | None = None
        if kind == "gzip" or encoding not in _PLAIN or has_mixed_ends(head):
            self._decode()
        self._rejects: list[duck.Reject] = []
        self._exact = False

    @property
    def places(self) -> Places:
        """Return how rows become lines of the file as the operator has it."""
        return self._lines_of_file()

    def _lines_of_file(self) -> FileLines:
        dialect = self.dialect
        one = len(self.names.all) == 1
        encoding = dialect.encoding or "utf-8"
        skip = dialect.skip or 0
        return FileLines(self._path, self._kind, encoding, dialect.quote, skip, one)

    @property
    def format_description(self) -> dict[str, Any]:
        """Return the dialect."""
        return self.dialect.describe()

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield cells, numbers and dates parsed already.

        DuckDB knows one list of codes for all columns. Where a text that is one of them
        may be meant, as an id or a level, it is asked for texts alone (``_exact``).
        """
        ids = [self.names.position(name) for name in naming]
        wanted = [self.names.position(column.name) for column in columns]
        types = ["VARCHAR"] * len(self.names.all)
        for place, column in zip(wanted, columns, strict=True):
            types[place] = "VARCHAR" if self._exact else _type_of(column)
        plan = duck.ReadPlan(
            dialect=self.dialect,
            types=types,
            wanted=[*wanted, *ids],
            codes=[""] if self._exact else sorted(_codes(columns, self.dialect)),
            longest=self._longest,
        )
        own = [i for i, c in enumerate(columns) if _may_mean(c, plan.codes)]
        n_rows = 0
        for batch in self._batches(plan):
            n_rows += len(batch)
            if self._kind == "gzip":
                self._limits.check_rows(n_rows, len(wanted), len(ids), UNPACK)
            cells, names = batch.columns[: len(wanted)], batch.columns[len(wanted) :]
            doubtful = [*names, *(cells[i] for i in own)]
            if not self._exact and any(piece.null_count for piece in doubtful):
                self._exact = True
                raise Again
            if self._exact:
                cells = [
                    _as_usual(column, piece, self.dialect)
                    for column, piece in zip(columns, cells, strict=True)
                ]
            yield Batch(cells, names)
        if not self._exact and self._has_two_orders(columns):
            self._exact = True
            raise Again

    def _has_two_orders(self, columns: Sequence[Column]) -> bool:
        """Return whether dates that DuckDB rejected by its order begin with a year."""
        if self.dialect.date_format is None:
            return False
        dates = {self.names.position(each.name) for each in columns if each.is_date}
        path = self._copy or self._path
        return any(
            read_date(_cell(path, each.at, self.dialect), ["year-first"])
            for each in self._rejects[:_MOST_PLACES]
            if each.why == "CAST" and each.column in dates
        )

    def texts(self, columns: Sequence[Column]) -> Iterator[Cells]:
        """Yield cells as the file has them: only lines of a wrong length are left out."""
        plan = duck.ReadPlan(
            dialect=self.dialect,
            types=["VARCHAR"] * len(self.names.all),
            wanted=[self.names.position(column.name) for column in columns],
            codes=[""],
            longest=self._longest,
        )
        for batch in self._batches(plan):
            yield batch.columns

    def read_places(self) -> Places | None:
        """Return where rows stand, without those that the last pass rejected."""
        if not self._rejects:
            return self.places
        if any(each.why == "UNQUOTED VALUE" for each in self._rejects):
            return None
        return self._find_remaining()

    def _find_remaining(self) -> RemainingRows:
        lines = sorted(set(self._lines([each.at for each in self._rejects])))
        places = self._lines_of_file()
        return RemainingRows(places, sorted(places.find(lines).values()))

    def normalise(self, column: Column, texts: pa.Array) -> pa.Array:
        """Return texts of numbers with a point, and of dates with the year first."""
        return _as_usual(column, texts, self.dialect)

    def _batches(self, plan: duck.ReadPlan) -> Iterator[pa.RecordBatch]:
        path = (self._copy or self._path).absolute()
        try:
            width = len(plan.types)
            with duck.open_database(path, self._folder, width) as connection:
                yield from duck.read_text(connection, path, plan)
                self._rejects = duck.read_rejects(connection)
        except duckdb.OutOfMemoryException:
            raise InvalidData(
                f"{len(self.names.all):,} columns take too much memory as text."
            ) from None
        except duckdb.Error as error:
            if self._copy is None:
                self._decode()
                raise Again from None
            raise duck.unreadable(self._path, error) from None
        if (
            self._copy is None
            and not self._is_certain
            and any(r.why == "INVALID ENCODING" for r in self._rejects)
        ):
            self._find_encoding()
            raise Again

    def tell(self, columns: Sequence[Column], findings: Findings) -> None:
        """Add the lines that DuckDB rejected, with the form of a cell that is no number."""
        path = self._copy or self._path
        kinds = {self.names.position(column.name): column for column in columns}
        shown = self._rejects[:_MOST_PLACES]
        lines = self._lines([reject.at for reject in shown])
        for line, reject in _one_each(zip(lines, shown, strict=True)):
            column = kinds.get(reject.column)
            if reject.why == "CAST" and column is not None:
                what = _no_value(
                    column, _cell(path, reject.at, self.dialect), self.dialect
                )
                findings.add(what, line, column.name, of_cell=what != HEADER)
            else:
                words = _WHY.get(reject.why, "this line cannot be read")
                findings.add(words.format(len(self.names.all)), line)
        findings.more += len(self._rejects) - len(shown)

    def _lines(self, positions: Sequence[int]) -> list[int]:
        """Return the lines on which positions in bytes lie."""
        found, line, begin = [], 1, 0
        with (self._copy or self._path).open("rb") as file:
            piece = file.read(_PIECE)
            for position in positions:
                while position >= begin + len(piece) and piece:
                    line += piece.count(b"\n")
                    begin += len(piece)
                    piece = file.read(_PIECE)
                found.append(line + piece.count(b"\n", 0, position - begin))
        return found

    def _decode(self) -> None:
        copy = self._folder / "decoded.csv"
        encoding = self.dialect.encoding or "utf-8"
        copy_decoded(self._path, self._kind, encoding, copy, self._limits)
        self._copy = copy

    def _find_encoding(self) -> None:
        """Take another encoding: bytes behind the beginning are not UTF-8."""
        with self._path.open("rb") as file:
            used = {
                byte
                for piece in iter(lambda: file.read(_PIECE), b"")
                for byte in set(piece)
            }
        self.dialect = replace(self.dialect, encoding=single_byte(bytes(used)))
        self._decode()


def _decode_head(path: Path, head: bytes, encoding: str, *, is_told: bool) -> str:
    """Return the text of a file's beginning, which may end within a character.

    Raises :class:`InvalidData` where the operator named an encoding that it is not in.
    """
    if not is_told:
        return head.decode(encoding, errors="ignore")
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError as error:
        line = 1 + head.count(b"\n", 0, error.start)
        raise InvalidData(
            f"{path.name!r} is not written in {encoding}: see line {line}."
        ) from None


def _one_each(
    found: Iterable[tuple[int, duck.Reject]],
) -> Iterator[tuple[int, duck.Reject]]:
    """Leave out a second word on one cell, or on one line of a wrong length."""
    said = set()
    for line, reject in found:
        key = (line, reject.column if reject.why == "CAST" else -1)
        if key not in said:
            said.add(key)
            yield line, reject


def _codes(columns: Sequence[Column], dialect: Dialect) -> frozenset[str]:
    """Return the texts that stand for no value in some column of numbers or dates."""
    parsed = [column.codes for column in columns if _type_of(column) != "VARCHAR"]
    return dialect.codes.union(*parsed)


def _may_mean(column: Column, codes: Sequence[str]) -> bool:
    """Return whether a code of other columns may be a word or a level of this one."""
    if _type_of(column) != "VARCHAR":
        return False
    return not column.codes or bool(set(column.spellings or ()) & set(codes))


def _as_usual(column: Column, cells: pa.Array, dialect: Dialect) -> pa.Array:
    """Return texts of numbers with a decimal point, and of dates with the year first."""
    if _type_of(column) == "VARCHAR":
        return cells
    codes = pa.array(sorted(column.codes | dialect.codes))
    clean = compute.utf8_trim_whitespace(cells)
    given = compute.if_else(compute.is_in(clean, value_set=codes), None, clean)
    if column.is_date:
        if dialect.date_format is None:
            return given
        days = compute.strptime(
            given, format=dialect.date_format, unit="s", error_is_null=True
        )
        return compute.coalesce(compute.strftime(days, format="%Y-%m-%d"), given)
    if dialect.decimal != ",":
        return given
    return compute.replace_substring(
        compute.replace_substring(given, ".", "_"), ",", "."
    )


def _type_of(column: Column) -> str:
    if column.is_numeric:
        return "DOUBLE"
    return "DATE" if column.is_date else "VARCHAR"


def _cell(path: Path, at: int, dialect: Dialect) -> str:
    """Return the cell that begins at a position, or its beginning."""
    with path.open("rb") as file:
        file.seek(at)
        text = file.read(400).decode(errors="replace")
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=dialect.delimiter or ",",
        quotechar=dialect.quote,
    )
    with suppress(csv.Error, StopIteration, IndexError):
        return next(reader)[0].rstrip(dialect.quote)
    return text


def _no_value(column: Column, cell: str, dialect: Dialect) -> str:
    """Return what a cell is not, and what may help, with its form alone."""
    if column.heads(cell):
        return HEADER
    shape = form(cell.strip())
    if column.is_date:
        if dialect.dates is None and any(c in cell for c in "/-."):
            return (
                f"{shape!r}: is the day or the month first? --csv dates=day-first says"
            )
        return f"{shape!r} is no date in the order {dialect.dates or 'year-first'}"
    other = replace(dialect, decimal="," if dialect.decimal == "." else ".")
    hint = ""
    if is_number(cell, other):
        hint = f": the decimal sign here is {dialect.decimal!r} (--csv decimal=…)"
    elif not any(character.isdigit() for character in cell):
        hint = " (if it stands for no value: --csv missing=…)"
    elif is_number(cell.replace(",", "").replace(".", ""), dialect):
        hint = f": {SEPARATED}"
    return f"{shape!r} is no number{hint}"


def _check_header(path: Path, rows: Sequence[Sequence[str]], dialect: Dialect) -> None:
    """Refuse a first line that holds values: a file without names of columns."""
    fractions = [
        cell
        for cell in rows[0]
        if is_number(cell, dialect) and not cell.strip().isdigit()
    ]
    if fractions:
        raise InvalidData(
            f"{path.name!r}, line {(dialect.skip or 0) + 1} holds numbers where the names "
            "of columns are expected: put a line with names first."
        )

"""Text files: DuckDB cuts lines into cells, once it is known how the file is written."""

from __future__ import annotations

import codecs
import gzip
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

import duckdb
import pyarrow as pa

from clustering_protocols.common.errors import InvalidData
from party_sdk.home.disk_room import no_room
from party_sdk.tables import duck
from party_sdk.tables.cells import (
    CellForm,
    Dialect,
    column_warnings,
    columns_of,
    detect,
    find_forms,
    guess,
    has_number,
    records,
    split_lines,
)
from party_sdk.tables.columns import Column
from party_sdk.tables.files import CELL_LINES, UNPACK, FileKind, Limits
from party_sdk.tables.guards import SignWatches
from party_sdk.tables.read_options import Names
from party_sdk.tables.report import Findings
from party_sdk.tables.source import (
    Batch,
    Cells,
    FileLines,
    NumberedRows,
    Places,
    RemainingRows,
    Source,
)
from party_sdk.tables.unpacking import Unpacked

_SAMPLE_BYTES: Final = 1 << 18
_LONGEST_HEAD: Final = 1 << 24
_PIECE: Final = 1 << 20
_MOST_PLACES: Final = 200
"""Rejected lines of which the line is looked up."""
_ASCII: Final = bytes(range(128))
_PLAIN: Final = frozenset({"utf-8", "utf-8-sig"})
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_REJECTED: Final = {
    "MISSING COLUMNS": "fewer cells than the {} columns",
    "TOO MANY COLUMNS": "more cells than the {} columns",
    "UNQUOTED VALUE": "a quotation mark that does not end, or stands inside a cell",
    "LINE SIZE OVER MAXIMUM": "a line of more than two mebibytes",
    "INVALID ENCODING": "bytes that are no text in this encoding: save the file in one "
    "encoding, or say which by --csv encoding=…",
}
"""What is said for each of DuckDB's reasons; its own text may hold cells."""

NOT_COPIED: Final = Unpacked()


class TextSource(Source):
    """A text file with one line per row, and the names of columns in the first.

    kind: {"text", "gzip"}.
    given: what the operator says; the rest is found in the file.
    folder: for a copy, where DuckDB cannot read the file itself.
    allow: guards that are switched off.
    copied: what another kind of file held, of which this is a copy.
    """

    def __init__(
        self,
        path: Path,
        kind: FileKind,
        given: Dialect,
        folder: Path,
        allow: Sequence[str] = (),
        copied: Unpacked = NOT_COPIED,
    ) -> None:
        head = _read_head(path, kind)
        encoding = given.encoding or _find_encoding(path, kind, head)
        text = _decode_head(path, head, encoding, is_given=given.encoding is not None)
        self._path, self._kind = path, kind
        self._folder, self._limits = folder, Limits.of(path, allow)
        self._cells_hold_lines = CELL_LINES in allow
        self._longest = max(map(len, head.splitlines()), default=0)
        self.dialect, warnings = detect(text, replace(given, encoding=encoding))
        rows = records(text, self.dialect)
        if not rows:
            raise InvalidData(f"{path.name!r} has no line with the names of columns.")
        numbers_read = [cell for cell in rows[0] if has_number(cell)]
        if not all(cell.strip().isdigit() for cell in numbers_read):
            line = (self.dialect.skip or 0) + 1
            raise InvalidData(
                f"{path.name!r}, line {line} holds numbers where the names of columns are "
                "expected: put a line with names first."
            )
        if len(rows[0]) > duck.MOST_COLUMNS:
            raise InvalidData(
                f"{len(rows[0]):,} columns; a text file has at most {duck.MOST_COLUMNS:,}."
            )
        self.names = Names(rows[0])
        cells = columns_of(rows[1:], len(self.names.all))
        numeric = {*copied.numeric} - {*copied.mixed}
        judged = [[] if i in numeric else column for i, column in enumerate(cells)]
        self.forms = [
            CellForm(codes=form.codes)
            if place in numeric
            else replace(form, has_numbers=place in copied.mixed)
            for place, form in enumerate(find_forms(judged, self.dialect))
        ]
        signs = Counter(form.decimal for form in self.forms if form.is_decided)
        dates = {form.dates for form in self.forms} - {"year-first"}
        self.dialect = replace(
            self.dialect,
            decimal=max(signs, key=lambda sign: signs[sign], default="."),
            dates=self.dialect.dates or (dates.pop() if len(dates) == 1 else None),
        )
        pairs = list(zip(cells, self.forms, strict=True))
        self.kinds = tuple(guess(*pair) for pair in pairs)
        self._warnings = [
            *warnings,
            *column_warnings(self.names.all, self.kinds, cells, self.forms),
        ]
        self._read = path
        is_plain = kind == "text" and encoding in _PLAIN and not _has_mixed_ends(head)
        if not is_plain or duck.is_pattern(path.absolute()):
            self._read = folder / "decoded.csv"
            copy_decoded(path, kind, encoding, self._read, self._limits)
        self._rejects: list[duck.Reject] = []
        self._signs = SignWatches()
        self._n_read = 0

    @property
    def warnings(self) -> Sequence[str]:
        """Return what was guessed in the file's beginning, and in the last pass."""
        return [*self._warnings, *self._signs.warnings()]

    @property
    def places(self) -> Places:
        """Return how rows become lines of the file as the operator has it."""
        return self._lines_of_file()

    def _lines_of_file(self) -> FileLines:
        said, one = self.dialect, len(self.names.all) == 1
        encoding = said.encoding or "utf-8"
        return FileLines(
            self._path, self._kind, encoding, said.quote, said.skip or 0, one
        )

    @property
    def format_description(self) -> dict[str, Any]:
        """Return the dialect."""
        return self.dialect.describe()

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield texts, as the file has them."""
        wanted = [self.names.position(column.name) for column in columns]
        ids = [self.names.position(name) for name in naming]
        self._signs = SignWatches(columns, [self.forms[place] for place in wanted])
        n_rows = 0
        for batch in self._text_batches([*wanted, *ids]):
            if self._kind == "gzip":
                self._limits.check_rows(
                    n_rows + len(batch), len(wanted), len(ids), UNPACK
                )
            cells = batch.columns[: len(wanted)]
            self._signs.see(cells, n_rows)
            yield Batch(cells, batch.columns[len(wanted) :])
            n_rows += len(batch)

    def texts(self, columns: Sequence[Column]) -> Iterator[Cells]:
        """Yield cells as the file has them: only lines of a wrong length are left out."""
        places = [self.names.position(column.name) for column in columns]
        for batch in self._text_batches(places):
            yield batch.columns

    def rejected_lines(self) -> frozenset[int]:
        """Return the lines that cannot be cut into cells."""
        for _ in self._text_batches([0]):
            pass
        return frozenset(self._lines([reject.at for reject in self._rejects]))

    def read_places(self) -> Places | None:
        """Return where rows stand, without those that the last pass rejected."""
        if not self._rejects:
            return self.places
        if any(reject.why == "UNQUOTED VALUE" for reject in self._rejects):
            return None
        return self._find_remaining()

    def _find_remaining(self) -> RemainingRows:
        lines = sorted(set(self._lines([reject.at for reject in self._rejects])))
        places = self._lines_of_file()
        return RemainingRows(places, sorted(places.find(lines).values()))

    def _text_batches(self, places: Sequence[int]) -> Iterator[pa.RecordBatch]:
        path, width = self._read.absolute(), len(self.names.all)
        try:
            with duck.open_database(path, self._folder, width) as connection:
                self._n_read = 0
                for batch in duck.read_text(
                    connection, path, self.dialect, width, places, self._longest
                ):
                    self._n_read += len(batch)
                    yield batch
                self._rejects = duck.read_rejects(connection)
        except duckdb.OutOfMemoryException:
            raise InvalidData(f"{width:,} columns take too much memory.") from None
        except duckdb.Error as error:
            raise duck.unreadable(self._path, error) from None

    def tell(self, findings: Findings) -> None:
        """Add what the last pass did not read: lines that DuckDB rejected, and signs."""
        shown, told = self._rejects[:_MOST_PLACES], dict[int, str]()
        lines = self._lines([reject.at for reject in shown])
        for line, reject in zip(lines, shown, strict=True):
            what = _REJECTED.get(reject.why, "this line cannot be read")
            told.setdefault(line, what.format(len(self.names.all)))
        found = [*told.items(), *self._swallowed_rows()]
        for line, what in sorted(found, key=lambda each: each[0]):
            findings.add(what, line)
        findings.more += max(0, len(self._rejects) - _MOST_PLACES)
        if (places := self.read_places()) is not None:
            self._signs.tell(findings, places)

    def _swallowed_rows(self) -> Iterator[tuple[int, str]]:
        """Yield the lines of cells that hold lines which are rows by themselves."""
        if self._cells_hold_lines or self._has_a_row_a_line():
            return
        for first, last in self._lines_of_file().swallowing(self._is_row):
            yield (
                first,
                (
                    f"quotation marks make one cell of the rows up to line {last}: delete the "
                    f"marks, or --allow {CELL_LINES} if they hold a text"
                ),
            )

    def _has_a_row_a_line(self) -> bool:
        """Return whether no cell of the last pass can hold the end of a line."""
        with self._read.open("rb") as file:
            pieces = iter(lambda: file.read(_PIECE), b"")
            quote = self.dialect.quote.encode()
            if not any(quote in piece for piece in pieces):
                return True
            file.seek(0)
            n_ends = sum(
                piece.count(b"\n") for piece in iter(lambda: file.read(_PIECE), b"")
            )
        n_rows = self._n_read + len(self._rejects)
        return n_ends <= (self.dialect.skip or 0) + 1 + n_rows

    def _is_row(self, line: str) -> bool:
        """Return whether a line has the usual cells: as many, and of the same kinds."""
        dialect, width = self.dialect, len(self.kinds)
        cells = line.replace(dialect.quote, "").split(dialect.delimiter or ",")
        if len(cells) != width:  # perhaps marks of its own hold a delimiter
            cells = next(iter(split_lines([line], dialect)), [])
        return 1 < len(cells) == width and all(
            kind in {"words", "nothing"}
            or cell.strip() in dialect.codes
            or guess([cell], form) != "words"
            for kind, cell, form in zip(self.kinds, cells, self.forms, strict=True)
        )

    def _lines(self, positions: Sequence[int]) -> list[int]:
        """Return the lines on which positions in bytes lie; these are ascending."""
        found, line, begin = [], 1, 0
        with self._read.open("rb") as file:
            piece = file.read(_PIECE)
            for position in positions:
                while position >= begin + len(piece) and piece:
                    line += piece.count(b"\n")
                    begin += len(piece)
                    piece = file.read(_PIECE)
                found.append(line + piece.count(b"\n", 0, position - begin))
        return found


class CopiedSource(TextSource):
    """Rows of another kind of file, which were written as text.

    copy: one line per row, in UTF-8 and commas, with the names of columns in the first.
    unpacked: what was said of the file beside the copy.
    allow: guards that are switched off.
    """

    def __init__(
        self,
        copy: Path,
        given: Dialect,
        unpacked: Unpacked,
        allow: Sequence[str] = (),
    ) -> None:
        dialect = Dialect(
            encoding="utf-8",
            delimiter=",",
            decimal=given.decimal,
            skip=0,
            dates=given.dates,
            missing=given.missing,
        )
        super().__init__(copy, "text", dialect, copy.parent, allow, unpacked)
        self._warnings += unpacked.warnings
        self._rows = NumberedRows(unpacked.first, unpacked.empty)
        self._unpacked = unpacked

    @property
    def places(self) -> Places:
        """Return the rows' numbers."""
        return self._rows

    @property
    def format_description(self) -> dict[str, Any]:
        """Return what was chosen in the file, and how its texts are written."""
        dialect = self.dialect
        decimal = {"decimal": dialect.decimal} if dialect.decimal != "." else {}
        dates = {"dates": dialect.dates} if dialect.dates else {}
        return self._unpacked.format | decimal | dates

    def tell(self, findings: Findings) -> None:
        """Add what the copy does not show, too."""
        for problem in self._unpacked.problems:
            findings.add(problem)
        super().tell(findings)

    def _lines(self, positions: Sequence[int]) -> list[int]:
        return self._rows.of([line - 2 for line in super()._lines(positions)])

    def _find_remaining(self) -> RemainingRows:
        lines = super()._lines([reject.at for reject in self._rejects])
        return RemainingRows(self._rows, sorted({line - 2 for line in lines}))


# Bytes to text


def _open_bytes(path: Path, kind: FileKind) -> IO[bytes]:
    """Open a text file, compressed or not."""
    try:
        return gzip.open(path) if kind == "gzip" else path.open("rb")  # type: ignore[return-value]  # a GzipFile reads bytes
    except OSError:
        raise InvalidData(f"{path.name!r} may not be read here.") from None


def _read_head(path: Path, kind: FileKind) -> bytes:
    """Return the beginning of a text file: some whole lines."""
    try:
        with _open_bytes(path, kind) as file:
            head = file.read(_SAMPLE_BYTES + 1)
            while head.count(b"\n") < 2 and len(head) < _LONGEST_HEAD:
                more = file.read(_SAMPLE_BYTES)
                head += more
                if not more:
                    return head
    except (OSError, EOFError):
        raise InvalidData(f"{path.name!r} is no readable gzip file.") from None
    if len(head) <= _SAMPLE_BYTES:
        return head
    whole = max(head.rfind(b"\n"), head.rfind(b"\r"))
    return head[: whole + 1] if whole > 0 else head[:_SAMPLE_BYTES]


def _decode_head(path: Path, head: bytes, encoding: str, *, is_given: bool) -> str:
    """Return the text of a file's beginning, which may end within a character.

    Raises InvalidData where the operator named an encoding that it is not in.
    """
    if not is_given:
        return head.decode(encoding, errors="ignore")
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError as error:
        line = 1 + head.count(b"\n", 0, error.start)
        raise InvalidData(
            f"{path.name!r} is not written in {encoding}: see line {line}."
        ) from None


def _find_encoding(path: Path, kind: FileKind, head: bytes) -> str:
    """Return in which encoding a text is written.

    A beginning in UTF-8 with other letters than ASCII is believed: a byte that does not
    fit says more of its line then. After a beginning in ASCII alone, all bytes count.

    Raises InvalidData if it is no text.
    """
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    if b"\0" in head[:4096]:
        return _wide(head[:4096])
    if not (_is_utf8(head) or _is_mixed(head)):
        return _single_byte(set(head))
    if kind == "gzip" or not head.isascii():
        return "utf-8"
    decoder, used = codecs.getincrementaldecoder("utf-8")(), set[int]()
    is_utf8 = True
    with _open_bytes(path, kind) as file:
        while piece := file.read(_PIECE):
            if piece.isascii() and is_utf8 and not decoder.getstate()[0]:
                continue
            used |= set(piece.translate(None, _ASCII))
            try:
                decoder.decode(piece)
            except UnicodeDecodeError:
                is_utf8 = False
    return "utf-8" if is_utf8 else _single_byte(used)


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _is_mixed(head: bytes) -> bool:
    """Return whether only some lines are no UTF-8: two files that were put together.

    Letters of other encodings are UTF-8 by a rare chance. As UTF-8 the other lines are
    refused; in their own encoding these would hold wrong letters.
    """
    lines = [line for line in head.splitlines() if not line.isascii()]
    return 10 * sum(map(_is_utf8, lines)) > len(lines)


def _single_byte(used: set[int]) -> str:
    """Return the encoding of a text in which each byte is a character."""
    return "latin-1" if used & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "cp1252"


def _wide(head: bytes) -> str:
    """Return UTF-16 without its mark, where every second byte is mostly NUL."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if odd > 0.4 * len(head) / 2 and even < odd / 4:
        return "utf-16-le"
    if even > 0.4 * len(head) / 2 and odd < even / 4:
        return "utf-16-be"
    raise InvalidData("The file holds NUL bytes: it is no readable text.")


def _has_mixed_ends(head: bytes) -> bool:
    """Return whether lines end in several ways, or with a carriage return alone."""
    feeds, returns, both = head.count(b"\n"), head.count(b"\r"), head.count(b"\r\n")
    return returns > both or 0 < both < feeds


def copy_decoded(
    path: Path, kind: FileKind, encoding: str, copy: Path, limits: Limits
) -> None:
    """Write a text as UTF-8, lines ending with a line feed alone.

    Raises InvalidData if a byte is none of the encoding, or a compressed file holds
        more than it may.
    Raises StorageFull if there is no room for the copy.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    lines = io.IncrementalNewlineDecoder(decoder, translate=True)
    try:
        with _open_bytes(path, kind) as source, copy.open("wb") as target:
            n_bytes = 0
            while piece := source.read(_PIECE):
                n_bytes += len(piece)
                if kind == "gzip":
                    limits.check_unpacked(n_bytes, f"{path.name!r} holds", UNPACK)
                target.write(lines.decode(piece).encode())
            target.write(lines.decode(b"", final=True).encode())
    except UnicodeError:
        raise InvalidData(f"{path.name!r} is not written in {encoding}.") from None
    except EOFError:
        raise InvalidData(f"{path.name!r} ends in the middle.") from None
    except OSError as error:
        if error.errno is None or isinstance(error, gzip.BadGzipFile):
            raise InvalidData(f"{path.name!r} is no readable gzip file.") from None
        raise no_room(
            copy.parent,
            "A copy of the table in UTF-8 goes there; TMPDIR names another folder.",
        ) from None

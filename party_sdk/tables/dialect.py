"""How a text file is written: found in its beginning, shown, and frozen by the operator."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, Self

from clustering_protocols.errors import InvalidParameters

MISSING: Final = (
    "", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "NULL", "null", "None",
)  # fmt: skip
"""Cells that stand for no value, in text files where no dictionary says others."""

_DELIMITERS: Final = {
    "comma": ",",
    "semicolon": ";",
    "tab": "\t",
    "\\t": "\t",
    "pipe": "|",
}
_DATE_ORDERS: Final = ("year-first", "day-first", "month-first")
_POINT: Final = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?")
_COMMA: Final = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_SHORT_DATE: Final = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a text file is written; what is None is found in the file.

    Attributes
    ----------
    encoding : str
        A name that Python knows, for example utf-8, cp1252 or utf-16.
    delimiter, quote, decimal : str
        One character each.
    skip : int
        Lines before the one with the names of columns.
    dates : str
        ``year-first``, ``day-first`` or ``month-first``.
    between : str
        What stands between the parts of a date that does not begin with the year.
    missing : sequence of str
        Cells that stand for no value, beside the empty one, NA, NaN and null.
    sheet : str
        Of a file with several sheets.
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str = '"'
    decimal: str | None = None
    skip: int | None = None
    dates: str | None = None
    between: str = "."
    missing: tuple[str, ...] = ()
    sheet: str | None = None

    @classmethod
    def parse(cls, given: Iterable[str]) -> Self:
        """Return what texts such as ``delimiter=;`` and ``decimal=,`` say.

        Raises
        ------
        InvalidParameters
            If a name is not known, or a value cannot be.
        """
        said: dict[str, Any] = {}
        for text in given:
            name, found, value = text.partition("=")
            if not found or name not in {each.name for each in fields(cls)}:
                known = ", ".join(each.name for each in fields(cls))
                raise InvalidParameters(f"--csv takes NAME=VALUE; names are {known}.")
            if name == "missing":
                said["missing"] = (*said.get("missing", ()), value)
            else:
                said[name] = _read(name, value)
        return cls(**said)

    def shown(self) -> dict[str, Any]:
        """Return what was found or said, for people."""
        told = {
            name: value for name, value in asdict(self).items() if value is not None
        }
        told.pop("between")
        return {name: value for name, value in told.items() if value not in (0, ())}

    def words(self) -> Iterator[str]:
        """Yield texts that :meth:`parse` reads as this dialect."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "missing":
                yield from (f"missing={code}" for code in value)
            elif value != each.default:
                yield f"{each.name}={value}"

    @property
    def codes(self) -> frozenset[str]:
        """Return the cells that stand for no value."""
        return frozenset({*MISSING, *self.missing})

    @property
    def date_format(self) -> str | None:
        """Return how dates are written, for strptime; None of dates by ISO 8601."""
        if self.dates in {None, "year-first"}:
            return None
        order = ("%d", "%m") if self.dates == "day-first" else ("%m", "%d")
        return self.between.join([*order, "%Y"])


def _read(name: str, value: str) -> Any:
    try:
        if name == "encoding":
            return "".encode(value) or value
    except (LookupError, ValueError):
        raise InvalidParameters(f"--csv {name}: that cannot be.") from None
    if name == "skip":
        if not value.isdecimal():
            raise InvalidParameters("--csv skip is a number of lines.")
        return int(value)
    value = _DELIMITERS.get(value, value) if name == "delimiter" else value
    if name in {"delimiter", "quote", "between"} and len(value) != 1:
        raise InvalidParameters(f"--csv {name} is one character.")
    if name == "decimal" and value not in {".", ","}:
        raise InvalidParameters("--csv decimal is . or ,")
    if name == "dates" and value not in _DATE_ORDERS:
        raise InvalidParameters(f"--csv dates is {', '.join(_DATE_ORDERS)}.")
    return value


def detect(text: str, said: Dialect) -> Dialect:
    """Return how a text is written, by its beginning; what is said stays.

    Parameters
    ----------
    text : str
        Whole lines from the beginning of a file.
    """
    lines = [line.rstrip("\n") for line in lines_of(text)]
    skip = _lines_before(lines) if said.skip is None else said.skip
    delimiter = said.delimiter or _told(lines) or _delimiter(lines[skip:], said.quote)
    found = replace(said, skip=skip, delimiter=delimiter)
    if said.decimal is None:
        found = replace(found, decimal=_decimal(records(text, found)))
    return _with_dates(found, records(text, found))


def records(text: str, dialect: Dialect) -> list[list[str]]:
    """Return the cells of a text's lines, the names of columns first."""
    lines = lines_of(text)[dialect.skip or 0 :]
    reader = csv.reader(
        lines, delimiter=dialect.delimiter or ",", quotechar=dialect.quote
    )
    return [cells for cells in whole_rows(reader) if cells]


def whole_rows(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield rows up to a huge field: the reader of the whole file names its line."""
    with suppress(csv.Error):
        yield from rows


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, whichever way they end."""
    return list(io.StringIO(text, newline=None))


def _told(lines: Sequence[str]) -> str | None:
    """Return the delimiter that a first line 'sep=;' names, as Excel writes it."""
    first = lines[0] if lines else ""
    return first[4] if len(first) == 5 and first.startswith("sep=") else None


def _lines_before(lines: Sequence[str]) -> int:
    if _told(lines):
        return 1
    for number, line in enumerate(lines):
        if line and not line.startswith("#"):
            return number
    return 0


def _delimiter(lines: Sequence[str], quote: str) -> str:
    """Return the delimiter that cuts most lines into the same number of cells."""
    scores = {}
    for delimiter in (",", ";", "\t", "|"):
        reader = csv.reader(lines[:200], delimiter=delimiter, quotechar=quote)
        try:
            widths = [len(cells) for cells in reader if cells]
        except csv.Error:
            continue
        if not widths:
            continue
        usual, count = Counter(widths).most_common(1)[0]  # a title may be the first
        if usual < 2:
            continue
        alike = count / len(widths)
        scores[delimiter] = (alike >= 0.5, alike > 0.9, usual)
    return max(scores, key=lambda d: scores[d], default=",")


def _decimal(rows: Sequence[Sequence[str]]) -> str:
    """Return which sign more numbers with a fraction have."""
    counted: Counter[str] = Counter()
    for cells in rows[1:]:
        for cell in cells:
            counted["."] += _POINT.fullmatch(cell.strip()) is not None
            counted[","] += _COMMA.fullmatch(cell.strip()) is not None
    return "," if counted[","] > counted["."] else "."


def _with_dates(said: Dialect, rows: Sequence[Sequence[str]]) -> Dialect:
    """Say in which order dates are written, where the beginning of the file shows it.

    1.2.2026 is the first of February wherever points are used; of 1/2/2026 nobody knows.
    """
    dates = [
        found
        for cells in rows[1:]
        for cell in cells
        if (found := _SHORT_DATE.fullmatch(cell.strip()))
    ]
    if not dates:
        return said
    between = dates[0][2]
    order = said.dates
    if order is None and between == ".":
        order = "day-first"
    if order is None:
        day_first = any(int(found[1]) > 12 for found in dates)
        month_first = any(int(found[3]) > 12 for found in dates)
        if day_first != month_first:
            order = "day-first" if day_first else "month-first"
    return replace(said, dates=order, between=between)


def from_mapping(given: Mapping[str, str] | Iterable[str] | Dialect | None) -> Dialect:
    """Return a dialect from what a caller names it by."""
    if given is None or isinstance(given, Dialect):
        return given or Dialect()
    if isinstance(given, Mapping):
        given = [f"{name}={value}" for name, value in given.items()]
    return Dialect.parse(given)

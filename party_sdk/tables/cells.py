"""How texts of a table are written: in files, in columns, in cells; what they are."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import date, datetime, timedelta
from functools import cache
from itertools import islice
from statistics import median
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from clustering_protocols.common.errors import InvalidParameters
from party_sdk.tables.report import form

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
_CHOICES: Final = {
    "dates": ("year-first", "day-first", "month-first"),
    "hidden": ("read", "leave-out"),
    "percent": ("shown", "stored"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a text file is written; what is None is found in the file.

    encoding: a name that Python knows, for example utf-8, cp1252 or utf-16.
    delimiter, quote, decimal: one character each.
    skip: lines before the one with the names of columns.
    dates: ``year-first``, ``day-first`` or ``month-first``.
    missing: cells that stand for no value, beside the empty one, NA, NaN and null.
    sheet: of a file with several sheets.
    hidden: of a sheet: rows and columns that nobody sees: ``read`` or ``leave-out``.
    percent: of a sheet: 7.2 % beside plain numbers is 7.2 (``shown``) or 0.072
        (``stored``).
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str = '"'
    decimal: str | None = None
    skip: int | None = None
    dates: str | None = None
    missing: tuple[str, ...] = ()
    sheet: str | None = None
    hidden: str | None = None
    percent: str | None = None

    @classmethod
    def parse(cls, given: Iterable[str]) -> Self:
        """Return what texts such as ``delimiter=;`` and ``decimal=,`` say.

        Raises InvalidParameters if a name is not known, or a value cannot be.
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

    def describe(self) -> dict[str, Any]:
        """Return what was found or said, for people."""
        told = {
            name: value for name, value in asdict(self).items() if value is not None
        }
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
    if name in {"delimiter", "quote"} and len(value) != 1:
        raise InvalidParameters(f"--csv {name} is one character.")
    if name == "decimal" and value not in {".", ","}:
        raise InvalidParameters("--csv decimal is . or ,")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise InvalidParameters(f"--csv {name} is {', '.join(_CHOICES[name])}.")
    return value


def from_mapping(given: Mapping[str, str] | Iterable[str] | Dialect | None) -> Dialect:
    """Return a dialect from what a caller names it by."""
    if given is None or isinstance(given, Dialect):
        return given or Dialect()
    if isinstance(given, Mapping):
        given = [f"{name}={value}" for name, value in given.items()]
    return Dialect.parse(given)


Kind: TypeAlias = Literal["number", "integer", "boolean", "date", "words", "nothing"]

_INTEGER: Final = re.compile(r"[+-]?\d+")
_NUMBERS: Final = {
    sign: re.compile(rf"[+-]?(?:\d+(?:{sign}\d*)?|{sign}\d+)(?:[eE][+-]?\d+)?")
    for sign in (r"\.", ",", "[.,]")
}
_IN_THOUSANDS: Final = re.compile(
    r"[+-]?\d{1,3}([.,' \u00a0\u202f])\d{3}(\1\d{3})*([.,]\d+)?"
)
SEPARATED: Final = "thousands are written without separators"
_CODE: Final = re.compile(r"0\d+")
_BEGINS: Final = re.compile(r"[+-]?\d")
_INFINITE: Final = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_DATE: Final = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d*)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}([./-])\d{1,2}\1\d{2,4}"
)
BOOLEANS: Final = {
    "true": 1.0, "false": 0.0, "t": 1.0, "f": 0.0,
    "wahr": 1.0, "falsch": 0.0, "vrai": 1.0, "faux": 0.0,
}  # fmt: skip
"""Spellings that are yes or no in any column."""
_SPACES: Final = " \u00a0\u2009\u202f"
_SIGNS: Final = {" ": f"[{_SPACES}]", "'": "['\u2019]", ".": r"\.", ",": ","}
_OTHER: Final = {".": ",", ",": "."}
_LIMIT: Final = re.compile(r"([<>\u2264\u2265]=?)\s*(\S.*)")
_YEAR_FIRST: Final = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})(?:[ T].*)?")
_SHORT_DATE: Final = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ T].*)?")
_SERIAL: Final = re.compile(r"(\d{1,7})(?:[.,]\d+)?")
SHORT_YEAR: Final = re.compile(r"0{0,2}\d{1,2}([./-])\d{1,2}\1\d{1,2}")
_EXCEL_BEGINS: Final = date(1899, 12, 30)
_EXCEL_LEAPS: Final = 61
"""Days before are counted wrongly: Excel has a 29 February 1900."""


def guess(cells: Iterable[str], dialect: CellForm | Dialect) -> Kind:
    """Return the kind of most cells: single ones that differ are for the operator."""
    values = [cell.strip() for cell in cells]
    codes = dialect.codes
    given = [value for value in values if value not in codes]
    if not given:
        return "nothing"
    if all(value.lower() in BOOLEANS for value in given):
        return "boolean"
    number = _NUMBERS["[.,]"]  # another sign than the column's is for the operator, too
    numbers = [
        value
        for value in given
        if number.fullmatch(value) or _INFINITE.fullmatch(value) or read_minus(value)
    ]
    if 2 * len(numbers) > len(given) or (numbers and len(given) < 3):
        whole = all(_INTEGER.fullmatch(value) for value in numbers)
        return "integer" if whole else "number"
    if 2 * sum(map(is_date, given)) > len(given):
        return "date"
    return "words"


def column_warnings(
    names: Sequence[str],
    kinds: Sequence[Kind],
    cells: Sequence[Sequence[str]],
    forms: Sequence[CellForm],
) -> Iterator[str]:
    """Yield what an operator should know of words that look like numbers, and of codes."""
    for name, kind, column, dialect in zip(names, kinds, cells, forms, strict=True):
        if kind == "integer" and any(_CODE.fullmatch(cell.strip()) for cell in column):
            yield f"{name!r}: numbers that begin with 0, perhaps codes: read as numbers."
        if kind != "words":
            continue
        values = [value for c in column if (value := c.strip()) not in dialect.codes]
        begun = [value for value in values if _BEGINS.match(value)]
        if values and all(
            is_number(value, dialect) or _IN_THOUSANDS.fullmatch(value)
            for value in values
        ):
            yield f"{name!r}: {SEPARATED}; a mapping reads them (thousands = …)."
        elif 2 * len(begun) > len(values):
            what = "is neither a number nor a date such as 2026-01-31"
            yield f"{name!r}: {form(begun[0])!r} {what}."


def number_of(text: str) -> float | None:
    """Return the number that a text with a decimal point is; None if it is none."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def is_date(cell: str) -> bool:
    """Return whether a cell looks like a date."""
    return _DATE.fullmatch(cell.strip()) is not None


def is_number(cell: str, dialect: CellForm | Dialect) -> bool:
    """Return whether a cell is a number as the dialect writes it."""
    sign = "," if dialect.decimal == "," else r"\."
    return _NUMBERS[sign].fullmatch(cell.strip()) is not None


# What a column's separators and orders of dates are


THOUSANDS_LIKE: Final = (
    "[-+(\u2010-\u2015\u2212]?\\s*[1-9]\\d{0,2}[.,]\\d{3}\\s*[-)\u2212]?"
)
"""A number with two readings: 9.370 is 9370, or 9.37."""
DECIDING: Final = (
    r"[+-]?(?:\d{4,}[.,]\d*|0\d*[.,]\d*|\d*[.,](?:\d{0,2}|\d{4,})|[.,]\d*"
    r"|\d+[.,]\d*[eE][+-]?\d+)"
)
"""A number with a sign by which no sign of its column parts thousands."""
WHOLE: Final = r"[+-]?\d{4,}"
"""A whole number by which none does, unless it is the code of no value."""
_DECIDING: Final = re.compile(DECIDING)
_THOUSANDS: Final = re.compile(
    r"[+-]?\d{1,3}(?:([.,])\d{3})(?:\1\d{3}|(?!\1)[.,]\d)+\d*"
)


@dataclass(frozen=True, slots=True)
class CellForm:
    """How the texts of a column are written; by default as any program reads them.

    decimal: the decimal sign.
    dates: the order of dates; None where nothing says whether the day or month is first.
    codes: texts that stand for no value.
    is_decided: whether the operator or a cell of the column says what its signs are.
    is_shown: whether other columns do, which agree.
    has_numbers: whether numbers were written beside texts that are numbers.
    """

    decimal: str = "."
    dates: str | None = "year-first"
    codes: frozenset[str] = frozenset(MISSING)
    is_decided: bool = True
    is_shown: bool = True
    has_numbers: bool = False


def find_forms(columns: Sequence[Sequence[str]], given: Dialect) -> list[CellForm]:
    """Return how each column writes numbers and dates, as far as cells decide it.

    A column that shows no decimal sign has that of the others, if they agree. The same
    holds for the order of dates with one separator.

    given: what the operator says, which stays.
    """
    signs = [_count_signs(cells) for cells in columns]
    every = {sign for own in signs for sign in own}
    is_shown = len(every) == 1
    common = every.pop() if is_shown else "."
    orders = [_find_orders(cells) for cells in columns]
    return [
        CellForm(
            decimal=given.decimal or max(own, key=lambda s: own[s], default=common),
            dates=given.dates or _decide_order(own_orders, orders),
            codes=given.codes,
            is_decided=bool(given.decimal or own),
            is_shown=is_shown,
        )
        for own, own_orders in zip(signs, orders, strict=True)
    ]


def settle(dialect: Dialect, forms: Sequence[CellForm]) -> Dialect:
    """Return a dialect with the signs that most columns have, and their order of dates."""
    signs = Counter(form.decimal for form in forms if form.is_decided)
    dates = {form.dates for form in forms} - {"year-first"}
    return replace(
        dialect,
        decimal=max(signs, key=lambda sign: signs[sign], default="."),
        dates=dialect.dates or (dates.pop() if len(dates) == 1 else None),
    )


def describe_readings(number: str) -> str:
    """Return both readings of a number such as 9.370, and what in a mapping decides."""
    sign = "." if "." in number else ","
    return (
        f"{number!r} is {number.replace(sign, '')} or {number.replace(sign, '.')}, and no "
        f'cell of the column decides: thousands = "{sign}" or decimal = "{sign}" in a mapping'
    )


def _count_signs(cells: Iterable[str]) -> Counter[str]:
    """Return how many cells have which decimal sign, where they have no other reading."""
    counts: Counter[str] = Counter()
    for cell in map(str.strip, cells):
        if match := _THOUSANDS.fullmatch(cell):
            counts[_OTHER[match[1]]] += 1
        elif _DECIDING.fullmatch(cell):
            counts.update(sign for sign in ".," if sign in cell)
    return counts


def _find_orders(cells: Iterable[str]) -> dict[str, set[str]]:
    """Return by the separator of dates such as 1/2/2026 which orders its dates show.

    1.2.2026 is the first of February wherever points are used; of 1/2/2026 nobody knows.
    """
    found: dict[str, set[str]] = {}
    for cell in cells:
        if match := _SHORT_DATE.fullmatch(cell.strip()):
            shown = found.setdefault(match[2], set())
            if match[2] == "." or int(match[1]) > 12:
                shown.add("day-first")
            elif int(match[3]) > 12:
                shown.add("month-first")
    return found


def _decide_order(
    own: Mapping[str, set[str]], every: Sequence[Mapping[str, set[str]]]
) -> str | None:
    """Return the one order of a column's dates; None where nothing says it."""
    if not own:
        return "year-first"
    orders: set[str] = set()
    for separator, shown in own.items():
        others = set().union(*(each.get(separator, ()) for each in every))
        orders |= shown or others or {""}
    return orders.pop() or None if len(orders) == 1 else None


# Forms that a mapping reads


class LimitCell(NamedTuple):
    """A value of which only a limit is known.

    is_below: whether the value lies below it, and not above.
    limit: the limit as it is written.
    """

    is_below: bool
    limit: str


_OTHER_MINUS: Final = re.compile(
    r"(?:[\u2010-\u2015\u2212\u207b\ufe63\uff0d]\s*|-\s+)(?P<behind>[\d.,][^-()]*)"
    r"|(?P<before>[\d.,][^-()]*?)\s*[-\u2010-\u2015\u2212\u207b\ufe63\uff0d]"
    r"|\(\s*[-\u2212]?\s*(?P<within>[\d.,][^-()]*?)\s*\)"
)


def read_minus(text: str) -> str | None:
    """Return a number whose minus is written otherwise with '-' in front; None of others.

    The sign is another one, stands behind the number, or is a pair of brackets.
    """
    found = _OTHER_MINUS.fullmatch(text.strip())
    if found is None or not reads_as_number(number := found[found.lastgroup or 0]):
        return None
    return f"-{number}"


def reads_as_number(text: str) -> bool:
    """Return whether a text is a number without its minus, by some of the known signs."""
    return any(read_number(text, None, sign) is not None for sign in _SIGNS)


def split_limit(text: str) -> LimitCell | None:
    """Return what a cell such as ``<0.1`` says; None of any other."""
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        return None
    return LimitCell(found[1][0] in "<\u2264", found[2].strip())


def read_number(text: str, decimal: str | None, thousands: str | None) -> str | None:
    """Return a number with a point and without separators; None if it is written else.

    decimal: by default what ``thousands`` leaves; a point or a comma beside blanks.
    """
    found = _number_form(decimal, thousands).fullmatch(text.strip())
    if found is None:
        return None
    sign, whole, fraction, power = found.groups()
    digits = re.sub(r"\D", "", whole)
    return f"{sign}{digits}{f'.{fraction}' if fraction else ''}{power or ''}"


@cache
def _number_form(decimal: str | None, thousands: str | None) -> re.Pattern[str]:
    point = "[.,]"
    if decimal is not None:
        point = _SIGNS[decimal]
    elif thousands in _OTHER:
        point = _SIGNS[_OTHER[thousands]]
    whole = r"\d+"
    if thousands is not None:
        whole = rf"\d{{1,3}}(?:{_SIGNS[thousands]}\d{{3}})+|\d+"
    return re.compile(rf"([+-]?)({whole})(?:{point}(\d*))?([eE][+-]?\d+)?")


def read_date(text: str, orders: Sequence[str]) -> str | None:
    """Return a date with the year first; None if it is written in no such order."""
    clean = text.strip()
    for order in orders:
        found = _in_order(clean, order)
        if found is not None:
            return found
    return None


def _in_order(text: str, order: str) -> str | None:
    if order == "excel":
        serial = _SERIAL.fullmatch(text)
        days = 0 if serial is None else int(serial[1])
        if days < _EXCEL_LEAPS or days > 2_958_465:  # 9999-12-31
            return None
        return (_EXCEL_BEGINS + timedelta(days=days)).isoformat()
    found = (_YEAR_FIRST if order == "year-first" else _SHORT_DATE).fullmatch(text)
    if found is None:
        return None
    if order == "year-first":
        year, month, day = found[1], found[3], found[4]
    else:
        year = found[4]
        day, month = (found[1], found[3])[:: 1 if order == "day-first" else -1]
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


HEAD_ROWS: Final = 200
"""Rows that are looked at."""
_MOST_TITLES: Final = 30
_DECIMALS: Final = (Dialect(decimal="."), Dialect(decimal=","))


def detect(text: str, given: Dialect) -> tuple[Dialect, list[str]]:
    """Return how a text is written, and sentences on rows that were read as titles.

    text: whole lines from the beginning of a file.
    given: what the operator says, which stays.
    """
    lines = [line.rstrip("\n") for line in _lines(text)]
    skip = _lines_before(lines) if given.skip is None else given.skip
    delimiter = given.delimiter or _sep_line(lines)
    delimiter = delimiter or _find_delimiter(lines[skip:], given.quote)
    dialect = replace(given, skip=skip, delimiter=delimiter)
    if given.skip is not None:
        return dialect, []
    head = list(islice(_records(text, dialect), HEAD_ROWS))
    n = count_titles([cells for _, cells in head])
    if not n:
        return dialect, []
    skip += head[n - 1][0]
    return replace(dialect, skip=skip), [title_warning(skip, "line")]


def records(text: str, dialect: Dialect) -> list[list[str]]:
    """Return the cells of a text's lines, the names of columns first."""
    return [cells for _, cells in _records(text, dialect) if cells]


def _records(text: str, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield cells with the number of lines up to their end.

    They end before a huge field: the reader of the whole file names its line.
    """
    reader = split_lines(_lines(text)[dialect.skip or 0 :], dialect)
    with suppress(csv.Error):
        for cells in reader:
            yield reader.line_num, cells


def split_lines(lines: Iterable[str], dialect: Dialect) -> Any:
    """Return a reader of lines as cells; its ``line_num`` counts them."""
    delimiter = dialect.delimiter or ","
    return csv.reader(lines, delimiter=delimiter, quotechar=dialect.quote)


def _lines(text: str) -> list[str]:
    """Return the lines of a text, whichever way they end."""
    return list(io.StringIO(text, newline=None))


def _sep_line(lines: Sequence[str]) -> str | None:
    """Return the delimiter that a first line 'sep=;' names, as Excel writes it."""
    first = lines[0] if lines else ""
    return first[4] if len(first) == 5 and first.startswith("sep=") else None


def _lines_before(lines: Sequence[str]) -> int:
    if _sep_line(lines):
        return 1
    for number, line in enumerate(lines):
        if line and not line.startswith("#"):
            return number
    return 0


def _find_delimiter(lines: Sequence[str], quote: str) -> str:
    """Return the delimiter that cuts most lines into the same number of cells.

    It cuts the line of names so too: a decimal comma cuts rows of numbers as evenly
    as the semicolon between them.
    """
    scores = {}
    for delimiter in (",", ";", "\t", "|"):
        reader = csv.reader(lines[:HEAD_ROWS], delimiter=delimiter, quotechar=quote)
        try:
            rows = [cells for cells in reader if cells]
        except csv.Error:
            continue
        if not rows:
            continue
        usual, count = Counter(map(len, rows)).most_common(1)[0]
        if usual < 2:
            continue
        alike = count / len(rows)
        n_titles = count_titles(rows)
        unnamed = abs(usual - len(rows[n_titles]))
        scores[delimiter] = (alike >= 0.5, -unnamed, -n_titles, alike > 0.9, usual)
    return max(scores, key=lambda d: scores[d], default=",")


# Rows above the names of columns: titles of extracts, dates, and who made them


def count_titles(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows stand above the one with the names of columns.

    A title fills at most half as many cells as the rows usually do. The names are the
    first row that fills more, and none of them is a number or a date; if one is, nothing
    is a title.

    rows: from the beginning of a table; an empty text is no cell.
    """
    filled = [sum(bool(cell.strip()) for cell in cells) for cells in rows[:HEAD_ROWS]]
    usual = median([count for count in filled if count] or [0])
    for place, count in enumerate(filled[: _MOST_TITLES + 1]):
        if 2 * count > usual:
            has_value = any(is_date(cell) or has_number(cell) for cell in rows[place])
            return 0 if has_value else place
    return 0


def title_warning(n: int, word: str) -> str:
    """Return the sentence on lines or rows that were read as titles."""
    which = (
        f"{word.capitalize()} 1 is" if n == 1 else f"{word.capitalize()}s 1 to {n} are"
    )
    return (
        f"{which} read as a title: the names of columns stand in {word} {n + 1} "
        f"(--csv skip={n})."
    )


def has_number(cell: str) -> bool:
    """Return whether a cell is a number, with either decimal sign and any minus."""
    return any(is_number(cell, sign) for sign in _DECIMALS) or bool(read_minus(cell))


def as_text(value: Any) -> str:
    """Return a value as a text file has it: without loss, on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return (
            str(int(value))
            if value.is_integer() and abs(value) < 2**53
            else repr(value)
        )
    if isinstance(value, datetime) and not (value.hour or value.minute or value.second):
        value = value.date()
    if isinstance(value, date):
        return value.isoformat()
    return " ".join(str(value).splitlines())

"""Formats of cells: dialects of text files, and number and date formats of columns."""

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
from party_sdk.tables.report import mask_text

MISSING: Final = (
    "", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "NULL", "null", "None",
)  # fmt: skip
"""Cells that mean a missing value in any text file; a dictionary may name more."""

_DELIMITERS: Final = {
    "comma": ",",
    "semicolon": ";",
    "tab": "\t",
    "\\t": "\t",
    "pipe": "|",
}
_SETTINGS: Final = {
    "delimiter": (".", "one character"),
    "quote": (".", "one character"),
    "decimal": ("[.,]", ". or ,"),
    "skip": (r"\d+", "a number of lines"),
    "dates": ("(year|day|month)-first", "year-first, day-first or month-first"),
    "hidden": ("read|leave-out", "read or leave-out"),
    "percent": ("shown|stored", "shown or stored"),
}
"""For each setting, a pattern of its values and their description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The dialect of a text file or sheet. A setting of None is detected from the file.

    encoding: a name that Python knows, for example utf-8, cp1252 or utf-16.
    delimiter, quote, decimal: one character each.
    skip: number of lines before the column names.
    dates: ``year-first``, ``day-first`` or ``month-first``.
    missing: further codes for missing values, besides empty cells, NA, NaN and null.
    sheet: the name of the sheet to read, if the file has several.
    hidden: the treatment of hidden rows and columns: ``read`` or ``leave-out``.
    percent: how to read a cell shown as 7.2 % in a column of a sheet that also contains
        plain numbers: as 7.2 (``shown``) or as 0.072 (``stored``).
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
    def parse(cls, texts: Iterable[str]) -> Self:
        """Parse settings such as ``delimiter=;`` and ``decimal=,``.

        Raises InvalidParameters if a setting is unknown or its value is invalid.
        """
        values: dict[str, Any] = {}
        for text in texts:
            name, equals, value = text.partition("=")
            names = [field.name for field in fields(cls)]
            if not equals or name not in names:
                raise InvalidParameters(
                    f"--csv takes NAME=VALUE; names are {', '.join(names)}."
                )
            if name == "missing":
                values["missing"] = (*values.get("missing", ()), value)
            else:
                values[name] = _parse_setting(name, value)
        return cls(**values)

    def describe(self) -> dict[str, Any]:
        """Return the settings that are neither None, zero nor empty."""
        parts = asdict(self).items()
        return {name: value for name, value in parts if value not in (None, 0, ())}

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that differ from their defaults."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {n: v for n, v in values.items() if v != getattr(Dialect(), n)}

    @property
    def codes(self) -> frozenset[str]:
        """All texts that mean a missing value in this dialect."""
        return frozenset({*MISSING, *self.missing})


def _parse_setting(name: str, value: str) -> Any:
    try:
        if name == "encoding":
            return "".encode(value) or value
    except (LookupError, ValueError):
        raise InvalidParameters(f"--csv {name}: no such encoding is known.") from None
    value = _DELIMITERS.get(value, value) if name == "delimiter" else value
    pattern, description = _SETTINGS.get(name, (".*", ""))
    if not re.fullmatch(pattern, value, re.DOTALL):
        raise InvalidParameters(f"--csv {name} must be {description}")
    return int(value) if name == "skip" else value


def dialect_from(spec: Mapping[str, str] | Iterable[str] | Dialect | None) -> Dialect:
    """Return a dialect from a mapping of settings, or from texts such as ``decimal=,``."""
    if spec is None or isinstance(spec, Dialect):
        return spec or Dialect()
    if isinstance(spec, Mapping):
        spec = [f"{name}={value}" for name, value in spec.items()]
    return Dialect.parse(spec)


Kind: TypeAlias = Literal["number", "integer", "boolean", "date", "words", "nothing"]

_INTEGER: Final = re.compile(r"[+-]?\d+")
_NUMBERS: Final = {
    signs: re.compile(rf"[+-]?(?:\d+(?:[{signs}]\d*)?|[{signs}]\d+)(?:[eE][+-]?\d+)?")
    for signs in (".", ",", ".,")
}
_IN_THOUSANDS: Final = re.compile(
    r"[+-]?\d{1,3}([.,' \u00a0\u202f])\d{3}(\1\d{3})*([.,]\d+)?"
)
SEPARATOR_REMEDY: Final = "write thousands without separators"
_LEADING_ZERO: Final = re.compile(r"0\d+")
_STARTS_WITH_DIGIT: Final = re.compile(r"[+-]?\d")
_INFINITE: Final = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_TIME: Final = (
    r"[ T]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d*)?)?(?: ?[AaPp][Mm])?"
    r"(?: ?(?:Z|UTC|[+-]\d{2}(?::?\d{2})?))?"
)
TIME: Final = re.compile(rf"{_TIME}\Z")
"""The time of day at the end of a date."""
_DATE: Final = re.compile(
    rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}(?:{_TIME})?|\d{{1,2}}([./-])\d{{1,2}}\1\d{{2,4}}"
)
BOOLEANS: Final = {
    "true": 1.0, "false": 0.0, "t": 1.0, "f": 0.0,
    "wahr": 1.0, "falsch": 0.0, "vrai": 1.0, "faux": 0.0,
}  # fmt: skip
"""Spellings of true and false that are recognised in any column."""
_SPACES: Final = " \u00a0\u2009\u202f"
_SIGNS: Final = {" ": f"[{_SPACES}]", "'": "['\u2019]", ".": r"\.", ",": ","}
_OPPOSITE_SIGN: Final = {".": ",", ",": "."}
_LIMIT: Final = re.compile(r"([<>\u2264\u2265]=?)\s*(\S.*)")
_YEAR_FIRST: Final = re.compile(
    rf"(\d{{4}})([./-])(\d{{1,2}})\2(\d{{1,2}})(?:{_TIME})?"
)
_SHORT_DATE: Final = re.compile(
    rf"(\d{{1,2}})([./-])(\d{{1,2}})\2(\d{{4}})(?:{_TIME})?"
)
_SERIAL: Final = re.compile(r"(\d{1,7})(?:[.,]\d+)?")
SHORT_YEAR: Final = re.compile(r"0{0,2}\d{1,2}([./-])\d{1,2}\1\d{1,2}")
_EXCEL_EPOCH: Final = date(1899, 12, 30)
_LEAST_SERIAL: Final = 61
"""Smaller serial numbers of days are off by one: Excel counts a 29 February 1900."""


def guess_kind(cells: Iterable[str], dialect: CellForm | Dialect) -> Kind:
    """Guess a column's kind from most cells; reading reports cells of another kind."""
    values = [cell.strip() for cell in cells]
    codes = dialect.codes
    present = [value for value in values if value not in codes]
    if not present:
        return "nothing"
    if all(value.lower() in BOOLEANS for value in present):
        return "boolean"
    # reading reports numbers with the wrong decimal sign
    numbers = [v for v in present if is_any_number(v) or _INFINITE.fullmatch(v)]
    if 2 * len(numbers) > len(present) or (numbers and len(present) < 3):
        whole = all(_INTEGER.fullmatch(value) for value in numbers)
        return "integer" if whole else "number"
    if 2 * sum(map(is_date, present)) > len(present):
        return "date"
    return "words"


def column_warnings(
    names: Sequence[str],
    kinds: Sequence[Kind],
    cells: Sequence[Sequence[str]],
    forms: Sequence[CellForm],
) -> Iterator[str]:
    """Yield warnings about words that resemble numbers, and numbers that may be codes."""
    for name, kind, column, cell_form in zip(names, kinds, cells, forms, strict=True):
        if kind == "integer" and any(
            _LEADING_ZERO.fullmatch(cell.strip()) for cell in column
        ):
            yield f"{name!r}: some cells begin with 0, perhaps codes: read as numbers."
        if kind != "words":
            continue
        values = [value for c in column if (value := c.strip()) not in cell_form.codes]
        number_like = [value for value in values if _STARTS_WITH_DIGIT.match(value)]
        if values and all(
            is_number(value, cell_form.decimal) or _IN_THOUSANDS.fullmatch(value)
            for value in values
        ):
            yield f"{name!r}: {SEPARATOR_REMEDY}; or set thousands = … in a mapping."
        elif 2 * len(number_like) > len(values):
            yield (
                f"{name!r}: {mask_text(number_like[0])!r} is neither a number nor a date such "
                "as 2026-01-31."
            )


def parse_number(text: str) -> float | None:
    """Parse a number with a decimal point; return None for any other text."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def is_date(cell: str) -> bool:
    """Return whether a cell has the form of a date in any supported order."""
    return _DATE.fullmatch(cell.strip()) is not None


def is_number(cell: str, signs: str) -> bool:
    """Return whether a cell is a number with one of these decimal signs."""
    return _NUMBERS[signs].fullmatch(cell.strip()) is not None


THOUSANDS_LIKE: Final = (
    "[-+(\u2010-\u2015\u2212]?\\s*[1-9]\\d{0,2}[.,]\\d{3}\\s*[-)\u2212]?"
)
"""Pattern of an ambiguous number such as 9.370, which may mean 9370 or 9.37."""
DECIDING: Final = (
    r"[+-]?(?:\d{4,}[.,]\d*|0\d*[.,]\d*|\d*[.,](?:\d{0,2}|\d{4,})|[.,]\d*"
    r"|\d+[.,]\d*[eE][+-]?\d+)"
)
"""Pattern of a number whose point or comma can only be a decimal sign."""
WHOLE: Final = r"[+-]?\d{4,}"
"""Pattern of a whole number which, unless it is the code of a missing value, proves that
its column has no thousands separators."""
_DECIDING: Final = re.compile(DECIDING)
_THOUSANDS: Final = re.compile(
    r"[+-]?\d{1,3}(?:([.,])\d{3})(?:\1\d{3}|(?!\1)[.,]\d)+\d*"
)


@dataclass(frozen=True, slots=True)
class CellForm:
    """The number and date format of a column; by default as in 1.5 and 2026-01-31.

    decimal: the decimal sign.
    dates: the order of dates; None if it is ambiguous whether the day comes first.
    codes: texts that mean a missing value.
    is_decided: whether the operator or a cell determines the decimal sign.
    table_agrees: whether all cells of the table that determine a decimal sign agree.
    has_numbers: whether the column of a sheet contains numbers as well as texts.
    """

    decimal: str = "."
    dates: str | None = "year-first"
    codes: frozenset[str] = frozenset(MISSING)
    is_decided: bool = True
    table_agrees: bool = True
    has_numbers: bool = False


def find_forms(columns: Sequence[Sequence[str]], dialect: Dialect) -> list[CellForm]:
    """Detect the number and date format of each column from sample cells.

    If no cell of a column determines the decimal sign, the column gets the sign of the
    other columns, provided that these agree. An undetermined date order is taken from
    dates in other columns with the same separator.
    """
    signs = [_count_signs(cells) for cells in columns]
    all_signs = {sign for own in signs for sign in own}
    table_agrees = len(all_signs) == 1
    common = all_signs.pop() if table_agrees else "."
    orders = [_proven_date_orders(cells) for cells in columns]
    return [
        CellForm(
            decimal=dialect.decimal or max(own, key=lambda s: own[s], default=common),
            dates=dialect.dates or _decide_order(own_orders, orders),
            codes=dialect.codes,
            is_decided=bool(dialect.decimal or own),
            table_agrees=table_agrees,
        )
        for own, own_orders in zip(signs, orders, strict=True)
    ]


def resolve_dialect(dialect: Dialect, forms: Sequence[CellForm]) -> Dialect:
    """Return the dialect completed with the columns' decimal sign and date order."""
    signs = Counter(form.decimal for form in forms if form.is_decided)
    dates = {form.dates for form in forms} - {"year-first"}
    return replace(
        dialect,
        decimal=max(signs, key=lambda sign: signs[sign], default="."),
        dates=dialect.dates or (dates.pop() if len(dates) == 1 else None),
    )


def describe_readings(number: str) -> str:
    """Return both readings of a number such as 9.370, and the setting that decides."""
    sign = "." if "." in number else ","
    return (
        f"{number!r} is {number.replace(sign, '')} or {number.replace(sign, '.')}, and no "
        f'cell of the column shows which: set thousands = "{sign}" or decimal = "{sign}" in '
        "a mapping"
    )


def _count_signs(cells: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for cell in map(str.strip, cells):
        if match := _THOUSANDS.fullmatch(cell):
            counts[_OPPOSITE_SIGN[match[1]]] += 1
        elif _DECIDING.fullmatch(cell):
            counts.update(sign for sign in ".," if sign in cell)
    return counts


def _proven_date_orders(cells: Iterable[str]) -> dict[str, set[str]]:
    """Return the date orders that unambiguous dates prove, by the separator.

    1.2.2026 is always the first of February, but 1/2/2026 is ambiguous.
    """
    orders_by_separator: dict[str, set[str]] = {}
    for cell in cells:
        if match := _SHORT_DATE.fullmatch(cell.strip()):
            orders = orders_by_separator.setdefault(match[2], set())
            if match[2] == "." or int(match[1]) > 12:
                orders.add("day-first")
            elif int(match[3]) > 12:
                orders.add("month-first")
    return orders_by_separator


def _decide_order(
    own_orders: Mapping[str, set[str]], columns: Sequence[Mapping[str, set[str]]]
) -> str | None:
    if not own_orders:
        return "year-first"
    orders: set[str] = set()
    for separator, column_orders in own_orders.items():
        all_orders = set().union(*(column.get(separator, ()) for column in columns))
        orders |= column_orders or all_orders or {""}
    return orders.pop() or None if len(orders) == 1 else None


class LimitCell(NamedTuple):
    """A cell that states a limit of detection, such as ``<0.1`` or ``>9``.

    is_below: whether the value is below the limit, rather than above it.
    limit: the limit as it is written in the cell.
    """

    is_below: bool
    limit: str


_OTHER_MINUS: Final = re.compile(
    r"(?:[\u2010-\u2015\u2212\u207b\ufe63\uff0d]\s*|-\s+)(?P<behind>[\d.,][^-()]*)"
    r"|(?P<before>[\d.,][^-()]*?)\s*[-\u2010-\u2015\u2212\u207b\ufe63\uff0d]"
    r"|\(\s*[-\u2212]?\s*(?P<within>[\d.,][^-()]*?)\s*\)"
)


def fix_minus(text: str) -> str | None:
    """Rewrite a number with an unusual minus sign as ``-1``; None for other texts.

    The sign may be another Unicode dash, follow the number, or be a pair of brackets.
    """
    match = _OTHER_MINUS.fullmatch(text.strip())
    number = "" if match is None else match[match.lastgroup or 0]
    is_number = any(read_number(number, None, sign) is not None for sign in _SIGNS)
    return f"-{number}" if is_number else None


def parse_limit(text: str) -> LimitCell | None:
    """Parse a cell such as ``<0.1``; return None for cells that state no limit."""
    match = _LIMIT.fullmatch(text.strip())
    if match is None:
        return None
    return LimitCell(match[1][0] in "<\u2264", match[2].strip())


def read_number(text: str, decimal: str | None, thousands: str | None) -> str | None:
    """Return the text as a number with a decimal point and no thousands separators.

    Returns None if the text is not a number in this format.

    decimal: the decimal sign. None means the sign that ``thousands`` does not use, or
        either sign if ``thousands`` is neither a point nor a comma.
    """
    match = _number_pattern(decimal, thousands).fullmatch(text.strip())
    if match is None:
        return None
    sign, whole, fraction, power = match.groups()
    digits = re.sub(r"\D", "", whole)
    return f"{sign}{digits}{f'.{fraction}' if fraction else ''}{power or ''}"


@cache
def _number_pattern(decimal: str | None, thousands: str | None) -> re.Pattern[str]:
    point = "[.,]"
    if decimal is not None:
        point = _SIGNS[decimal]
    elif thousands in _OPPOSITE_SIGN:
        point = _SIGNS[_OPPOSITE_SIGN[thousands]]
    whole = r"\d+"
    if thousands is not None:
        whole = rf"\d{{1,3}}(?:{_SIGNS[thousands]}\d{{3}})+|\d+"
    return re.compile(rf"([+-]?)({whole})(?:{point}(\d*))?([eE][+-]?\d+)?")


def read_date(text: str, orders: Sequence[str]) -> str | None:
    """Return a date in ISO 8601 by the first order that fits, or None if none fits."""
    dates = (_read_in_order(text.strip(), order) for order in orders)
    return next((day for day in dates if day is not None), None)


def _read_in_order(text: str, order: str) -> str | None:
    if order == "excel":
        serial = _SERIAL.fullmatch(text)
        days = 0 if serial is None else int(serial[1])
        if days < _LEAST_SERIAL or days > 2_958_465:  # 9999-12-31
            return None
        return (_EXCEL_EPOCH + timedelta(days=days)).isoformat()
    match = (_YEAR_FIRST if order == "year-first" else _SHORT_DATE).fullmatch(text)
    if match is None:
        return None
    if order == "year-first":
        year, month, day = match[1], match[3], match[4]
    else:
        year = match[4]
        day, month = (match[1], match[3])[:: 1 if order == "day-first" else -1]
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


HEAD_ROWS: Final = 200
"""Number of rows from which the delimiter and title rows are detected."""
_MOST_TITLES: Final = 30


def detect_dialect(text: str, settings: Dialect) -> tuple[Dialect, list[str]]:
    """Detect the dialect of a text; return it with any warnings about title rows."""
    lines = [line.rstrip("\n") for line in _split_lines(text)]
    # Excel may write a first line such as 'sep=;' to state the delimiter
    first = lines[0] if lines else ""
    is_sep = len(first) == 5 and first.startswith("sep=")
    skip = settings.skip
    if skip is None:
        filled = (n for n, line in enumerate(lines) if line and line[0] != "#")
        skip = 1 if is_sep else next(filled, 0)
    delimiter = settings.delimiter or (first[4] if is_sep else "")
    delimiter = delimiter or _find_delimiter(lines[skip:], settings.quote)
    dialect = replace(settings, skip=skip, delimiter=delimiter)
    if settings.skip is not None:
        return dialect, []
    if (
        skip
        and lines[skip - 1].startswith("#")
        and _first_row_is_header(text, with_comment := replace(dialect, skip=skip - 1))
    ):
        dialect, skip = with_comment, skip - 1
    head = list(islice(_numbered_rows(text, dialect), HEAD_ROWS))
    n = count_titles([cells for _, cells in head])
    if not n:
        return dialect, []
    skip += head[n - 1][0]
    return replace(dialect, skip=skip), [title_warning(skip, "line")]


def _first_row_is_header(text: str, dialect: Dialect) -> bool:
    """Return whether the first row names the cells of the second, which has a value.

    The first row has no value, and the third has its values below those of the second:
    otherwise the second row has names, some of which are numbers.
    """
    names, *rows = [cells for _, cells in islice(_numbered_rows(text, dialect), 3)]
    if not rows or len(names) != len(rows[0]) or _has_value(names):
        return False
    return _has_value(rows[0]) and all(
        _has_value([above]) == _has_value([below])
        for above, below in zip(rows[0], rows[-1], strict=False)
        if not {above.strip(), below.strip()} & dialect.codes
    )


def split_into_rows(text: str, dialect: Dialect) -> list[list[str]]:
    """Split a text into rows of cells without empty rows; the first contains the names."""
    return [cells for _, cells in _numbered_rows(text, dialect) if cells]


def _numbered_rows(text: str, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a text, each with the number of its last line.

    Stops before the first field that is too long. Reading the table reports that field.
    """
    reader = split_lines(_split_lines(text)[dialect.skip or 0 :], dialect)
    with suppress(csv.Error):
        for cells in reader:
            yield reader.line_num, cells


def split_lines(lines: Iterable[str], dialect: Dialect) -> Any:
    """Return a :func:`csv.reader` over the lines."""
    delimiter = dialect.delimiter or ","
    return csv.reader(lines, delimiter=delimiter, quotechar=dialect.quote)


def _split_lines(text: str) -> list[str]:
    return list(io.StringIO(text, newline=None))


def _find_delimiter(lines: Sequence[str], quote: str) -> str:
    """Return the delimiter that splits most lines into the same number of cells.

    The line of column names should have as many cells, too: in rows of numbers, decimal
    commas look as regular as the semicolons between the numbers.
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
        width, count = Counter(map(len, rows)).most_common(1)[0]
        if width < 2:
            continue
        share = count / len(rows)
        n_titles = count_titles(rows)
        unnamed = abs(width - len(rows[n_titles]))
        scores[delimiter] = (share >= 0.5, -unnamed, -n_titles, share > 0.9, width)
    return max(scores, key=lambda d: scores[d], default=",")


def count_titles(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of title rows above the column names.

    A title row fills at most half as many cells as the median row. The first row that
    fills more has the names; if it contains a number or a date, there are no titles.

    rows: the first rows of a table; an empty cell is an empty text.
    """
    filled = [sum(bool(cell.strip()) for cell in cells) for cells in rows[:HEAD_ROWS]]
    median_count = median([count for count in filled if count] or [0])
    for index, count in enumerate(filled[: _MOST_TITLES + 1]):
        if 2 * count > median_count:
            return 0 if _has_value(rows[index]) else index
    return 0


def _has_value(cells: Iterable[str]) -> bool:
    return any(is_date(cell) or is_any_number(cell) for cell in cells)


def title_warning(n: int, word: str) -> str:
    """Return the warning that ``n`` title rows were found; ``word`` says line or row."""
    numbers = " 1 is" if n == 1 else f"s 1 to {n} are"
    return (
        f"{word.capitalize()}{numbers} read as a title: the column names are in "
        f"{word} {n + 1} (--csv skip={n})."
    )


def is_any_number(cell: str) -> bool:
    """Return whether a cell is a number with either decimal sign and any minus sign."""
    return is_number(cell, ".,") or bool(fix_minus(cell))


def as_text(value: Any) -> str:
    """Format a value as text on a single line, without loss of precision."""
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

"""How a text file is written: shown, and frozen by the operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Self

from clustering_protocols.common.errors import InvalidParameters

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

"""One variable of a dictionary as people type it: a row of a form or spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Self

from pydantic import ValidationError

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.validation_messages import invalid_parameters
from clustering_protocols.terms.schema import Constraints, Field, Level, Schema

ROLES: Final = ("cluster", "describe", "leave-out")
TYPES: Final = ("number", "integer", "boolean", "string", "date")
_YES: Final = frozenset({"yes", "y", "true", "1", "x", "ja", "wahr", "oui", "vrai"})
_NO: Final = frozenset({"", "no", "n", "false", "0", "nein", "falsch", "non", "faux"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A row of the table of variables; an empty text is the default.

    minimum, maximum: numbers, or dates such as 2026-01-31.
    levels: with commas between, each in quotes where it holds one; ``1=female`` is a
        level with a label. A backslash stands before a sign that belongs to the level.
    ordered, required: yes or no.
    missing: codes of no value, written as levels are.
    """

    name: str
    role: str = ""
    type: str = ""
    unit: str = ""
    minimum: str = ""
    maximum: str = ""
    decimals: str = ""
    levels: str = ""
    ordered: str = ""
    required: str = ""
    missing: str = ""
    title: str = ""
    description: str = ""

    @classmethod
    def of(cls, field: Field, schema: Schema) -> Self:
        """Return a field as texts; codes of the whole schema become its own."""
        codes = field.missingValues
        if codes is None and set(schema.missingValues) - {""}:
            codes = schema.missingValues
        low, high = field.constraints.minimum, field.constraints.maximum
        levels = zip(field.levels, field.labels, strict=True)
        return cls(
            name=field.name,
            role=field.role,
            type=field.type,
            unit=field.unit,
            minimum="" if low is None else str(low),
            maximum="" if high is None else str(high),
            decimals="" if field.decimals is None else str(field.decimals),
            levels=join_texts(_write_level(*each) for each in levels),
            ordered="yes" if field.categoriesOrdered else "",
            required="yes" if field.constraints.required else "",
            missing="" if codes is None else join_texts(codes),
            title=field.title,
            description=field.description,
        )

    def field(self) -> Field:
        """Return the field that a row describes.

        Raises InvalidData: with what is wrong in which cell.
        """
        kind = self.type.strip() or ("string" if self.levels.strip() else "number")
        read = _Cells(self)
        constraints = {
            "minimum": read("minimum", _bound(kind)),
            "maximum": read("maximum", _bound(kind)),
            "required": read("required", _parse_truth) or False,
        }
        said: dict[str, Any] = {
            "name": self.name,
            "role": self.role.strip() or "cluster",
            "type": kind,
            "unit": self.unit,
            "title": self.title,
            "description": self.description,
            "decimals": read("decimals", _parse_whole),
            "categories": read("levels", lambda text: _parse_levels(text, kind)) or (),
            "categoriesOrdered": read("ordered", _parse_truth) or False,
            "missingValues": read("missing", split_texts),
        }
        try:
            return Field(**said, constraints=Constraints(**constraints))
        except ValidationError as error:
            found = invalid_parameters(error)
            place = f"{found.field}: " if found.field else ""
            raise InvalidData(f"{place}{found.said}") from None

    def cells(self) -> dict[str, str]:
        """Return the texts by their column."""
        return asdict(self)


COLUMNS: Final = tuple(each.name for each in fields(Variable))
"""The columns of the table of variables."""


@dataclass(frozen=True, slots=True)
class _Cells:
    """Reads the cells of a row; a refusal names the cell."""

    row: Variable

    def __call__(self, name: str, parse: Callable[[str], Any]) -> Any:
        text = getattr(self.row, name).strip()
        if not text:
            return None
        try:
            return parse(text)
        except ValueError as error:
            raise InvalidData(f"{name}: {error}") from None


def parse_bounds(text: str) -> Mapping[str, str]:
    """Return the cells of bounds such as ``0..20``, ``0..`` or ``..20``.

    Raises ValueError if there are no two dots.
    """
    low, dots, high = text.partition("..")
    if not dots:
        raise ValueError("write two dots between the bounds, such as 0..20")
    return {"minimum": low.strip(), "maximum": high.strip()}


def split_texts(text: str) -> tuple[str, ...]:
    """Return texts with commas between; one in quotes may hold a comma.

    Raises ValueError if they do not stand in one line.
    """
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error:
        raise ValueError("write them with commas between, in one line") from None
    return tuple(each.strip() for row in rows for each in row)


def join_texts(texts: Any) -> str:
    """Return texts with commas between, as :func:`split_texts` reads them."""
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(texts)
    return written.getvalue()


def _write_level(value: str, label: str) -> str:
    kept = value.replace("\\", "\\\\").replace("=", "\\=")
    return kept if label == value else f"{kept}={label}"


def _parse_levels(text: str, kind: str) -> tuple[Level, ...]:
    return tuple(_parse_level(each, kind) for each in split_texts(text))


def _parse_level(text: str, kind: str) -> Level:
    value, label, place = "", "", 0
    while place < len(text):
        letter = text[place]
        if letter == "\\" and place + 1 < len(text):
            place += 1
            letter = text[place]
        elif letter == "=":
            label = text[place + 1 :].strip()
            break
        value += letter
        place += 1
    if kind == "integer":
        return Level(value=_parse_whole(value), label=label)
    if not value.strip():
        raise ValueError("a level is empty")
    return Level(value=value.strip(), label=label)


def _bound(kind: str) -> Callable[[str], float | int | str]:
    return str if kind == "date" else _parse_number


def _parse_number(text: str) -> float | int:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text if "." in text else text.replace(",", "."))
    except ValueError:
        raise ValueError("give a number") from None


def _parse_whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("give a whole number") from None


def _parse_truth(text: str) -> bool:
    folded = text.casefold()
    if folded not in _YES | _NO:
        raise ValueError("write yes or no")
    return folded in _YES

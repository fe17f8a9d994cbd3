"""Section 4: what the columns of a table mean, where the terms say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from .derivations import Refusal


@dataclass(frozen=True)
class Field:
    """Section 4, dictionary: a field that is not left out."""

    name: str
    title: str
    unit: str
    type: str
    clustered: bool
    levels: Sequence[str]
    range: tuple[float, float]
    values: Sequence[str]
    ordered: bool

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Field:
        """Section 4, dictionary: a field as it is described."""
        kind, limits = said.get("type", "number"), said.get("constraints", {})
        named = said.get("categories") or limits.get("enum") or ()
        ends = (
            _end(limits.get("minimum"), -np.inf),
            _end(limits.get("maximum"), np.inf),
        )
        yes_or_no = kind == "boolean"
        return cls(
            name=said["name"],
            title=said.get("title", ""),
            unit=said.get("unit", ""),
            type=kind,
            clustered=said.get("role", "cluster") == "cluster",
            levels=("no", "yes") if yes_or_no else [*map(_label, named)],
            range=(0.0, 1.0) if yes_or_no else ends,
            values=[*map(_value, named)],
            ordered=said.get("categoriesOrdered", False),
        )


def _label(level: Any) -> str:
    """Section 4, dictionary: how people call a level."""
    label = level.get("label") if isinstance(level, dict) else ""
    return label or _value(level)


def _value(level: Any) -> str:
    """Section 4, dictionary: a level as tables have it."""
    return str(level["value"] if isinstance(level, dict) else level)


def _end(said: float | str | None, unknown: float) -> float:
    """Section 4, dictionary: one end of a range; of a date in days."""
    if isinstance(said, str):
        return float((date.fromisoformat(said) - date(1970, 1, 1)).days)
    return unknown if said is None else float(said)


def read_fields(
    terms: Mapping[str, Any], slot: str, columns: Sequence[str]
) -> list[Field]:
    """Section 4, dictionary: the fields of a slot; all of a table's columns without."""
    if "dictionary" not in terms:
        return [Field.of({"name": name}) for name in columns]
    places = {each["name"]: each["column"] for each in terms["layout"]["slots"]}
    said = terms["dictionary"][places[slot]]["fields"]
    return [Field.of(each) for each in said if each.get("role") != "leave-out"]


def find_places(fields: Sequence[Field], columns: Sequence[str]) -> list[int]:
    """Section 4, dictionary: where the fields stand in a table."""
    if {each.name for each in fields} - set(columns):
        raise Refusal("invalid-data")
    return [columns.index(each.name) for each in fields]

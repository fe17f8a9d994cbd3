"""Section 11, preparation: how fields become columns, and which rows join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .derivations import Refusal
from .dictionary import Field, read_fields

Floats = NDArray[np.float64]
FILLED: Final = ("mean", "median", "most_frequent")


@dataclass(frozen=True)
class Piece:
    """Section 11, preparation: a field, and what becomes of it."""

    field: Field
    missing: str
    log1p: bool
    indicator: bool
    weight: float

    @property
    def name(self) -> str:
        """Section 11, preparation: the name of the field."""
        return self.field.name

    @property
    def levels(self) -> list[str]:
        """Section 11, preparation: the levels of a nominal field."""
        return [] if self.field.ordered else [*self.field.values]

    @property
    def ready(self) -> bool:
        """Section 11, preparation, columns: whether it is in common units."""
        return bool(self.levels) or self.field.type == "boolean"

    @property
    def names(self) -> list[str]:
        """Section 11, preparation, columns: their names."""
        own = [f"{self.name}={level}" for level in self.levels] or [self.name]
        return own + [f"{self.name} missing"] * self.indicator

    @property
    def range(self) -> tuple[float, float]:
        """Section 11, preparation: the range, its logarithm taken."""
        low, high = self.field.range
        if self.field.values:
            low, high = 0.0, float(max(1, len(self.field.values) - 1))
        return (
            (float(np.log1p(low)), float(np.log1p(high))) if self.log1p else (low, high)
        )

    @property
    def in_units(self) -> list[bool]:
        """Section 11, preparation, columns: which are in common units."""
        own = [self.ready] * max(1, len(self.levels))
        return own + [True] * self.indicator

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Section 11, preparation, columns: their ranges."""
        gap = [(0.0, self.weight)] * self.indicator
        if self.levels:
            return [(0.0, self.weight * 0.5**0.5)] * len(self.levels) + gap
        return [(0.0, self.weight) if self.ready else self.range, *gap]

    def write(self, values: Floats, filled: float | None) -> Floats:
        """Section 11, preparation, columns: the columns of values (n,)."""
        gaps = np.isnan(values)
        found = values if filled is None else np.where(gaps, filled, values)
        if self.levels:
            each = np.arange(len(self.levels))
            columns = (found[:, None] == each) * (self.weight * 0.5**0.5)
        else:
            columns = (self.weight * found if self.ready else found)[:, None]
        marks = self.weight * gaps[:, None] if self.indicator else gaps[:, None][:, :0]
        return np.hstack([columns, marks])


@dataclass(frozen=True)
class Plan:
    """Section 11, preparation: the fields of a column group."""

    pieces: Sequence[Piece]

    @property
    def columns(self) -> list[str]:
        """Section 11, preparation, columns: all names."""
        return [name for piece in self.pieces for name in piece.names]

    @property
    def ready(self) -> Any:
        """Section 11, preparation, columns: which are in common units."""
        return np.array([each for piece in self.pieces for each in piece.in_units])

    @property
    def weights(self) -> Floats:
        """Section 11, preparation, treatment: the weight of each column."""
        return np.array([piece.weight for piece in self.pieces for _ in piece.names])

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Section 11, preparation, columns: all ranges."""
        return [ends for piece in self.pieces for ends in piece.ranges]

    @property
    def fills(self) -> list[tuple[int, Piece]]:
        """Section 11, filling: the filled fields, with their places."""
        return [(at, p) for at, p in enumerate(self.pieces) if p.missing in FILLED]

    def find_whole_rows(self, rows: Floats) -> list[int]:
        """Section 11, preparation, treatment: the rows that join."""
        gaps = np.isnan(rows)
        refused = [p.missing == "refuse" for p in self.pieces]
        dropped = [p.missing == "drop" for p in self.pieces]
        kept = np.flatnonzero(~gaps[:, dropped].any(axis=1))
        if gaps[:, refused].any() or not kept.size:
            raise Refusal("invalid-data")
        return [int(row) for row in kept]

    def take_logarithms(self, rows: Floats) -> Floats:
        """Section 11, preparation, treatment: log(1 + x) where the terms say so."""
        columns = [
            np.log1p(column) if piece.log1p else column
            for piece, column in zip(self.pieces, rows.T, strict=True)
        ]
        return np.array(columns).T

    def prepare(self, rows: Floats, filled: Sequence[float]) -> Floats:
        """Section 11, preparation, columns: rows as columns."""
        instead = dict(zip((at for at, _ in self.fills), filled, strict=True))
        return np.hstack(
            [
                piece.write(rows[:, at], instead.get(at))
                for at, piece in enumerate(self.pieces)
            ]
        )


def read_plan(terms: Mapping[str, Any], slot: str) -> Plan | None:
    """Section 11, preparation: that of a slot's column group; None where there is none."""
    if "preparation" not in terms:
        return None
    places = {each["name"]: each["column"] for each in terms["layout"]["slots"]}
    said = terms["preparation"][places[slot]]
    treated = {each["name"]: each for each in said.get("fields", [])}
    pieces = []
    for field in (each for each in read_fields(terms, slot, ()) if each.clustered):
        own = treated.pop(field.name, {})
        piece = Piece(
            field=field,
            missing=own.get("missing") or said.get("missing", "refuse"),
            log1p=own.get("log1p", False),
            indicator=own.get("indicator", False),
            weight=own.get("weight", 1.0),
        )
        _check(piece)
        pieces.append(piece)
    if treated:
        raise Refusal("malformed")
    return Plan(pieces)


def _check(piece: Piece) -> None:
    """Section 11, preparation, treatment: terms that treat a field as they may."""
    plain, field = replace(piece, log1p=False), piece.field
    leveled, (low, high) = bool(field.levels), plain.range
    finite = bool(np.isfinite([low, high]).all()) and low < high
    good = {
        "mean": not leveled,
        "median": field.ordered or (not leveled and finite),
        "most_frequent": leveled,
    }.get(piece.missing, True)
    if piece.log1p and (leveled or field.type == "date" or low <= -1):
        good = False
    if piece.indicator and piece.missing not in FILLED:
        good = False
    if not good:
        raise Refusal("malformed")

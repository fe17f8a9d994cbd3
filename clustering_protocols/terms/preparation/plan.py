"""The columns that fields become, and the numbers in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field as attribute
from functools import cached_property
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.preparation.bounds import Ranges
from clustering_protocols.terms.preparation.preparation import (
    FILLED,
    Missing,
    Preparation,
    Treatment,
)
from clustering_protocols.terms.schema import Field, Schema

_INDICATOR: Final = 0.5**0.5
"""Of a level: indicators of two rows with other levels are 1 apart."""

MOST_COLUMNS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Fill:
    """What is pooled to fill the gaps of one field.

    place: of the field in the dictionary.
    how: 'mean', 'median' or 'most_frequent'.
    low, high: bounds of its values as :meth:`ColumnPlan.take_logarithms` gives them;
        infinite where the dictionary has none.
    whole: whether its values are integers.
    ranking: the places of levels in the order in which ties of most_frequent are
        decided.
    """

    name: str
    place: int
    how: Missing
    low: float
    high: float
    whole: bool
    ranking: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """The columns that one field becomes, from ``begin`` on."""

    field: Field
    treatment: Treatment
    begin: int

    @property
    def n_levels(self) -> int:
        """Return how many indicators of levels there are: 0 of what is a number."""
        nominal = self.field.is_category and not self.field.is_ordinal
        return len(self.field.levels) if nominal else 0

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        name = self.field.name
        own = (
            [f"{name}={level}" for level in self.field.levels] if self.n_levels else []
        )
        gap = [f"{name} missing"] if self.treatment.indicator else []
        return (own or [name]) + gap

    @property
    def observed_range(self) -> tuple[float, float]:
        """Return least and greatest value of the field, its logarithm taken."""
        low, high = self.field.extremes
        if self.treatment.log1p:
            return float(np.log1p(low)), float(np.log1p(high))
        return low, high

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Return least and greatest value of each column."""
        weight = self.treatment.weight
        gap = [(0.0, weight)] * self.treatment.indicator
        if self.n_levels:
            return [(0.0, weight * _INDICATOR)] * self.n_levels + gap
        if self.in_units[0]:
            return [(0.0, weight), *gap]
        return [self.observed_range, *gap]

    @property
    def in_units(self) -> list[bool]:
        """Return which columns are in common units already."""
        own = self.n_levels or 1
        ready = bool(self.n_levels) or self.field.type == "boolean"
        return [ready] * own + [True] * self.treatment.indicator


@dataclass(frozen=True, eq=False)
class ColumnPlan:
    """How the rows of one column group become columns.

    Raises ValueError if they contradict each other, or two columns would have one name.
    """

    schema: Schema = attribute(repr=False)
    preparation: Preparation = attribute(repr=False)

    def __post_init__(self) -> None:
        self.preparation.check(self.schema)
        if len(self.columns) > MOST_COLUMNS:
            raise ValueError(f"the fields become more than {MOST_COLUMNS} columns")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("two of the columns that fields become have the same name")

    @cached_property
    def _pieces(self) -> Sequence[_Piece]:
        pieces: list[_Piece] = []
        begin = 0
        for field in self.schema.fields:
            pieces.append(_Piece(field, self.preparation.of(field), begin))
            begin += len(pieces[-1].names)
        return pieces

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns that are clustered."""
        return tuple(name for piece in self._pieces for name in piece.names)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Return the name of the field from which each column comes."""
        return tuple(p.field.name for p in self._pieces for _ in p.names)

    @cached_property
    def weights(self) -> FloatArray:
        """Return with what each column (m,) is multiplied once it is scaled."""
        weights = [
            piece.treatment.weight for piece in self._pieces for _ in piece.names
        ]
        return np.array(weights)

    @cached_property
    def in_units(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which columns (m,) are in common units already, weights included."""
        return np.array([ready for piece in self._pieces for ready in piece.in_units])

    @cached_property
    def bounds(self) -> Ranges:
        """Return between which values the columns lie, as the dictionary says."""
        low, high = np.array(
            [ends for piece in self._pieces for ends in piece.ranges]
        ).T
        return Ranges(low, high)

    def units(self, spread: FloatArray) -> FloatArray:
        """Return by what each column (m,) is to be divided, given its spread.

        A column that is in common units already is divided by 1; a weight makes the unit
        of the others smaller or larger.
        """
        return np.where(self.in_units, 1.0, spread / self.weights)

    @cached_property
    def fills(self) -> tuple[Fill, ...]:
        """Return what has to be pooled before columns can be made."""
        return tuple(
            _fill(piece, place)
            for place, piece in enumerate(self._pieces)
            if piece.treatment.missing in FILLED
        )

    def find_places_by_missing(self, missing: Missing) -> IntArray:
        """Return the places of fields whose gaps are met in this way."""
        return np.array(
            [
                place
                for place, piece in enumerate(self._pieces)
                if piece.treatment.missing == missing
            ],
            dtype=np.int64,
        )

    def take_logarithms(self, rows: FloatArray) -> FloatArray:
        """Return rows (n, fields) with their logarithms taken; NaN is no value."""
        if not self._logarithms:
            return rows
        found = np.array(rows)
        for place in self._logarithms:
            np.log1p(found[:, place], out=found[:, place])
        return found

    @cached_property
    def _logarithms(self) -> list[int]:
        return [i for i, piece in enumerate(self._pieces) if piece.treatment.log1p]

    def prepare(self, observed: FloatArray, filled: FloatArray) -> FloatArray:
        """Return the columns (n, m) of observed rows (n, fields).

        filled: float64 (len(fills),); what takes the place of no value, for each of
            ``fills``.
        """
        instead = np.full(observed.shape[1], np.nan)
        instead[[fill.place for fill in self.fills]] = filled
        gaps = np.isnan(observed)
        values = np.where(gaps, instead, observed)
        if self._as_they_are:
            return values
        columns = np.zeros((len(observed), len(self.columns)))
        for place, piece in enumerate(self._pieces):
            _write(piece, values[:, place], gaps[:, place], columns)
        return columns

    @cached_property
    def _as_they_are(self) -> bool:
        """Return whether every column is a field, in its own units."""
        return len(self.columns) == len(self._pieces) and not self.in_units.any()


def _write(
    piece: _Piece,
    values: FloatArray,
    gaps: np.ndarray[tuple[int], np.dtype[np.bool_]],
    columns: FloatArray,
) -> None:
    """Write the columns of one field."""
    weight, begin = piece.treatment.weight, piece.begin
    if piece.n_levels:
        rows = np.arange(len(values))
        columns[rows, begin + values.astype(np.int64)] = weight * _INDICATOR
    else:
        ready = piece.in_units[0]
        columns[:, begin] = weight * values if ready else values
    if piece.treatment.indicator:
        columns[:, begin + (piece.n_levels or 1)] = weight * gaps


def _fill(piece: _Piece, place: int) -> Fill:
    field, treatment = piece.field, piece.treatment
    low, high = piece.observed_range
    return Fill(
        name=field.name,
        place=place,
        how=treatment.missing or "refuse",
        low=low,
        high=high,
        whole=field.type != "number" and not treatment.log1p,
        ranking=tuple(_rank_levels(field)),
    )


def _rank_levels(field: Field) -> Iterator[int]:
    """Yield the places of levels: ordinals as they are, others sorted by their values.

    The lowest of equally frequent levels fills a gap, as in scikit-learn.
    """
    if field.type == "boolean":
        yield from (0, 1)
        return
    places = range(len(field.levels))
    if field.is_ordinal:
        yield from places
    elif field.type == "integer":
        yield from sorted(places, key=lambda place: int(field.levels[place]))
    else:
        yield from sorted(places, key=lambda place: field.levels[place])


def plans_of(
    n_groups: int,
    dictionary: Sequence[Schema] | None,
    preparation: Sequence[Preparation] | None,
) -> tuple[ColumnPlan, ...] | None:
    """Return how the fields of each of ``n_groups`` column groups become columns.

    None where nothing is prepared: fields are columns then.

    Raises ValueError: unless each column group has a dictionary and a preparation that
        serve, where there are any: categories need a preparation, and a preparation a
        dictionary.
    """
    if dictionary is not None and len(dictionary) != n_groups:
        raise ValueError(f"{n_groups} column groups need as many dictionaries")
    if preparation is None:
        for schema in dictionary or ():
            for field in schema.clustered_part.fields:
                if field.is_category:
                    raise ValueError(f"{field.name!r} has levels: say a preparation")
        return None
    if dictionary is None:
        raise ValueError("a preparation needs a dictionary of the fields")
    if len(preparation) != n_groups:
        raise ValueError(f"{n_groups} column groups need as many preparations")
    for schema, prepared in zip(dictionary, preparation, strict=True):
        prepared.check(schema)
    clustered = [schema.clustered_part for schema in dictionary]
    return tuple(map(ColumnPlan, clustered, preparation))

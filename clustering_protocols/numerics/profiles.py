"""Profiles: what the clusters of one partition are like, field by field."""

from __future__ import annotations

import itertools
from itertools import chain
from typing import Annotated, Any, Final, Self

import numpy as np
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from clustering_protocols.common.values import Value
from clustering_protocols.numerics.survival import Survival
from clustering_protocols.records.record import ReadableTable

SHARES: Final = 20
"""Outsiders read shares, and means in standard deviations, in steps of 1 / SHARES."""

NO_YES: Final = ("no", "yes")
"""The levels of a yes-or-no field."""

_MOST_DAYS: Final = 100_000_000
"""Days from 1970-01-01: more than any table has, and few enough for NumPy's dates."""

Share = Annotated[float, Field(ge=0, le=1)]


def date_of(days: float) -> str:
    """Return the date a number of days after 1970-01-01, such as 2026-01-31."""
    return str(np.datetime64(round(days), "D"))


class FieldProfile(Value):
    """One field of the dictionary, with one entry for each line of a profile.

    name, title, unit: as in the dictionary.
    n_rows: rows that have a value; None if too few have one.
    mean, spread: mean and standard deviation (which divides by n) of the values. Yes and
        no count as 1 and 0, a date as days since 1970-01-01. Empty for a field of levels.
    quartiles: first, second and third, on the profile's grid; None beyond it. Empty for
        a field of levels.
    levels: their labels; the last level may combine rare ones.
    shares: of the rows that have a value, in the order of ``levels``.
    difference: the spread of the lines' means divided by the spread within lines, from
        0; fields are ordered by it.
    """

    name: str
    title: str = ""
    unit: str = ""
    is_date: bool = False
    n_rows: tuple[int | None, ...]
    mean: tuple[float | None, ...] = ()
    spread: tuple[float | None, ...] = ()
    quartiles: tuple[tuple[float | None, float | None, float | None] | None, ...] = ()
    levels: tuple[str, ...] = ()
    shares: tuple[tuple[Share, ...] | None, ...] = ()
    difference: float = Field(ge=0)

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the field's text in each line; a dash where too few rows have a value."""
        if self.levels:
            return tuple(map(self.shares_text, range(len(self.shares))))
        pairs = zip(self.mean, self.spread, strict=True)
        return tuple(itertools.starmap(self._mean_text, pairs))

    def shares_text(self, line: int) -> str:
        """Return each level with its share of the rows of a line."""
        shares = self.shares[line]
        if shares is None:
            return "–"
        pairs = zip(self.levels, shares, strict=True)
        return ", ".join(f"{level} {share:.0%}" for level, share in pairs)

    def _mean_text(self, mean: float | None, spread: float | None) -> str:
        if mean is None:
            return "–"
        if self.is_date:
            return date_of(mean)
        return f"{mean:.3g}" + ("" if spread is None else f" ± {spread:.3g}")

    @model_validator(mode="after")
    def _check_entries(self) -> Self:
        n_lines = len(self.n_rows)
        empty = (
            (self.mean, self.spread, self.quartiles) if self.levels else (self.shares,)
        )
        full = (self.shares,) if self.levels else (self.mean, self.spread)
        if any(empty) or any(len(entries) != n_lines for entries in full):
            raise ValueError("A field has one entry for each line.")
        if self.quartiles and len(self.quartiles) != n_lines:
            raise ValueError("A field has one entry for each line.")
        if any(s is not None and len(s) != len(self.levels) for s in self.shares):
            raise ValueError("A field has a share for each level.")
        days = chain(self.mean, *(quartiles or () for quartiles in self.quartiles))
        if self.is_date and any(abs(day or 0.0) > _MOST_DAYS for day in days):
            raise ValueError("A date is too far away.")
        return self


class Profile(Value):
    """The clusters, described by the fields of one column group.

    own: whether the rows are those of one party, not of all that hold these fields.
    clusters: the labels that have a line of their own, ascending.
    others: the labels of small clusters, which share the last line.
    n_rows: rows of each line.
    rounded: whether values were rounded for outsiders.
    fields: the fields that differ most between clusters come first.
    survival: times to events; left out of the JSON if empty.
    is_description: whether nothing was clustered; left out of the JSON if false.
    """

    column: int = Field(ge=0)
    own: bool
    clusters: tuple[int, ...]
    others: tuple[int, ...] = ()
    n_rows: tuple[int, ...]
    rounded: bool
    fields: tuple[FieldProfile, ...]
    survival: tuple[Survival, ...] = ()
    is_description: bool = False

    @property
    def line_names(self) -> tuple[str, ...]:
        """Return the name of each line, such as ``cluster 0`` or ``others``."""
        if self.is_description:
            return ("all rows",) * len(self.n_rows)
        clusters = (f"cluster {label}" for label in self.clusters)
        return (*clusters, *["others"] * bool(self.others))

    def missing(self, field: FieldProfile) -> int | None:
        """Return how many rows of a description have no value of a field."""
        present = field.n_rows[0]
        return None if present is None else self.n_rows[0] - present

    @property
    def table(self) -> ReadableTable:
        """Return means and standard deviations, or shares of levels, as text."""
        return ReadableTable(
            caption="Means and standard deviations, or shares of levels",
            columns=("variable", *self.line_names),
            rows=[
                ("rows", *map(str, self.n_rows)),
                *((field.title or field.name, *field.cells) for field in self.fields),
            ],
        )

    @model_validator(mode="after")
    def _check_lines(self) -> Self:
        n_lines = len(self.clusters) + bool(self.others)
        rows = (self.n_rows, *(field.n_rows for field in self.fields))
        lines = (*rows, *(time.lines for time in self.survival))
        if any(len(entries) != n_lines for entries in lines):
            raise ValueError("A profile has a number of rows for each line.")
        return self

    @model_serializer(mode="wrap")
    def _write_present(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = write(self)
        optional = {"survival", "is_description"}
        return {k: value for k, value in values.items() if value or k not in optional}


class Profiles(Value):
    """Rounded profiles of the selected run's clusters, for everybody."""

    profiles: tuple[Profile, ...] = Field(
        description="One profile for each column group that three parties or more hold. "
        "Empty until the parties have added them up, and if the terms do not release "
        "them to everybody."
    )

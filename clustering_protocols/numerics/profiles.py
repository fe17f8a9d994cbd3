"""Cluster profiles: summary statistics of each cluster, field by field."""

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
"""Published proportions and standardised means are multiples of 1 / SHARES."""

NO_YES: Final = ("no", "yes")
"""The levels of a boolean field."""

_MOST_DAYS: Final = 100_000_000
"""The largest number of days since 1970-01-01, which NumPy's dates can represent."""

Share = Annotated[float, Field(ge=0, le=1)]


def format_date(days: float) -> str:
    """Return the date that is ``days`` after 1970-01-01, in the form 2026-01-31."""
    return str(np.datetime64(round(days), "D"))


class FieldProfile(Value):
    """Statistics of one dictionary field, with one entry for each line of a profile.

    name, title, unit: as in the dictionary.
    n_rows: the number of rows that have a value; None if too few have one.
    mean, spread: the mean and standard deviation (divisor n) of the values. Yes and no
        count as 1 and 0, dates as days since 1970-01-01. Empty for a categorical field.
    quartiles: the three quartiles of each line. A quartile beyond the grid of the
        profile's histogram is None. Empty for a categorical field.
    levels: the labels of the levels; the last level may combine rare ones.
    shares: the proportion of each level among the rows that have a value.
    difference: the standard deviation of the lines' means, divided by the standard
        deviation within lines. A profile orders its fields by this number.
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
        """Return the text of each line, with a dash where too few rows have a value."""
        if self.levels:
            return tuple(map(self.format_shares, range(len(self.shares))))
        pairs = zip(self.mean, self.spread, strict=True)
        return tuple(itertools.starmap(self._format_mean, pairs))

    def format_shares(self, line: int) -> str:
        """Return a text with each level and its proportion of a line's rows."""
        shares = self.shares[line]
        if shares is None:
            return "–"
        pairs = zip(self.levels, shares, strict=True)
        return ", ".join(f"{level} {share:.0%}" for level, share in pairs)

    def _format_mean(self, mean: float | None, spread: float | None) -> str:
        if mean is None:
            return "–"
        if self.is_date:
            return format_date(mean)
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
    """A description of the clusters by the fields of one column group.

    own: whether the rows are those of one party, and not of all that hold these fields.
    clusters: the labels of the clusters that have a line of their own, ascending.
    others: the labels of small clusters, which share the last line.
    n_rows: the number of rows of each line; a multiple of five if ``rounded``.
    rounded: whether values were rounded for outsiders.
    fields: the profiles of the fields; the fields that differ most between clusters
        come first.
    survival: times to events; omitted from the JSON if empty.
    is_description: whether nothing was clustered; omitted from the JSON if false.
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

    def count_missing(self, field: FieldProfile) -> int | None:
        """Return how many rows of a description lack a value; None if withheld."""
        present = field.n_rows[0]
        return None if present is None else self.n_rows[0] - present

    @property
    def table(self) -> ReadableTable:
        """Return a table of means and standard deviations, or of levels' proportions."""
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
    def _dump_present(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
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

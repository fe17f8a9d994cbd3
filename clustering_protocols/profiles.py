"""What the clusters of one partition are like, field by field: the form of a profile."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from clustering_protocols.values import Value

SHARES: Final = 20
"""What is told outside are multiples of one in so many."""

Share = Annotated[float, Field(ge=0, le=1)]


class FieldProfile(Value):
    """One field of the dictionary in each line of a profile; one entry a line.

    name, title, unit: as in the dictionary.
    n_rows: rows that have a value. An entry is None where too few have.
    mean, spread: of the values; a spread divides by the number of rows. Of yes and no,
        0 and 1; of a date, days since 1970-01-01. Empty for a field of levels.
    quartiles: first, second and third, on the profile's grid. None where the grid does
        not reach them. Empty for a field of levels.
    levels: how people call them; the last may stand for rare ones together.
    shares: of the rows that have a value, in the order of ``levels``.
    difference: how far the field sets the lines apart, from 0: the spread of the lines'
        means over the spread within them; fields are ordered by it.
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


class Profile(Value):
    """What sets the clusters apart over the fields of one column group.

    Attributes
    ----------
    column : int
        The column group.
    own : bool
        Of the rows of one party alone; else of all parties that hold these fields.
    clusters : tuple of int
        The labels that have a line each, ascending.
    others : tuple of int
        The labels of small clusters, which together are one more line, the last; empty
        where there is none.
    n_rows : tuple of int
        Rows of each line.
    rounded : bool
        Whether values were rounded to be told outside.
    fields : tuple of FieldProfile
        Those that set clusters apart most come first.
    """

    column: int = Field(ge=0)
    own: bool
    clusters: tuple[int, ...]
    others: tuple[int, ...] = ()
    n_rows: tuple[int, ...]
    rounded: bool
    fields: tuple[FieldProfile, ...]


class Profiles(Value):
    """What the clusters of the chosen run are like, rounded, for everybody."""

    profiles: tuple[Profile, ...] = Field(
        description="Of each column group that three parties or more hold; empty until "
        "they are told, and where the terms do not release them to everybody."
    )

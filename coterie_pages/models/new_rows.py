"""New rows beside those of a session: how far off they are, and whether they drift."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clustering_protocols.common.values import Value


class VariableDrift(Value):
    """One column of new rows beside the trained ones.

    then, now: the mean, in the units of the table; the share of rows of a yes and no or
        of a level. None where it is not known.
    is_share, is_date: whether these are shares, or days since 1970-01-01.
    missing_then, missing_now: shares of rows without a value.
    shift: of the mean as it was clustered, in standard deviations of the trained rows;
        None where it is not known, or the trained rows are all alike.
    outside: share of the new rows outside the trained range; None where none is known.
    """

    name: str
    unit: str = ""
    is_share: bool = False
    is_date: bool = False
    then: float | None = None
    now: float | None = None
    missing_then: float | None = None
    missing_now: float | None = None
    shift: float | None = None
    outside: float | None = None
    drifted: bool = False


class ClusterDrift(Value):
    """One cluster: new rows in it, and the shares of own rows then and now."""

    cluster: int = Field(ge=0)
    n_rows: int = Field(ge=0)
    then: float | None = None
    now: float
    drifted: bool = False


class NewRowsSummary(Value):
    """What may be said of new rows as a whole.

    n_rows, n_labelled: how many there are, and how many have a label.
    n_trained: how many own rows the session clustered; None where it was not kept.
    drift: ``none``, ``drifted``, or ``unknown`` where nothing can be said.
    sentences: what has drifted, or why nothing can be said.
    outside: share of the rows with at least one value outside the trained range.
    range_of: whose range that is; empty where none is known.
    by_chance: the share outside that rows without drift have at most, in the mean; None
        where the range is not that of the own rows.
    farthest: the largest distance to the centre of the own cluster; None where a party
        knows no centre.
    variables: those that moved most come first.
    more_variables: how many more there are.
    """

    n_rows: int = Field(ge=0)
    n_labelled: int = Field(ge=0)
    n_trained: int | None = None
    drift: Literal["none", "drifted", "unknown"]
    sentences: tuple[str, ...] = ()
    outside: float | None = None
    range_of: str = ""
    by_chance: float | None = None
    farthest: float | None = None
    clusters: tuple[ClusterDrift, ...] = ()
    variables: tuple[VariableDrift, ...] = ()
    more_variables: int = Field(default=0, ge=0)


class MovesTable(Value):
    """Rows that are named in two files of labels, by cluster before and after.

    common, gone, new: rows in both files, in the first alone, in the second alone.
    moved: of the common ones, how many are in another cluster.
    after: the clusters of the columns, in words.
    lines: a cluster before in words, the counts of its rows by column, and which cluster
        counts as the same one.
    """

    common: int = Field(ge=0)
    gone: int = Field(ge=0)
    new: int = Field(ge=0)
    moved: int = Field(ge=0)
    after: tuple[str, ...]
    lines: tuple[tuple[str, tuple[int, ...], str], ...]

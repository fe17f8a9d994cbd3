"""New rows beside those of a session: how far off they are."""

from __future__ import annotations

from pydantic import Field

from clustering_protocols.common.values import Value


class VariableDrift(Value):
    """One column of new rows beside the trained ones.

    then, now: the mean, in the units of the table; the share of rows of a yes and no or
        of a level. None where it is not known.
    is_share, is_date: whether these are shares, or days since 1970-01-01.
    missing_then, missing_now: shares of rows without a value.
    shift: of the mean as it was clustered, in standard deviations of the trained rows;
        None where these are all alike.
    outside: share of the new rows outside the trained range.
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
    outside: float


class ClusterDrift(Value):
    """One cluster: new rows in it, and the shares of own rows then and now."""

    cluster: int = Field(ge=0)
    n_rows: int = Field(ge=0)
    then: float | None = None
    now: float


class NewRowsSummary(Value):
    """What may be said of new rows as a whole.

    n_rows, n_labelled: how many there are, and how many have a label.
    n_trained: how many own rows the session clustered.
    outside: share of the rows with at least one value outside the range of the own
        trained rows.
    by_chance: the share outside that rows of the same distribution have at most, in the
        mean.
    farthest: the largest distance to the centre of the own cluster; None where a party
        knows no centre.
    variables: those that moved most come first.
    more_variables: how many more there are.
    """

    n_rows: int = Field(ge=0)
    n_labelled: int = Field(ge=0)
    n_trained: int
    outside: float
    by_chance: float
    farthest: float | None = None
    clusters: tuple[ClusterDrift, ...] = ()
    variables: tuple[VariableDrift, ...] = ()
    more_variables: int = Field(default=0, ge=0)

"""What came of a session: for a party, and for its coordinator."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value
from clustering_protocols.numerics.outcomes import OutcomeTable
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.wire.answers import RunLine
from coterie_pages.models.parts import (
    AuditRow,
    Matrix,
    Points,
    SentLine,
    SlotEntry,
    Versions,
)
from coterie_pages.models.screens import Screen
from coterie_pages.models.sheet import TermsSheet


class _Report(Value):
    """What both sides' reports say.

    sheet: the terms, whole. None for a coordinator on another machine than that on
        which the session was opened: only there can they be checked.
    agreement: SHA-256 of the agreement, hex; empty until all have joined.
    safety_number: empty until all have joined.
    sizes: rows of all parties in each cluster of the chosen run; empty where nobody
        tells.
    names: what people at home call each cluster; '' for those without a name.
    centroids: of the chosen run, where protocol and terms let them out.
    told: what else the protocol tells of the result.
    outcomes: intervals and tests of described variables, of profiles that have some.
    measured: agreement of this method with pooled clustering on the worst and the best
        public data set; None where it was not measured.
    way: the protocol's name for that way.
    """

    session: str
    title: str
    protocol: str
    sheet: TermsSheet | None
    agreement: str = ""
    seats: tuple[SlotEntry, ...] = ()
    safety_number: str = ""
    runs: tuple[RunLine, ...] = ()
    sizes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    centroids: Matrix | None = None
    told: dict[str, Any] = Field(default={})
    profiles: tuple[Profile, ...] = ()
    outcomes: tuple[OutcomeTable, ...] = ()
    way: str = ""
    measured: tuple[float, float] | None = None
    versions: Versions


class RunReport(_Report):
    """What a party may say of its own run of a session.

    complete: whether the result is there.
    ended: how the session ended without one, as far as the party was told.
    n_rows: rows of the party's table; None until it has joined.
    linked: how many of them are linked to rows of others, as ``n of m``.
    own_sizes: how many of them are in each cluster.
    odd: sentences on clusters that hold own rows alone, or none of them.
    without: how many are in none, or did not take part.
    points: the party's own rows on two axes.
    accepted: the risk codes that were accepted.
    mapping: the keyed digest of the mapping of the table; empty without one.
    left: the party's log, after its chain was checked.
    """

    kind: Literal["run-report"] = "run-report"
    slot: str
    complete: bool
    ended: str = ""
    n_rows: int | None = None
    linked: str = ""
    own_sizes: tuple[int, ...] = ()
    odd: tuple[str, ...] = ()
    without: int = Field(default=0, ge=0)
    points: Points | None = None
    accepted: tuple[str, ...] = ()
    mapping: str = ""
    left: tuple[SentLine, ...] = ()


class SessionReport(_Report):
    """What a coordinator may say of a session.

    state, reason: where it stands, and the problem that ended it early.
    audit: the analyst's log, after its chain and signature were checked.
    signed_by: the fingerprint of the key that signed it.
    """

    kind: Literal["session-report"] = "session-report"
    state: str
    reason: str = ""
    created_at: AwareDatetime
    risks: tuple[str, ...]
    audit: tuple[AuditRow, ...] = ()
    signed_by: str = ""


class OwnRun(Value):
    """What one number of clusters makes of the own rows.

    own_sizes: own rows in each cluster; sizes: rows of all parties.
    profile: of the own rows; None without a dictionary.
    """

    n_clusters: int
    own_sizes: tuple[int, ...]
    sizes: tuple[int, ...]
    profile: Profile | None


class RunOverlap(Value):
    """How the clusters of two runs share the own rows: a row for each of the first."""

    first: int
    second: int
    counts: tuple[tuple[int, ...], ...]


class OwnRunsPage(Screen):
    """Each number of clusters over the own rows: sizes, profile, and what moves."""

    template = "desk/own-runs.html.j2"
    title: str
    session: str
    slot: str
    runs: tuple[OwnRun, ...]
    overlaps: tuple[RunOverlap, ...]


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

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

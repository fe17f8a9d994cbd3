"""What came of a session: for a party, and for its coordinator."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from clustering_protocols.profiles import Profile
from clustering_protocols.values import Value
from coterie_pages.models.parts import (
    Expected,
    Left,
    Line,
    Matrix,
    Points,
    Run,
    Seat,
    Versions,
)
from coterie_pages.models.sheet import TermsSheet


class _Report(Value):
    """What both sides' reports say.

    Attributes
    ----------
    sheet : TermsSheet
        The terms, whole. None for a coordinator on another machine than that on which
        the session was opened: only there can they be checked.
    agreement : str
        SHA-256 of the agreement, hex; empty until all have joined.
    safety_number : str
        Empty until all have joined.
    sizes : tuple of int
        Rows of all parties in each cluster of the chosen run; empty where nobody tells.
    centroids : Matrix, optional
        Of the chosen run, where protocol and terms let them out.
    told : mapping
        What else the protocol tells of the result.
    expected : tuple of Expected
        Fidelity measured for this way of this protocol.
    way : str
        The protocol's name for that way.
    """

    session: str
    title: str
    protocol: str
    sheet: TermsSheet | None
    agreement: str = ""
    seats: tuple[Seat, ...] = ()
    safety_number: str = ""
    runs: tuple[Run, ...] = ()
    sizes: tuple[int, ...] = ()
    centroids: Matrix | None = None
    told: dict[str, Any] = Field(default={})
    profiles: tuple[Profile, ...] = ()
    way: str = ""
    expected: tuple[Expected, ...] = ()
    versions: Versions


class RunReport(_Report):
    """What a party may say of its own run of a session.

    Attributes
    ----------
    complete : bool
        Whether the result is there.
    ended : str
        How the session ended without one, as far as the party was told.
    n_rows : int
        Rows of the party's table; None until it has joined.
    linked : str
        How many of them are linked to rows of others, as ``n of m``.
    own_sizes : tuple of int
        How many of them are in each cluster.
    odd : tuple of str
        Sentences on clusters that hold own rows alone, or none of them.
    without : int
        How many are in none, or did not take part.
    points : Points, optional
        The party's own rows on two axes.
    accepted : tuple of str
        The risk codes that were accepted.
    left : tuple of Left
        The party's log, after its chain was checked.
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
    left: tuple[Left, ...] = ()


class SessionReport(_Report):
    """What a coordinator may say of a session.

    Attributes
    ----------
    state, reason : str
        Where it stands, and the problem that ended it early.
    audit : tuple of Line
        The analyst's log, after its chain and signature were checked.
    signed_by : str
        The fingerprint of the key that signed it.
    """

    kind: Literal["session-report"] = "session-report"
    state: str
    reason: str = ""
    created_at: AwareDatetime
    risks: tuple[str, ...]
    audit: tuple[Line, ...] = ()
    signed_by: str = ""

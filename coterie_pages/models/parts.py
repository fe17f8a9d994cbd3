"""What several pages say: who, which risk, which run, what left."""

from __future__ import annotations

from typing import Any

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value
from clustering_protocols.terms.risks import Harm, RiskLevel


class NamedInstitution(Value):
    """An institution.

    name: of its trusted card, else as it calls itself; empty where it gives none.
    known: whether its card was trusted here, or it is the reader's own.
    fingerprint: of its public key.
    """

    name: str = ""
    known: bool
    fingerprint: str


class Learns(Value):
    """Who learns what."""

    who: str
    what: str


class Risk(Value):
    """What the terms let others learn or do: a code, and its sentence.

    level: where it comes from; see
        :class:`~clustering_protocols.terms.risks.RiskLevel`.
    harm: the worst that can follow.
    measured, remedy, detail: what was measured, what would remove it, and when it holds.
    readers: who learns what, of what is so in any session.
    """

    code: str
    sentence: str
    level: RiskLevel = RiskLevel.DESIGN
    harm: Harm = Harm.RESULT
    measured: str = ""
    remedy: str = ""
    detail: str = ""
    readers: tuple[Learns, ...] = ()


class Versions(Value):
    """What wrote a page, and which release of the protocol it speaks of."""

    coterie: str
    protocol: int
    terms: int


class SlotEntry(Value):
    """A slot, and who sits there.

    row, column: the groups, from 0.
    state: as the analyst says it; empty where nobody has asked it.
    reason: why somebody does not sit there: a check's name, or words.
    n_rows, n_columns: None until somebody has joined.
    """

    slot: str
    title: str = ""
    row: int = Field(ge=0)
    column: int = Field(ge=0)
    who: NamedInstitution | None = None
    own: bool = False
    state: str = ""
    reason: str = ""
    joined_at: AwareDatetime | None = None
    n_rows: int | None = None
    n_columns: int | None = None


class Matrix(Value):
    """Numbers in rows, one for each cluster; ``columns`` may be empty: no names."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[float, ...], ...]


class Points(Value):
    """Own rows on their two principal axes. No ids: a point has a place and a cluster.

    x, y: standardised rows on the axes.
    labels: the cluster of each; -1 for none.
    explained: the share of the spread that each axis shows.
    n_rows: how many rows there are; fewer may be drawn.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    labels: tuple[int, ...]
    explained: tuple[float, float]
    n_rows: int = Field(ge=0)


class SentLine(Value):
    """One line of what left a party, or what the analyst acknowledged.

    number: of the line, in the party's log.
    digest: SHA-256 of what left.
    size: in bytes, where the line has one.
    entry: the number of the receipt's line in the analyst's audit.
    told: what the operator was told before it left.
    """

    number: int = Field(ge=1)
    at: AwareDatetime
    event: str
    round: int = Field(default=0, ge=0)
    attempt: int = Field(default=0, ge=0)
    digest: str = ""
    size: int | None = None
    entry: int | None = None
    signed: bool = False
    told: dict[str, Any] = Field(default={})


class AuditRow(Value):
    """One line of the analyst's audit."""

    number: int = Field(ge=1)
    at: AwareDatetime
    event: str
    slot: str = ""
    round: int = Field(default=0, ge=0)
    attempt: int = Field(default=0, ge=0)
    reason: str = ""
    digest: str = ""

"""What a simulated session leaves: messages, costs, and how it went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from clustering_protocols.arrays import IntArray
from clustering_protocols.contract import Outcome, Trace
from clustering_protocols.figures import Figures
from clustering_protocols.records import Record

Timer = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One message as it travelled."""

    sender: str
    receiver: str
    round: int
    attempt: int
    payload: bytes = field(repr=False)


@dataclass(slots=True, kw_only=True)
class Cost:
    """What a role spent."""

    seconds: float = 0.0
    sent_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulated:
    """How a session went.

    Attributes
    ----------
    outcomes : mapping of slot to Outcome
        Labels in the order of that slot's own rows.
    orders : mapping of slot to int64 array
        ``orders[slot][k]`` is the slot's row that travelled at position k.
    summary : Record, optional
        What the coordinator reads.
    figures : sequence of Figures
        Of each run, as the coordinator reads them.
    chosen : int
        Which of the runs the outcomes are of.
    trace : Trace
        What the session left, for the pooled reference.
    sent : list of Sent
        Every message, in order.
    costs : mapping of role to Cost
    """

    outcomes: Mapping[str, Outcome] = field(repr=False)
    orders: Mapping[str, IntArray] = field(repr=False)
    summary: Record | None
    figures: Sequence[Figures]
    chosen: int
    trace: Trace = field(repr=False)
    sent: Sequence[Sent] = field(repr=False)
    costs: Mapping[str, Cost]
    rounds: int

"""What a simulated session leaves: messages, costs, and how it went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from clustering_protocols.contract import Outcome, Trace
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.records.record import Record

Timer = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
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
class SimulationResult:
    """How a session went.

    outcomes: labels in the order of that slot's own rows.
    orders: mapping of slot to int64 array; ``orders[slot][k]`` is the slot's row that
        travelled at position k.
    summary: what the coordinator reads.
    figures: of each run, as the coordinator reads them.
    chosen: which of the runs the outcomes are of.
    trace: what the session left, for the pooled reference.
    sent: every message, in order.
    """

    outcomes: Mapping[str, Outcome] = field(repr=False)
    orders: Mapping[str, IntArray] = field(repr=False)
    summary: Record | None
    figures: Sequence[Figures]
    chosen: int
    trace: Trace = field(repr=False)
    sent: Sequence[SentMessage] = field(repr=False)
    costs: Mapping[str, Cost]
    rounds: int

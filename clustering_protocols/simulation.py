"""A whole session in one process: every role, every message through the codec.

This runs the same functions on the same bytes as the service and the SDK do. With the
same session id and the same entropy an HTTP session ends with the same labels, bit for
bit; :func:`entropies` says which entropy a simulation of a seed uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from clustering_protocols import engine, enrolment, registry
from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import (
    Memory,
    Outcome,
    Params,
    Selection,
    Trace,
)
from clustering_protocols.data import DataSource, MatrixSource
from clustering_protocols.metrics import adjusted_rand
from clustering_protocols.preparation.alignment import RowOrder
from clustering_protocols.randomness import length_prefixed
from clustering_protocols.records import Record
from clustering_protocols.registry import Proposal
from clustering_protocols.terms import Layout

ANALYST = "analyst"
COORDINATOR = "coordinator"

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
    trace : Trace
        What the session left, for the pooled reference.
    sent : list of Sent
        Every message, in order.
    costs : mapping of role to Cost
    """

    outcomes: Mapping[str, Outcome] = field(repr=False)
    orders: Mapping[str, IntArray] = field(repr=False)
    summary: Record | None
    trace: Trace = field(repr=False)
    sent: Sequence[Sent] = field(repr=False)
    costs: Mapping[str, Cost]
    rounds: int


def entropies(seed: int, session: str, names: Sequence[str]) -> dict[str, bytes]:
    """Return 32 bytes per slot, and for the coordinator, that a seed stands for."""
    return {
        name: hashlib.sha256(
            length_prefixed("coterie/simulation/1", seed, session, name)
        ).digest()
        for name in (COORDINATOR, *names)
    }


def run(
    params: Params,
    layout: Layout,
    data: Mapping[str, DataSource],
    seed: int,
    *,
    session: str = "simulation",
    timer: Timer = lambda: 0.0,
) -> Simulated:
    """Run a session of all slots.

    Parameters
    ----------
    params : Params
        Parameters of any protocol of the catalogue.
    layout : Layout
    data : mapping of slot to DataSource
    seed : int
        Stands for all entropy of coordinator and parties, and is the terms' seed.
    timer : callable, optional
        A clock in seconds, where costs are wanted.

    Raises
    ------
    CoterieError
        Where a session over HTTP would end with that problem.
    """
    for source in data.values():
        params.check_rows(source)
    keys = entropies(seed, session, layout.names)
    secret = enrolment.session_secret(keys[COORDINATOR], session)
    terms = registry.draw_up(
        session,
        Proposal(
            title=session,
            protocol=registry.name_of(params),
            params=params.model_dump(mode="json"),
            layout=layout,
            seed=seed,
        ),
    )
    roster = {
        slot: enrolment.enrol(
            secret, session, slot, keys[slot], source.n_rows, len(source.columns)
        )
        for slot, source in data.items()
    }
    agreement = enrolment.agree(terms, roster)
    parties = {
        slot: engine.PartyEngine(agreement=agreement, slot=slot, entropy=keys[slot])
        for slot in layout.names
    }
    return _Run(agreement, parties, data, timer).to_the_end()


class _Run:
    def __init__(
        self,
        agreement: bytes,
        parties: Mapping[str, engine.PartyEngine],
        data: Mapping[str, DataSource],
        timer: Timer,
    ) -> None:
        self.agreement = agreement
        self.parties = parties
        self.data = data
        self.timer = timer
        self.memories = {slot: Memory() for slot in parties}
        self.costs = {role: Cost() for role in (ANALYST, *parties)}
        self.sent: list[Sent] = []

    def to_the_end(self) -> Simulated:
        with self.clock(ANALYST):
            move = engine.begin(self.agreement)
        rounds = 0
        while isinstance(move, engine.Opened):
            rounds, move = move.round, self.one_round(move)
        return self.conclude(move, rounds)

    def one_round(self, opened: engine.Opened) -> engine.Opened | engine.Closed:
        for slot, task in opened.tasks.items():
            self.record(ANALYST, slot, opened, task)
        replies = {slot: self.reply(slot, task) for slot, task in opened.tasks.items()}
        contributions = {slot: reply.contribution for slot, reply in replies.items()}
        for slot, contribution in contributions.items():
            self.record(slot, ANALYST, opened, contribution)
        with self.clock(ANALYST):
            move = engine.advance(
                self.agreement, opened.state, opened.tasks, contributions
            )
        reopened = isinstance(move, engine.Opened) and move.round == opened.round
        if not reopened:  # a void attempt leaves the memory before the round
            self.memories |= {slot: reply.memory for slot, reply in replies.items()}
        return move

    def reply(self, slot: str, task: bytes) -> engine.Answer:
        with self.clock(slot):
            return self.parties[slot].reply(self.memories[slot], task, self.data[slot])

    def conclude(self, closed: engine.Closed, rounds: int) -> Simulated:
        outcomes = {
            slot: self.parties[slot].conclude(
                self.memories[slot], result, self.data[slot]
            )
            for slot, result in closed.results.items()
        }
        summary = (
            engine.read_result(self.agreement, closed.summary)
            if closed.summary
            else None
        )
        context, _ = engine.load(self.agreement)
        return Simulated(
            outcomes=outcomes,
            orders={slot: self.order(slot) for slot in self.parties},
            summary=summary,
            trace=Trace(session=context, summary=summary, memories=self.memories),
            sent=self.sent,
            costs=self.costs,
            rounds=rounds,
        )

    def order(self, slot: str) -> IntArray:
        memory = self.memories[slot]
        selection, order = memory.get(Selection), memory.get(RowOrder)
        rows = selection.rows if selection else np.arange(self.data[slot].n_rows)
        return rows if order is None else rows[order.order]

    def record(
        self, sender: str, receiver: str, opened: engine.Opened, payload: bytes
    ) -> None:
        self.costs[sender].sent_bytes += len(payload)
        self.sent.append(
            Sent(
                sender=sender,
                receiver=receiver,
                round=opened.round,
                attempt=opened.attempt,
                payload=payload,
            )
        )

    @contextmanager
    def clock(self, role: str) -> Iterator[None]:
        begin = self.timer()
        yield
        self.costs[role].seconds += self.timer() - begin


# One table, split as the layout says


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """A pooled matrix cut into the cells of a lattice.

    Attributes
    ----------
    rows, columns : list of int64 array
        Row numbers of each row group, column numbers of each column group.
    held : mapping of slot to int64 array
        The row numbers of each party's rows, in its order.
    data : mapping of slot to MatrixSource
    """

    layout: Layout
    rows: Sequence[IntArray]
    held: Mapping[str, IntArray] = field(repr=False)
    columns: Sequence[IntArray]
    data: Mapping[str, MatrixSource] = field(repr=False)


def split(
    X: FloatArray,
    layout: Layout,
    seed: int,
    columns: Sequence[str] | None = None,
    missing: float = 0.0,
) -> Split:
    """Shuffle rows and columns by the seed and deal them out evenly to the layout.

    Parameters
    ----------
    missing : float
        The share of rows that each party lacks. Above 0, parties of a row group hold
        different rows, each in an order of its own.
    """
    rng = np.random.default_rng(seed)
    rows = np.array_split(rng.permutation(X.shape[0]), layout.n_row_groups)
    cols = np.array_split(rng.permutation(X.shape[1]), layout.n_column_groups)
    names = columns or [f"x{index}" for index in range(X.shape[1])]
    held = {slot.name: _held(rows[slot.row], missing, rng) for slot in layout.slots}
    data = {
        slot.name: MatrixSource(
            X[np.ix_(held[slot.name], cols[slot.column])],
            columns=[names[index] for index in cols[slot.column]],
            ids=[str(index) for index in held[slot.name]],
        )
        for slot in layout.slots
    }
    return Split(layout=layout, rows=rows, columns=cols, held=held, data=data)


def _held(rows: IntArray, missing: float, rng: np.random.Generator) -> IntArray:
    """Return the rows of a group that one party holds."""
    if missing == 0:
        return rows
    held: IntArray = rng.permutation(rows)[: len(rows) - round(missing * len(rows))]
    return held


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """A simulated session beside the same clustering on pooled data.

    Attributes
    ----------
    labels, pooled : int64 arrays of shape (n,)
        In the order of the pooled matrix; -1 for rows that did not take part.
    fidelity : float
        Adjusted Rand index between the two.
    """

    labels: IntArray = field(repr=False)
    pooled: IntArray = field(repr=False)
    fidelity: float
    simulated: Simulated


def evaluate(
    params: Params,
    X: FloatArray,
    parts: Split,
    seed: int,
    *,
    session: str = "simulation",
    timer: Timer = lambda: 0.0,
) -> Evaluated:
    """Simulate a session over a split of X and measure its fidelity."""
    simulated = run(
        params, parts.layout, parts.data, seed, session=session, timer=timer
    )
    labels = np.full(len(X), -1, dtype=np.int64)
    travelled: list[IntArray] = []
    for row in range(parts.layout.n_row_groups):
        first = parts.layout.row_group(row)[0]
        numbers = parts.held[first]
        labels[numbers] = simulated.outcomes[first].labels
        travelled.append(numbers[simulated.orders[first]])
    order = np.concatenate(travelled)
    known = registry.protocol(registry.name_of(params))
    pooled = np.full(len(X), -1, dtype=np.int64)
    columns = np.concatenate(list(parts.columns))
    pooled[order] = known.pooled(params, X[np.ix_(order, columns)], simulated.trace)
    return Evaluated(
        labels=labels,
        pooled=pooled,
        fidelity=adjusted_rand(pooled[order], labels[order]),
        simulated=simulated,
    )

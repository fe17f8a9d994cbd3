"""What a protocol is.

A session is a chain of *stages*. A stage is rounds: the analyst role asks every party
for one record (the task), the party role replies with one record (the contribution) and
may send records to other parties in envelopes, which the analyst relays with the next
task. The analyst's state between rounds and the party's memory are records too.

A protocol is one folder under ``protocols/`` with a ``PROTOCOL`` of the class below.
Roles are pure: what they need comes in as arguments, chance included.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.data import DataSource
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.randomness import KeyedStream, derive_key, generator
from clustering_protocols.records import Record
from clustering_protocols.secrecy.keys import party_keys
from clustering_protocols.suitability import Way
from clustering_protocols.terms import Agreement, Layout, Member, Slot, Terms


class Params(BaseModel):
    """Base of a protocol's parameters: limits and descriptions become the API schema."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What both roles know once all parties have joined."""

    agreement: Agreement = field(repr=False)
    agreement_digest: str
    terms: Terms = field(repr=False)
    params: Params

    @property
    def layout(self) -> Layout:
        """Return the lattice of slots."""
        return self.terms.layout

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the names of all slots in order."""
        return self.terms.layout.names

    def member(self, slot: str) -> Member:
        """Return the roster's line of a slot."""
        return self.agreement.member(slot)

    def generator(self, *labels: str | int) -> np.random.Generator:
        """Return the analyst's generator for one use, the same on every machine."""
        return generator(self.terms.seed, self.terms.session, *labels)


# What the analyst role returns


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One more round.

    Attributes
    ----------
    state : Record
        What the analyst role wants back at the next step.
    tasks : mapping of slot to Record
        One task per slot that takes part.
    expects : type of Record
        The kind of contribution that answers these tasks.
    dims : mapping of slot to mapping of symbol to int
        Sizes that the contribution's arrays must have.
    quorum : int, optional
        How many contributions suffice once the deadline has passed; None for all.
    progress : mapping
        JSON values for those who watch: how far a protocol of many rounds has come.
    """

    state: Record
    tasks: Mapping[str, Record]
    expects: type[Record]
    dims: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    quorum: int | None = None
    progress: Mapping[str, Any] = field(default_factory=dict)


def ask_all(
    plan: Plan,
    task: Record,
    *,
    expects: type[Record],
    state: Record,
    dims: Mapping[str, Mapping[str, int]] | None = None,
    quorum: int | None = None,
    progress: Mapping[str, Any] | None = None,
) -> Ask:
    """Return a round in which every slot gets the same task; see :class:`Ask`."""
    return Ask(
        state=state,
        tasks=dict.fromkeys(plan.slots, task),
        expects=expects,
        dims=dims or {},
        quorum=quorum,
        progress=progress or {},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The round is void: open it again under a new attempt.

    Attributes
    ----------
    state : Record
    reason : str
        Why, for the reader of a session that was void too often.
    ask : Ask, optional
        What is asked now, for example of fewer slots; None for the same tasks. Its
        state counts, and envelopes of the round before come along again.
    """

    state: Record
    reason: str
    ask: Ask | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The stage is over; the last stage hands out results and a summary.

    Attributes
    ----------
    results : mapping of slot to Record
        What each slot may read; labels go to the slots of their row group only.
    summary : Record, optional
        What the coordinator may read.
    """

    results: Mapping[str, Record] = field(default_factory=dict)
    summary: Record | None = None


class AnalystRole(ABC):
    """The analyst's side of a stage: pure, deterministic.

    Class attributes
    ----------------
    state : type of Record
        What :meth:`start` and :meth:`step` leave in ``Ask.state``.
    """

    state: ClassVar[type[Record]]

    @abstractmethod
    def start(self, plan: Plan) -> Ask | Finish:
        """Return the first round, or Finish where there is nothing to ask."""

    @abstractmethod
    def step(
        self, plan: Plan, state: Record, contributions: Mapping[str, Record]
    ) -> Ask | Again | Finish:
        """Return what follows from a round's contributions, in slot order.

        Raises :class:`~clustering_protocols.errors.CoterieError` where the session
        cannot go on; its problem becomes the reason of the session's end.
        """


# What the party role sees and returns


class Memory:
    """What a party keeps between rounds: encoded records by kind; a value."""

    def __init__(self, entries: Mapping[str, bytes] | None = None) -> None:
        self.entries = dict(entries or {})

    def remember(self, records: Sequence[Record]) -> Memory:
        """Return a memory with these records added; the newest of a kind stays."""
        added = {record.kind: record.encode() for record in records}
        return Memory(self.entries | added)

    def recall(self, kind: type[R]) -> R | None:
        """Return the record of a kind, or None."""
        encoded = self.entries.get(kind.kind)
        return None if encoded is None else kind.decode(encoded)

    def __repr__(self) -> str:
        return f"<Memory {sorted(self.entries)}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Where a party stands in a session, and what it may draw from.

    ``choices`` are what this party decides alone, for example a reduction of its own or
    a limit above which it refuses; no other role learns of them.
    """

    plan: Plan
    slot: Slot
    stage: str
    round: int
    attempt: int
    memory: Memory
    entropy: bytes = field(repr=False)
    choices: Mapping[str, Any] = field(default_factory=dict)

    def recall(self, kind: type[R]) -> R:
        """Return a remembered record that an earlier stage must have left.

        Raises :class:`ProtocolFailed` if none came, for example from a group's first
        slot.
        """
        record = self.memory.recall(kind)
        if record is None:
            raise ProtocolFailed(f"No {kind.kind!r} came in an earlier stage.")
        return record

    def pairwise_stream(self, peer: str, *labels: bytes | str | int) -> KeyedStream:
        """Return the stream that this party and one other draw alike, for one use.

        Nothing is sent for it: both derive it from their keys, under the agreement.
        """
        keys = party_keys(self.entropy, self.plan.terms.session, self.slot.name)
        shared = keys.exchange(self.plan.member(peer).keys)
        slots = self.plan.slots
        pair = sorted((self.slot.name, peer), key=slots.index)
        salt = bytes.fromhex(self.plan.agreement_digest)
        key = derive_key(shared, "coterie/pair/1", *pair, salt=salt)
        return KeyedStream(derive_key(key, *labels))

    def stream(self, purpose: str) -> KeyedStream:
        """Return the party's own random stream for one purpose of this attempt."""
        return self._stream("coterie/draw/1", self.round, self.attempt, purpose)

    def lasting_stream(self, purpose: str) -> KeyedStream:
        """Return the party's own random stream for one purpose, whatever the attempt.

        For draws of which a second one would tell more than the first.
        """
        return self._stream("coterie/lasting-draw/1", purpose)

    def _stream(self, *labels: str | int) -> KeyedStream:
        bound = (self.plan.terms.session, self.slot.name, self.stage)
        return KeyedStream(derive_key(self.entropy, *labels, *bound))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A record for another party, to be sealed."""

    receiver: str
    content: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A record from another party; the envelope has been opened and checked."""

    sender: str
    content: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A contribution, envelopes to other parties, what to remember and what to note.

    ``notes`` are for the operator, who reads them before the contribution is sent.
    ``inputs`` marks what the contribution was computed from, beside the party's data: a
    party answers all attempts of a round from the same inputs, or not at all.
    """

    contribution: Record
    envelopes: Sequence[Outgoing] = ()
    remember: Sequence[Record] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    inputs: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What a party gets, in the order of its own rows.

    Attributes
    ----------
    labels : int64 array of shape (n_rows,)
    cluster_sizes : int64 array of shape (n_clusters,), optional
        Rows per cluster over all parties.
    centroids : float64 array, optional
    coordinates : float64 array of shape (n_rows, dimensions), optional
        The rows in the space of the centroids.
    memberships : float64 array of shape (n_rows, n_clusters), optional
    item_memberships : float64 array of shape (n_clusters, n_columns), optional
        How much each column belongs to each cluster.
    predict : callable, optional
        Labels new rows at home, where protocol and terms allow it.
    report : mapping
        JSON values worth showing to the operator.
    """

    labels: IntArray = field(repr=False)
    cluster_sizes: IntArray | None = field(default=None, repr=False)
    centroids: FloatArray | None = field(default=None, repr=False)
    coordinates: FloatArray | None = field(default=None, repr=False)
    memberships: FloatArray | None = field(default=None, repr=False)
    item_memberships: FloatArray | None = field(default=None, repr=False)
    predict: Callable[[DataSource], IntArray] | None = field(default=None, repr=False)
    report: Mapping[str, Any] = field(default_factory=dict)


class PartyRole(ABC):
    """A party's side of a stage: a function of view, task and data."""

    @abstractmethod
    def reply(self, view: View, task: Record, data: DataSource) -> Reply:
        """Return the answer to a task."""

    def receive(self, view: View, envelopes: Sequence[Incoming]) -> Sequence[Record]:
        """Return what to remember of the envelopes that this stage's round sent."""
        del view
        if envelopes:
            raise ValueError(f"{type(self).__name__} sends envelopes it cannot receive")
        return ()

    def conclude(self, view: View, result: Record, data: DataSource | None) -> Outcome:
        """Return what the operator gets from the result of the last stage.

        ``data`` is None where the result is read again later, without the rows.
        """
        raise ValueError(f"{type(self).__name__} is not the role of a last stage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Two roles that talk to each other, and the closed list of their records."""

    name: str
    analyst: AnalystRole
    party: PartyRole
    records: tuple[type[Record], ...]

    def record(self, kind: Any) -> type[Record] | None:
        """Return the class of a kind, or None where this stage has no such record."""
        return next((record for record in self.records if record.kind == kind), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Example(Generic[P]):
    """Parameters, layout and made data on which a protocol shows what it does.

    The conformance suite runs every example of every protocol.
    """

    params: P
    layout: Layout
    X: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a simulated session left: its plan, summary and every party's memory."""

    plan: Plan
    summary: Record | None
    memories: Mapping[str, Memory] = field(repr=False)


class ClusteringProtocol(ABC, Generic[P]):
    """A protocol of the catalogue.

    Class attributes
    ----------------
    title, summary : str
    version : int
        Raised with any change that an older party would not understand.
    params : type of Params
    partitionings : tuple of str
        Of ``horizontal``, ``vertical``, ``mixed``.
    learns : mapping of str to str
        Who learns what, a sentence each.
    risks : mapping of str to str
        The closed list of risk codes, without the protocol's name, a sentence each.
    choices : mapping of str to str
        What a party may decide alone, a sentence each.
    ways : tuple of Way
        What it is good for: empty for a protocol that nobody should be advised to use.
    """

    title: ClassVar[str]
    summary: ClassVar[str]
    version: ClassVar[int] = 1
    params: type[P]
    partitionings: ClassVar[tuple[str, ...]]
    learns: ClassVar[Mapping[str, str]]
    risks: ClassVar[Mapping[str, str]]
    choices: ClassVar[Mapping[str, str]] = {}
    ways: ClassVar[tuple[Way, ...]] = ()

    @abstractmethod
    def check(self, params: P, layout: Layout) -> None:
        """Raise :class:`InvalidParameters` unless parameters and layout fit."""

    @abstractmethod
    def risks_of(self, params: P, layout: Layout) -> Sequence[str]:
        """Return the risk codes that parameters and layout bring."""

    @abstractmethod
    def stages(self, params: P, layout: Layout) -> Sequence[Stage]:
        """Return the chain of stages."""

    @abstractmethod
    def examples(self) -> Sequence[Example[P]]:
        """Return small examples that together use what the parameters offer."""

    @abstractmethod
    def pooled(self, params: P, X: FloatArray, trace: Trace | None) -> IntArray:
        """Return the labels of the same clustering on pooled data.

        Parameters
        ----------
        X : float64 array of shape (n, m)
            All rows, in the order in which they travelled, columns by column group.
        trace : Trace, optional
            What a simulated session left, from which equal starts are taken.
        """

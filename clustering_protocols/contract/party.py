"""The base class of the party's side of a stage, and the values that it exchanges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import numpy as np
from typing_extensions import TypeVar

from clustering_protocols.common.errors import EnvelopeRefused, ProtocolFailed
from clustering_protocols.numerics.blocks import Engine
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.numerics.randomness import KeyedStream, derive_key
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.keys import party_keys
from clustering_protocols.terms.terms import Slot

from .session import P_co, Params, SessionContext

R = TypeVar("R", bound=Record)
P = TypeVar("P", bound=Params, default=Params)
Task = TypeVar("Task", bound=Record, default=Record)
Content = TypeVar("Content", bound=Record, default=Record)
Content_co = TypeVar("Content_co", bound=Record, covariant=True, default=Record)
Result = TypeVar("Result", bound=Record, default=Record)


class Memory:
    """A party's memory between rounds, which holds one encoded record of each kind.

    A record that is remembered within a run belongs to that run. A run reads its own
    record of a kind if there is one, otherwise the record that was remembered outside
    all runs.
    """

    def __init__(self, entries: Mapping[str, bytes] | None = None) -> None:
        self.entries = dict(entries or {})
        self._run = ""
        self._decoded: dict[str, Record] = {}

    def scope_to_run(self, run: int | None) -> Memory:
        """Return the memory as seen by roles of a run; None means outside all runs."""
        scoped = Memory(self.entries)
        scoped._run = "" if run is None else f".{run}"
        scoped._decoded = self._decoded
        return scoped

    def remember(self, records: Sequence[Record]) -> Memory:
        """Return a memory in which these records replace older ones of their kinds."""
        new_entries = {record.kind + self._run: record.encode() for record in records}
        after = Memory(self.entries | new_entries)
        after._run = self._run
        after._decoded = {
            k: r for k, r in self._decoded.items() if k not in new_entries
        }
        return after

    def get(self, kind: type[R]) -> R | None:
        """Return the remembered record of a kind, or None if there is none."""
        name = kind.kind + self._run
        if name not in self.entries:
            name = kind.kind
        encoded = self.entries.get(name)
        if encoded is None:
            return None
        if name not in self._decoded:  # decode once: roles read a record repeatedly
            self._decoded[name] = kind.decode(encoded)
        return kind.narrow(self._decoded[name])  # the dict is not typed by kind

    def __repr__(self) -> str:
        return f"<Memory {sorted(self.entries)}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyContext(Generic[P_co]):
    """The position of a party in a session, and its sources of randomness.

    choices: settings that this party makes alone, for example a limit above which it
        refuses to answer. No other role sees these settings.
    announced_rounds: the number of rounds of this stage by kind of task, including
        those in which this party was not asked.
    transcripts: the transcripts of the most recent rounds, by round and attempt.
    """

    session: SessionContext[P_co]
    slot: Slot
    stage: str
    round: int
    attempt: int
    memory: Memory
    entropy: bytes = field(repr=False)
    choices: Mapping[str, Any] = field(default_factory=dict)
    announced_rounds: Mapping[str, int] = field(default_factory=dict)
    transcripts: Mapping[tuple[int, int], str] = field(default_factory=dict, repr=False)

    def for_run(self, run: int | None) -> PartyContext[P_co]:
        """Return the context within a run; None means outside all runs."""
        return replace(
            self,
            session=self.session.for_run(run),
            memory=self.memory.scope_to_run(run),
        )

    @property
    def engine(self) -> Engine:
        """Return the engine that runs kernels over blocks of rows."""
        return self.session.engine

    @property
    def transcript(self) -> str:
        """Return the transcript (hex) up to the current attempt."""
        return self.transcript_at(self.round, self.attempt)

    def transcript_at(self, round_: int, attempt: int) -> str:
        """Return the transcript (hex) up to an attempt of one of the last rounds.

        Raises :class:`ProtocolFailed` for an attempt that the analyst did not announce.
        """
        try:
            return self.transcripts[round_, attempt]
        except KeyError:
            raise ProtocolFailed(
                f"The analyst announced no attempt {attempt} of round {round_}."
            ) from None

    def recall(self, kind: type[R]) -> R:
        """Return the remembered record of a kind; raise ProtocolFailed if there is none."""
        record = self.memory.get(kind)
        if record is None:
            raise ProtocolFailed(f"No {kind.kind!r} was stored in an earlier stage.")
        return record

    def pairwise_streams(
        self, members: Sequence[str], *labels: bytes | str | int
    ) -> Iterator[tuple[int, KeyedStream]]:
        """Yield a sign and a stream for each other member.

        Only this party and the other member can derive the stream, from their keys and
        the transcript. The sign is 1 for members after this party and -1 for those
        before it, so that the streams cancel in a sum over all members.

        members: the slots in their order, including this party.
        """
        own, salt = self.slot.name, bytes.fromhex(self.transcript)
        keys = party_keys(self.entropy, self.session.terms.session, own)
        sign = -1
        for peer in members:
            if peer == own:
                sign = 1
                continue
            shared = keys.exchange(self.session.member(peer).keys)
            pair = (own, peer) if sign > 0 else (peer, own)
            key = derive_key(shared, "coterie/pair/3", *pair, *labels, salt=salt)
            yield sign, KeyedStream(key)

    def stream(self, purpose: str) -> KeyedStream:
        """Return the party's own random stream for one purpose in this attempt."""
        return self._derive_stream("coterie/draw/2", self.transcript, purpose)

    def lasting_stream(self, purpose: str) -> KeyedStream:
        """Return the party's own random stream for one purpose, equal in all attempts.

        Use it for values that must not be drawn anew, because a second draw would
        disclose more.
        """
        return self._derive_stream("coterie/lasting-draw/1", purpose)

    def _derive_stream(self, *labels: str | int) -> KeyedStream:
        scope = (self.session.terms.session, self.slot.name, self.stage)
        return KeyedStream(derive_key(self.entropy, *labels, *scope))


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerMessage(Generic[Content_co]):
    """A record from one party to another, which the engine encrypts and decrypts.

    peer: the receiver of an outgoing message, or the sender of an incoming one.
    """

    peer: str
    content: Content_co


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A contribution, envelopes to other parties, and records to remember.

    awaits: the slots whose envelopes have to come with the next task. If the analyst
        withholds one of them, the party does not answer.
    notes: JSON values that are shown to the operator before the contribution is sent.
    asks: a question to the operator, who has to agree before the contribution is sent.
        It names the choice by which the operator agrees; empty if there is no question.
    doubts: the same for a question about rows that look wrong. A simulation stops if
        there is such a doubt, and ignores ``asks``.
    """

    contribution: Record
    envelopes: Sequence[PeerMessage] = ()
    awaits: Sequence[str] = ()
    remember: Sequence[Record] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    asks: str = ""
    doubts: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placement:
    """New rows, assigned to the clusters of a session.

    labels: int64 (n_rows,); -1 for rows that would not have taken part.
    distances: float64 (n_rows, n_clusters) or None; the distance of each row to each
        centre, in the space of the clustering. NaN for rows without a label; None if
        there are no centres.
    memberships: float64 (n_rows, n_clusters) or None; the memberships in a mixture.
    """

    labels: IntArray = field(repr=False)
    distances: FloatArray | None = field(default=None, repr=False)
    memberships: FloatArray | None = field(default=None, repr=False)

    @property
    def own_distances(self) -> FloatArray | None:
        """Return the distance of each row to its own centre (n_rows,), or None."""
        if self.distances is None:
            return None
        distances = np.full(len(self.labels), np.nan)
        has_label = self.labels >= 0
        distances[has_label] = self.distances[has_label, self.labels[has_label]]
        return distances

    @property
    def uncertainty(self) -> FloatArray | None:
        """Return the uncertainty of each row's cluster (n_rows,), from 0 to 1, or None.

        For a mixture it is 1 minus the largest membership, at most 1 - 1/k. Otherwise
        it is the ratio of the distances to the nearest and the second nearest centre,
        which requires two centres. It is NaN for rows without a label.
        """
        if self.memberships is not None:
            remainder: FloatArray = 1.0 - self.memberships.max(axis=1)
            return remainder
        if self.distances is None or self.distances.shape[1] < 2:
            return None
        nearest, second = np.partition(self.distances, 1, axis=1).T[:2]
        ratio: FloatArray = np.ones_like(second)
        np.divide(nearest, second, out=ratio, where=second != 0)
        return ratio


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """The result of a party, in the order of its rows.

    labels: int64 (n_rows,); -1 for rows that belong to no cluster or did not take part.
    cluster_sizes: int64 (n_clusters,); rows per cluster over all parties.
    centroids: float64 array.
    covariances: float64 (n_clusters, n_columns, n_columns); the covariances of a
        mixture around the centroids; 0 for categorical columns.
    coordinates: float64 (n_rows, dimensions); the rows in the space of the centroids.
    memberships: float64 (n_rows, n_clusters).
    item_memberships: float64 (n_clusters, n_columns); the degree to which each column
        belongs to each cluster.
    predict: a function with which the party assigns new rows to the clusters by itself;
        None if protocol or terms do not allow it.
    figures: the figures of all runs, if the protocol computes them.
    chosen: the number of the run to which this outcome belongs.
    profiles: released cluster profiles: first the exact ones over the party's own
        fields, then the rounded ones for everybody.
    n_took_part: how many of the party's rows took part, if some were selected.
    order: int64 (n_clusters,); the order in which the engine renumbers the clusters:
        cluster ``order[i]`` of this outcome becomes cluster i.
    report: JSON values to show to the operator.
    """

    labels: IntArray = field(repr=False)
    cluster_sizes: IntArray | None = field(default=None, repr=False)
    centroids: FloatArray | None = field(default=None, repr=False)
    covariances: FloatArray | None = field(default=None, repr=False)
    coordinates: FloatArray | None = field(default=None, repr=False)
    memberships: FloatArray | None = field(default=None, repr=False)
    item_memberships: FloatArray | None = field(default=None, repr=False)
    predict: Callable[[DataSource], Placement] | None = field(default=None, repr=False)
    figures: Sequence[Figures] = field(default=(), repr=False)
    chosen: int = 0
    profiles: Sequence[Profile] = ()
    n_took_part: int | None = None
    order: IntArray | None = field(default=None, repr=False)
    report: Mapping[str, Any] = field(default_factory=dict)


class PartyRole(ABC, Generic[P, Task, Content, Result]):
    """A party's side of a stage: a function of context, task and data.

    The class is generic in the protocol's parameters, the tasks (a union if there are
    several), the contents of envelopes, and the result. The engine refuses records of
    kinds that the stage does not declare.
    """

    @abstractmethod
    def reply(self, context: PartyContext[P], task: Task, data: DataSource) -> Reply:
        """Return the answer to a task."""

    def receive(
        self, context: PartyContext[P], envelopes: Sequence[PeerMessage[Content]]
    ) -> Sequence[Record]:
        """Return the records to remember from the envelopes that arrived in a round."""
        if envelopes:
            raise ValueError(f"{type(self).__name__} sends envelopes it cannot receive")
        return ()

    def early_outcome(self, context: PartyContext[P]) -> Outcome | None:
        """Return the outcome if it can be computed without a result, or None."""
        return None

    def conclude(
        self, context: PartyContext[P], result: Result, data: DataSource | None
    ) -> Outcome:
        """Return the operator's outcome, given the result of the last stage.

        data: the party's rows, or None if a stored result is read again without them.
        """
        raise ValueError(f"{type(self).__name__} is not the role of a last stage")


def leader_content(
    leader: str, envelopes: Sequence[PeerMessage[Content]], noun: str
) -> Content:
    """Return the content of the only envelope, which the leader of the group sends.

    Raises :class:`EnvelopeRefused` if another slot sent it, or if there are several.
    """
    if [envelope.peer for envelope in envelopes] != [leader]:
        raise EnvelopeRefused(f"{noun} came from a slot that is not the leader.")
    return envelopes[0].content

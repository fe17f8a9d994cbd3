"""What a session of a size takes: messages, files and memory, by arithmetic.

A protocol lists its rounds as :class:`Flow`: how many bytes of arrays one message of each
holds, which follows from the shapes of its records. What stands around the arrays (names,
addresses, lines of the transcript) is counted with one number for each message, measured
once; a session whose arrays are small is off by that, and takes nothing that matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from clustering_protocols.terms.terms import Layout

from .session import Params

P = TypeVar("P", bound=Params)

WORD: Final = 8
"""Bytes of a float64, an int64, and an element of a ring or field."""

ANSWER: Final = 440
"""Bytes of a contribution beside its arrays and envelopes."""

TASK: Final = 760
"""Bytes of a task beside its arrays and envelopes."""

STATE: Final = 1500
"""Bytes of what the analyst notes of a round beside arrays."""

ENVELOPE: Final = 440
"""Bytes of an envelope beside its arrays: seal, header, and its label."""

PROCESS: Final = 1 << 28
"""Bytes of an interpreter with its libraries, and of blocks of fixed size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How large a session is.

    rows, features: of all parties together, after preparation; spread evenly over row
        groups and column groups.
    updates: how many updates the algorithm takes where each is a round; by default the
        most that the parameters allow.
    """

    rows: int
    features: int
    layout: Layout
    updates: int | None = None

    @property
    def parties(self) -> int:
        """Return how many parties take part."""
        return len(self.layout.slots)

    @property
    def party_rows(self) -> int:
        """Return the rows of the party that has most."""
        return -(-self.rows // self.layout.n_row_groups)

    @property
    def party_features(self) -> int:
        """Return the features of the party that has most."""
        return -(-self.features // self.layout.n_column_groups)


class Flow(NamedTuple):
    """Rounds of one kind; sizes are bytes of arrays.

    times: how many rounds.
    answer: in the contribution of the party that sends most.
    envelopes, sealed: how many envelopes go with it, and what each of them holds.
    task: in a task, envelopes of others not counted.
    state: in what the analyst keeps of the round for itself.
    senders: how many parties send so much; the others' answers are empty. By default
        all.
    """

    times: int = 1
    answer: int = 0
    envelopes: int = 0
    sealed: int = 0
    task: int = 0
    state: int = 0
    senders: int | None = None

    @property
    def bytes_sent(self) -> int:
        """Return the bytes that a party sends in these rounds."""
        return self.times * (ANSWER + self.answer + self._sealed_bytes)

    def count_stored_bytes(self, parties: int) -> int:
        """Return the bytes that the analyst keeps of these rounds.

        Tasks and answers of all parties; an envelope lies in an answer and in the next
        task.
        """
        senders = parties if self.senders is None else self.senders
        answers = parties * ANSWER + senders * (self.answer + 2 * self._sealed_bytes)
        tasks = parties * (TASK + self.task)
        return self.times * (answers + tasks + STATE + self.state)

    @property
    def _sealed_bytes(self) -> int:
        return self.envelopes * (ENVELOPE + self.sealed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a session takes; bytes, unless it says otherwise.

    sent: by the party that sends most.
    kept: in files at the analyst at the end, before any are removed.
    analyst_memory, party_memory: anonymous memory of a step and of an answer, process
        included: bounds.
    measured_as: under which name the protocol's speed is measured; empty where it is
        not.
    analyst_work, party_work: elementary steps, in a unit of the protocol's own: speeds
        are steps per second.
    """

    rounds: int
    sent: int
    kept: int
    analyst_memory: int
    party_memory: int
    measured_as: str = ""
    analyst_work: float = 0.0
    party_work: float = 0.0


class Sizes(Generic[P]):
    """How large a session of a protocol may be, and what it takes: nothing is said here."""

    def needs(self, params: P, extent: Extent) -> Needs | None:
        """Return what a session of one run takes; None where the protocol does not say."""
        return None

    def updates_that_fit(
        self, params: Sequence[P], layout: Layout, n_rows: int
    ) -> int | None:
        """Return how many updates a party of so many rows answers in any case.

        Its audit (``sums_limit``) lets them through by default, whatever the clusters.
        None where it audits no sums.

        params: of each run.
        """
        return None

    def most_rows(self, params: P, n_features: int) -> int | None:
        """Return the most rows of all parties that fit the parameters; None: any."""
        return None

    def beyond(self, params: P) -> str:
        """Return what to do with more rows than fit, as a sentence."""
        return ""


class Traffic(NamedTuple):
    """Rounds and bytes of some flows."""

    rounds: int
    sent: int
    kept: int


def traffic(extent: Extent, flows: Sequence[Flow], results: int = 0) -> Traffic:
    """Return rounds and bytes of a whole session, signatures at both ends included.

    results: bytes of arrays of all results, and of those that the analyst holds back
        until all have signed.
    """
    whole = (Flow(), *flows, Flow())
    return Traffic(
        rounds=sum(flow.times for flow in whole),
        sent=sum(flow.bytes_sent for flow in whole),
        kept=sum(flow.count_stored_bytes(extent.parties) for flow in whole) + results,
    )

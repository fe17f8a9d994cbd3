"""What a party has answered so far, and which tasks may follow.

A party answers the tasks of a session in the order that the stages declare, each at most
as often as declared, and leaves no stage before it was asked what has to be asked there.
A new attempt repeats its round: only members may be missing. Whoever asks otherwise is
refused for good. So is who tells another past than before, or something else than the
transcript says that everybody was told. The journal lies outside the memory that a new
attempt takes back, and is on disk before an answer is sent, so no attempt and no restart
undoes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

import numpy as np
from pydantic import Field

from clustering_protocols import codec, hash_chain
from clustering_protocols.arrays import ByteArray, IntArray, Spec
from clustering_protocols.contract import Exchange, PartyContext, Stage
from clustering_protocols.engine import signatures, transcript
from clustering_protocols.engine.analyst import MAX_ATTEMPTS
from clustering_protocols.engine.stages import quorum, stage_of
from clustering_protocols.engine.transcript import Entry
from clustering_protocols.errors import TaskRefused
from clustering_protocols.packets import Packet
from clustering_protocols.records import Record
from clustering_protocols.terms import Audience

_RECENT = 3  # a sum's total is read two answers later at most
_SHRINKING = "members"  # the one field in which attempts of a round may differ


def _no_rounds() -> IntArray:
    return np.empty((0, 2), np.int64)


def _no_transcripts() -> ByteArray:
    return np.empty((0, 32), np.uint8)


class Journal(Record):
    """Where a party stands among the tasks of its session.

    Attributes
    ----------
    round, attempt : int
        Of the last task that was answered; 0 before the first.
    stage, exchange : int
        Places of its stage among the stages, and of its exchange within the stage.
    answered : dict of str to int
        How many rounds of each kind of task were answered in this stage.
    asked : str
        SHA-256 (hex) of what all attempts of the round share.
    members : list of str
        Who took part in the last attempt, where the task says so.
    stopped : str
        Why this party answers nothing any more; empty while it does.
    line : int
        The number of the transcript's last line that is known.
    recent : list of int
        The last rounds that were answered.
    when : int64 array of shape (h, 2)
        Rounds and attempts since the first of them.
    transcripts : uint8 array of shape (h, 32)
        The transcript up to each of them.
    """

    kind = "journal"
    version = 2

    round: int = 0
    attempt: int = 0
    stage: int = -1
    exchange: int = 0
    answered: dict[str, int] = Field(default_factory=dict)
    asked: str = ""
    members: list[str] = Field(default_factory=list)
    stopped: str = ""
    line: int = 0
    recent: list[int] = Field(default_factory=list)
    when: Annotated[IntArray, Spec("h", 2)] = Field(default_factory=_no_rounds)
    transcripts: Annotated[ByteArray, Spec("h", 32)] = Field(
        default_factory=_no_transcripts
    )

    @property
    def known(self) -> dict[tuple[int, int], str]:
        """Return the transcripts (hex) by round and attempt, in order."""
        digests = (bytes(row).hex() for row in self.transcripts)
        return {
            (round_, attempt): digest
            for (round_, attempt), digest in zip(
                self.when.tolist(), digests, strict=True
            )
        }

    @property
    def transcript(self) -> str:
        """Return the transcript up to the last line that is known."""
        if not len(self.transcripts):
            return hash_chain.START
        return bytes(self.transcripts[-1]).hex()

    def following(self, entries: Sequence[tuple[Entry, str]]) -> Journal:
        """Return the journal with entries that follow, each with its transcript.

        Raises
        ------
        TaskRefused
            If rounds or attempts do not count up by one.
        """
        first = min(self.recent, default=0)
        known = {when: told for when, told in self.known.items() if when[0] >= first}
        here = next(reversed(self.known), (0, 0))
        for entry, digest in entries:
            there = (entry.round, entry.attempt)
            if there not in {(here[0], here[1] + 1), (here[0] + 1, 1)}:
                raise TaskRefused(f"Attempt {there[1]} of round {there[0]} is no next.")
            known[there], here = digest, there
        digests = bytes.fromhex("".join(known.values()))
        changes = {
            "line": entries[-1][0].number if entries else self.line,
            "when": np.array(list(known), np.int64).reshape(-1, 2),
            "transcripts": np.frombuffer(digests, np.uint8).reshape(-1, 32),
        }
        return self.model_copy(update=changes)

    def stop(self, reason: str) -> Journal:
        """Return the journal of a party that answers nothing any more."""
        return self.model_copy(update={"stopped": reason})


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Decides whether a task may follow what a party has answered.

    Attributes
    ----------
    stages : sequence of Stage
    context : PartyContext
        Where the party stands, before it knows what it was told.
    acknowledged : bool
        Whether the analyst has acknowledged the party's last answer.
    """

    stages: Sequence[Stage]
    context: PartyContext
    acknowledged: bool

    def follow(self, journal: Journal, packet: Packet) -> Journal:
        """Return the journal after what a packet says that everybody was told.

        Raises
        ------
        TaskRefused
            If it does not follow what was told before, or leaves this party out of an
            attempt of a round for which it has its receipt.
        """
        if journal.stopped:
            raise TaskRefused(f"This party has stopped: {journal.stopped}")
        agreement = self.context.session.agreement_digest
        entries = transcript.follow(
            packet.history, agreement, journal.line, journal.transcript
        )
        for entry, _ in entries:
            absent = (
                entry.round == journal.round
                and self.context.slot.name in entry.left_out
            )
            if absent and self.acknowledged:
                raise TaskRefused(
                    "This party was left out of a round that it answered."
                )
        return journal.following(entries)

    def admit(self, journal: Journal, asked: Packet, task: Record) -> Journal:
        """Return the journal after a task; :class:`TaskRefused` if it may not follow.

        The journal knows what everybody was told until then: see :meth:`follow`.
        """
        self._check_task(asked)
        if asked.address.attempt > MAX_ATTEMPTS:
            raise TaskRefused(f"A round has at most {MAX_ATTEMPTS} attempts.")
        if asked.address.round == journal.round:
            return self._next_attempt(journal, asked, task)
        if asked.address.round < journal.round:
            raise TaskRefused("A task of an earlier round came.")
        self._check_opened(journal, asked)
        return self._next_round(journal, asked, task)

    def check_result(self, journal: Journal, result: Packet) -> None:
        """Refuse a result that was not signed, or before every task was answered.

        The journal knows what everybody was told until then: see :meth:`follow`.
        """
        last = len(self.stages) - 1
        self._check_skipped(journal, (last, len(self.stages[last].exchanges)))
        name, needed = self.stages[last].name, quorum(self.context.session)
        signatures.check(
            self.context.session, name, journal.transcript, result.signatures, needed
        )
        audience = self.stages[last].results_to
        self._check_told(self._entry(result), audience, result.record_digest())

    def _check_task(self, asked: Packet) -> None:
        """Refuse a task of which the transcript says otherwise."""
        entry = self._entry(asked)
        if asked.address.stage == self.stages[-1].name:
            return  # of the closing it says what the results are
        stage = stage_of(self.stages, asked)
        exchange = stage.exchange_of(asked.header.record["kind"])
        digest = asked.record_digest(exchange.own)
        self._check_told(entry, exchange.audience, digest)

    def _entry(self, packet: Packet) -> Entry:
        """Return what the transcript says of a packet's round."""
        if not packet.history:
            raise TaskRefused("The analyst does not say what everybody was told.")
        entry = transcript.last(packet.history)
        if (
            entry.when != packet.address.when
            or self.context.slot.name in entry.left_out
        ):
            raise TaskRefused("Everybody was told of another round.")
        return entry

    def _check_told(self, entry: Entry, audience: Audience, digest: str) -> None:
        groups = self.context.session.layout.audiences(audience)
        own = next(
            n for n, group in enumerate(groups) if self.context.slot.name in group
        )
        if entry.told[own : own + 1] != (digest,):
            raise TaskRefused("Others were told something else.")

    def _check_opened(self, journal: Journal, asked: Packet) -> None:
        """Refuse to go on from the opening without everybody's signature of it."""
        if journal.stage == 0:
            opened = journal.known[journal.round, journal.attempt]
            least, name = len(self.context.session.slots), self.stages[0].name
            signatures.check(
                self.context.session, name, opened, asked.signatures, least
            )

    def _next_attempt(self, journal: Journal, asked: Packet, task: Record) -> Journal:
        members, shared = _members(task), _shared(asked)
        if asked.address.attempt < journal.attempt:
            raise TaskRefused("A task of an earlier attempt came.")
        if shared != journal.asked or not set(members) <= set(journal.members):
            raise TaskRefused("A new attempt asks something else than its round.")
        return journal.model_copy(
            update={"attempt": asked.address.attempt, "members": members}
        )

    def _next_round(self, journal: Journal, asked: Packet, task: Record) -> Journal:
        place = self._place(asked, task)
        if place < (journal.stage, journal.exchange):
            raise TaskRefused(f"{task.kind!r} comes after what follows it.")
        self._check_skipped(journal, place)
        same_stage = place[0] == journal.stage
        answered = dict(journal.answered) if same_stage else {}
        answered[task.kind] = answered.get(task.kind, 0) + 1
        most = self.stages[place[0]].exchanges[place[1]].most
        if answered[task.kind] > most:
            raise TaskRefused(f"{task.kind!r} came more than {most} times.")
        changes = {
            "recent": [*journal.recent, asked.address.round][-_RECENT:],
            "round": asked.address.round,
            "attempt": asked.address.attempt,
            "stage": place[0],
            "exchange": place[1],
            "answered": answered,
            "asked": _shared(asked),
            "members": _members(task),
        }
        return journal.model_copy(update=changes)

    def _place(self, asked: Packet, task: Record) -> tuple[int, int]:
        names = [stage.name for stage in self.stages]
        stage = names.index(asked.address.stage)
        return stage, self.stages[stage].tasks.index(type(task))

    def _check_skipped(self, journal: Journal, place: tuple[int, int]) -> None:
        for number, exchange in self._between(journal, place):
            given = journal.answered if number == journal.stage else {}
            stage = self.stages[number]
            if given.get(exchange.task.kind, 0) < exchange.least and (
                stage.party().takes_part(self.context, exchange.task)
            ):
                raise TaskRefused(
                    f"The analyst left out {exchange.task.kind!r} of stage {stage.name!r}."
                )

    def _between(
        self, journal: Journal, place: tuple[int, int]
    ) -> Iterator[tuple[int, Exchange]]:
        """Yield the exchanges from where the party stands up to a place."""
        for number in range(max(journal.stage, 0), place[0] + 1):
            for index, exchange in enumerate(self.stages[number].exchanges):
                begun = (number, index) >= (journal.stage, journal.exchange)
                if begun and (number, index) < place:
                    yield number, exchange


def _members(task: Record) -> list[str]:
    return list(getattr(task, _SHRINKING, []))


def _shared(asked: Packet) -> str:
    """Return a digest of a task without its address and members."""
    record = asked.header.record
    values = {k: v for k, v in record["values"].items() if k != _SHRINKING}
    header = {
        "record": {**record, "values": values},
        "envelopes": [label.model_dump() for label in asked.header.envelopes],
        "sealed": [sha256(e.sealed).hexdigest() for e in asked.envelopes],
    }
    return codec.digest(header, asked.arrays)

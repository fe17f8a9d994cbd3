"""A party checks whether a task, or a result, may come now."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from clustering_protocols.common.errors import TaskRefused
from clustering_protocols.contract import Exchange, PartyContext, Stage
from clustering_protocols.engine import signatures, transcript
from clustering_protocols.engine.analyst import MAX_ATTEMPTS
from clustering_protocols.engine.journal import Journal
from clustering_protocols.engine.packets import Packet, digest_of
from clustering_protocols.engine.stages import quorum, stage_of
from clustering_protocols.engine.transcript import Entry
from clustering_protocols.records import codec
from clustering_protocols.records.record import Record
from clustering_protocols.terms.terms import Audience

_SHRINKING = "members"  # the one field in which attempts of a round may differ


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Decides whether a task may follow what a party has answered.

    context: where the party stands, before it knows what it was told.
    acknowledged: whether the analyst has acknowledged the party's last answer.
    """

    stages: Sequence[Stage]
    context: PartyContext
    acknowledged: bool

    def follow(self, journal: Journal, packet: Packet) -> Journal:
        """Return the journal after what a packet says that everybody was told.

        Raises TaskRefused if it does not follow what was told before, or leaves this
            party out of an attempt of a round for which it has its receipt.
        """
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
        return journal.append_entries(entries)

    def admit(self, journal: Journal, asked: Packet, task: Record) -> Journal:
        """Return the journal after a task; :class:`TaskRefused` if it may not follow.

        The journal knows what everybody was told until then: see :meth:`follow`.
        """
        self._check_task(asked)
        if asked.address.attempt > MAX_ATTEMPTS:
            raise TaskRefused(f"A round has at most {MAX_ATTEMPTS} attempts.")
        if asked.address.round == journal.round:
            members, shared = _members(task), _digest_content(asked)
            if asked.address.attempt < journal.attempt:
                raise TaskRefused("A task of an earlier attempt came.")
            if shared != journal.asked or not set(members) <= set(journal.members):
                raise TaskRefused("A new attempt asks something else than its round.")
            return journal.model_copy(
                update={"attempt": asked.address.attempt, "members": members}
            )
        if asked.address.round < journal.round:
            raise TaskRefused("A task of an earlier round came.")
        if journal.stage == 0:
            opened = journal.transcript_by_attempt[journal.round, journal.attempt]
            least, name = len(self.context.session.slots), self.stages[0].name
            signatures.check(
                self.context.session, name, opened, asked.signatures, least
            )
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
        stage = self.stages[last]
        told = self._entry(result).told
        if signatures.tells_runs(stage):  # the task comes first
            told = told[len(self._groups(stage.exchanges[0].audience)) :]
        _check_own(result, set())
        self._check_told(told, stage.results_to, result.content_digest)

    def _check_task(self, asked: Packet) -> None:
        """Refuse a task of which the transcript says otherwise."""
        entry, kind = self._entry(asked), asked.header.record["kind"]
        if entry.asks != kind or self.context.slot.name in entry.left_out:
            raise TaskRefused("Everybody was told of another task.")
        stage = stage_of(self.stages, asked)
        exchange = stage.exchange_of(kind)
        _check_own(asked, {*exchange.own} & {*exchange.task.model_fields})
        if stage is self.stages[-1] and not signatures.tells_runs(stage):
            return  # of the closing it says what the results are
        self._check_told(entry.told, exchange.audience, asked.content_digest)

    def _entry(self, packet: Packet) -> Entry:
        """Return what the transcript says of a packet's round."""
        entry = transcript.last(packet.history)
        if entry.when != packet.address.when:
            raise TaskRefused("Everybody was told of another round.")
        return entry

    def _groups(self, audience: Audience) -> list[tuple[str, ...]]:
        return self.context.session.layout.audiences(audience)

    def _check_told(
        self, told: tuple[str, ...], audience: Audience, digest: str
    ) -> None:
        slot = self.context.slot.name
        own = next(n for n, group in enumerate(self._groups(audience)) if slot in group)
        if told[own : own + 1] != (digest,):
            raise TaskRefused("Others were told something else.")

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
        return journal.record_answer(
            asked.address,
            stage=place[0],
            exchange=place[1],
            answered=answered,
            asked=_digest_content(asked),
            members=_members(task),
        )

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


def _check_own(packet: Packet, names: Collection[str]) -> None:
    """Refuse fields beside the content that everybody in a group has to be told."""
    if set(packet.own) != set(names):
        raise TaskRefused("A message has other fields of its own than it may have.")


def _members(task: Record) -> list[str]:
    return list(getattr(task, _SHRINKING, []))


def _digest_content(asked: Packet) -> str:
    """Return a digest of a task without its address and members."""
    header = {
        "record": digest_of(asked.header.record, asked.arrays, [_SHRINKING]),
        "envelopes": [label.model_dump() for label in asked.header.envelopes],
        "sealed": [sha256(e.sealed).hexdigest() for e in asked.envelopes],
    }
    return codec.digest(header, {})

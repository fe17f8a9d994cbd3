"""The checks by which a party decides whether a task or a result may come now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256

from clustering_protocols.common.errors import TaskRefused
from clustering_protocols.contract import SessionContext, Stage
from clustering_protocols.engine import signatures, transcript
from clustering_protocols.engine.analyst import MAX_ATTEMPTS
from clustering_protocols.engine.journal import RECENT_ROUNDS, Journal
from clustering_protocols.engine.packets import Packet, digest_content
from clustering_protocols.engine.stages import find_stage, session_quorum
from clustering_protocols.engine.transcript import Entry
from clustering_protocols.records import codec
from clustering_protocols.records.record import Record
from clustering_protocols.terms.terms import Audience

_SHRINKING = "members"  # the only field that may differ between attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Checks whether a task may follow the answers that a party has given.

    stages: all stages of the session.
    slot: the party's slot.
    acknowledged: whether the analyst has acknowledged the party's last answer.
    """

    session: SessionContext
    stages: Sequence[Stage]
    slot: str
    acknowledged: bool

    def follow_transcript(self, journal: Journal, packet: Packet) -> Journal:
        """Return the journal extended by the transcript lines of a packet.

        Raises TaskRefused if the lines do not continue the journal's, or if they
            exclude this party from an attempt of a round whose answer the analyst has
            acknowledged.
        """
        agreement = self.session.agreement_digest
        entries = transcript.follow_lines(
            packet.history, agreement, journal.line, journal.transcript
        )
        for entry, _ in entries:
            if (
                self.acknowledged
                and entry.round == journal.round
                and self.slot in entry.left_out
            ):
                raise TaskRefused(
                    "The analyst left this party out of a round that it answered."
                )
        return journal.append_entries(entries)

    def admit_task(self, journal: Journal, packet: Packet, task: Record) -> Journal:
        """Return the journal after a task; raise :class:`TaskRefused` if not permitted.

        The task must belong to the last line of the transcript, whose round must come
        after all answered rounds or repeat the last one.

        journal: the journal that :meth:`follow_transcript` returned for the packet.
        """
        self._check_task(packet)
        if packet.address.attempt > MAX_ATTEMPTS:
            raise TaskRefused(f"A round has at most {MAX_ATTEMPTS} attempts.")
        if packet.address.round == journal.round:
            members, digest = _task_members(task), _digest_ignoring_address(packet)
            if (
                packet.address.stage != self.stages[journal.stage].name
                or digest != journal.asked
                or not set(members) <= set(journal.members)
            ):
                raise TaskRefused(
                    "The task differs from the earlier attempt of its round."
                )
            return journal.model_copy(
                update={"attempt": packet.address.attempt, "members": members}
            )
        if journal.stage == 0:
            session, name = self.session, self.stages[0].name
            opening = journal.transcript_by_attempt[journal.round, journal.attempt]
            minimum = len(session.slots)
            signatures.check_signatures(
                session, name, opening, packet.signatures, minimum
            )
        return self._admit_next(journal, packet, task)

    def check_result(self, journal: Journal, result: Packet) -> None:
        """Raise TaskRefused or ProtocolFailed unless a result is due and fully signed.

        journal: the journal that :meth:`follow_transcript` returned for the result.
        """
        session, stage = self.session, self.stages[-1]
        self._check_skipped(journal, (len(self.stages) - 1, len(stage.exchanges)))
        minimum = session_quorum(session)
        signatures.check_signatures(
            session, stage.name, journal.transcript, result.signatures, minimum
        )
        n_task_digests = len(self._groups(stage.exchanges[0].audience))
        digests = self._announced_entry(result).told[n_task_digests:]
        _check_own_fields(result, set())
        self._check_digest(digests, stage.results_to, result.content_digest)

    def _check_task(self, packet: Packet) -> None:
        entry, kind = self._announced_entry(packet), packet.header.record["kind"]
        if entry.asks != kind or self.slot in entry.left_out:
            raise TaskRefused("The analyst announced a different task.")
        exchange = find_stage(self.stages, packet).exchange_of(kind)
        _check_own_fields(packet, {*exchange.own} & {*exchange.task.model_fields})
        self._check_digest(entry.told, exchange.audience, packet.content_digest)

    def _announced_entry(self, packet: Packet) -> Entry:
        entry = transcript.parse_last_entry(packet.history)
        if entry.when != packet.address.when:
            raise TaskRefused("The analyst announced a different round.")
        return entry

    def _groups(self, audience: Audience) -> list[tuple[str, ...]]:
        return self.session.layout.audience_groups(audience)

    def _check_digest(
        self, digests: tuple[str, ...], audience: Audience, digest: str
    ) -> None:
        groups = self._groups(audience)
        own = next(n for n, group in enumerate(groups) if self.slot in group)
        if digests[own : own + 1] != (digest,):
            raise TaskRefused("Others received a different task.")

    def _admit_next(self, journal: Journal, packet: Packet, task: Record) -> Journal:
        names = [stage.name for stage in self.stages]
        index = names.index(packet.address.stage)
        stage = self.stages[index]
        position = (index, stage.tasks.index(type(task)))
        if position < (journal.stage, journal.exchange):
            raise TaskRefused(f"{task.kind!r} comes after a task that must follow it.")
        self._check_skipped(journal, position)
        counts = dict(journal.answered) if index == journal.stage else {}
        counts[task.kind] = counts.get(task.kind, 0) + 1
        limit = stage.exchanges[position[1]].most
        if counts[task.kind] > limit:
            raise TaskRefused(f"{task.kind!r} came more than {limit} times.")
        changes = {
            "round": packet.address.round,
            "attempt": packet.address.attempt,
            "stage": index,
            "exchange": position[1],
            "answered": counts,
            "asked": _digest_ignoring_address(packet),
            "members": _task_members(task),
            "recent": [*journal.recent, packet.address.round][-RECENT_ROUNDS:],
        }
        return journal.model_copy(update=changes)

    def _check_skipped(self, journal: Journal, position: tuple[int, int]) -> None:
        """Raise if a required exchange before this position was not answered."""
        for number in range(max(journal.stage, 0), position[0] + 1):
            stage = self.stages[number]
            counts = journal.answered if number == journal.stage else {}
            for index, exchange in enumerate(stage.exchanges):
                current = (journal.stage, journal.exchange)
                if (
                    current <= (number, index) < position
                    and counts.get(exchange.task.kind, 0) < exchange.least
                    and (
                        exchange.slots is None
                        or self.slot in exchange.slots(self.session)
                    )
                ):
                    raise TaskRefused(
                        f"The analyst left out {exchange.task.kind!r} of stage "
                        f"{stage.name!r}."
                    )


def _check_own_fields(packet: Packet, names: Collection[str]) -> None:
    if set(packet.own) != set(names):
        raise TaskRefused("The own fields of a message differ from its declaration.")


def _task_members(task: Record) -> list[str]:
    return list(getattr(task, _SHRINKING, []))


def _digest_ignoring_address(packet: Packet) -> str:
    """Return a digest of a task that ignores its address and members."""
    header = {
        "record": digest_content(packet.header.record, packet.arrays, [_SHRINKING]),
        "envelopes": [label.model_dump() for label in packet.header.envelopes],
        "sealed": [sha256(e.sealed).hexdigest() for e in packet.envelopes],
    }
    return codec.digest(header, {})

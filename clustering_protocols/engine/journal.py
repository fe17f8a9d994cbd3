"""What a party has answered so far, and which tasks may follow.

A party answers the tasks of a session in the order that the stages declare, each at most
as often as declared, and leaves no stage before it was asked what has to be asked there.
A new attempt repeats its round: only members may be missing. Whoever asks otherwise is
refused for good. The journal lies outside the memory that a new attempt takes back, and
is on disk before an answer is sent, so no attempt and no restart undoes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic import Field

from clustering_protocols import codec
from clustering_protocols.contract import Exchange, PartyContext, Stage
from clustering_protocols.engine.analyst import MAX_ATTEMPTS
from clustering_protocols.errors import TaskRefused
from clustering_protocols.packets import Packet
from clustering_protocols.records import Record

_SHRINKING = "members"  # the one field in which attempts of a round may differ


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
    """

    kind = "journal"

    round: int = 0
    attempt: int = 0
    stage: int = -1
    exchange: int = 0
    answered: dict[str, int] = Field(default_factory=dict)
    asked: str = ""
    members: list[str] = Field(default_factory=list)
    stopped: str = ""

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
        Where the party stands; its memory is that before the round.
    """

    stages: Sequence[Stage]
    context: PartyContext

    def admit(self, journal: Journal, asked: Packet, task: Record) -> Journal:
        """Return the journal after a task; :class:`TaskRefused` if it may not follow."""
        if journal.stopped:
            raise TaskRefused(f"This party has stopped: {journal.stopped}")
        if asked.address.attempt > MAX_ATTEMPTS:
            raise TaskRefused(f"A round has at most {MAX_ATTEMPTS} attempts.")
        if asked.address.round == journal.round:
            return self._next_attempt(journal, asked, task)
        if asked.address.round < journal.round:
            raise TaskRefused("A task of an earlier round came.")
        return self._next_round(journal, asked, task)

    def check_complete(self, journal: Journal) -> None:
        """Refuse a result before every task that has to come was answered."""
        if journal.stopped:
            raise TaskRefused(f"This party has stopped: {journal.stopped}")
        last = len(self.stages) - 1
        end = (last, len(self.stages[last].exchanges))
        self._check_skipped(journal, end)

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
        return Journal(
            round=asked.address.round,
            attempt=asked.address.attempt,
            stage=place[0],
            exchange=place[1],
            answered=answered,
            asked=_shared(asked),
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
    return sha256(codec.encode(header, asked.arrays)).hexdigest()

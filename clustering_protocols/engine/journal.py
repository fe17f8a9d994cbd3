"""What a party has answered so far, and which tasks may follow.

A party answers the tasks of a session in the order that the stages declare, each at most
as often as declared, and leaves no stage before it was asked what has to be asked there.
A new attempt repeats its round: only members may be missing. The party stops for good
where the analyst asks for anything else, tells another past than before, or sends a task
of which the transcript says otherwise. A new attempt takes the party's memory back to
before the round, but not the journal. The journal is on disk before an answer is sent, so
that no restart undoes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError, TaskRefused
from clustering_protocols.engine.transcript import Entry
from clustering_protocols.records import hash_chain
from clustering_protocols.records.arrays import ByteArray, IntArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.records.rounds import RoundRef
from clustering_protocols.wire.states import StopReason

_RECENT = 3  # a sum's total is read two answers later at most


class Journal(Record):
    """Where a party stands among the tasks of its session.

    round, attempt: of the last task that was answered; 0 before the first.
    stage, exchange: where that task stands: which stage, and which exchange within it.
    answered: for each kind of task of this stage, how many rounds were answered.
    asked: SHA-256 (hex) of what is the same in all attempts of the round.
    members: who took part in the last attempt, where the task says so.
    stopped: why this party answers nothing any more; empty while it does.
    left: whether it stopped because its people left the session.
    stop_reason: why it stopped, in the one word that others read.
    line: the number of the transcript's last line that is known.
    recent: the last rounds that were answered.
    when: int64 (h, 2); rounds and attempts since the first of the recent rounds.
    transcripts: uint8 (h, 32); the transcript up to each of them.
    told_stage: the stage of the last round that everybody was told of.
    told: for each kind of task, how many rounds of that stage everybody was told of,
        with those in which this party was not asked.
    """

    kind = "journal"
    version = 3

    round: int = 0
    attempt: int = 0
    stage: int = -1
    exchange: int = 0
    answered: dict[str, int] = Field(default_factory=dict)
    asked: str = ""
    members: list[str] = Field(default_factory=list)
    stopped: str = ""
    left: bool = False
    stop_reason: StopReason | None = Field(default=None, strict=False)
    line: int = 0
    recent: list[int] = Field(default_factory=list)
    when: Annotated[IntArray, Spec("h", 2)] = Field(
        default_factory=lambda: np.empty((0, 2), np.int64)
    )
    transcripts: Annotated[ByteArray, Spec("h", 32)] = Field(
        default_factory=lambda: np.empty((0, 32), np.uint8)
    )

    told_stage: str = ""
    told: dict[str, int] = Field(default_factory=dict)

    @property
    def transcript_by_attempt(self) -> dict[tuple[int, int], str]:
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

    def append_entries(self, entries: Sequence[tuple[Entry, str]]) -> Journal:
        """Return the journal with entries that follow, each with its transcript.

        Raises TaskRefused if rounds or attempts do not count up by one.
        """
        first = min(self.recent, default=0)
        known = {
            when: told
            for when, told in self.transcript_by_attempt.items()
            if when[0] >= first
        }
        here = next(reversed(self.transcript_by_attempt), (0, 0))
        stage, told = self.told_stage, dict(self.told)
        for entry, digest in entries:
            there = (entry.round, entry.attempt)
            if there not in {(here[0], here[1] + 1), (here[0] + 1, 1)}:
                raise TaskRefused(f"Attempt {there[1]} of round {there[0]} is no next.")
            if entry.stage != stage:
                stage, told = entry.stage, {}
            if there[1] == 1:
                told[entry.asks] = told.get(entry.asks, 0) + 1
            known[there], here = digest, there
        digests = bytes.fromhex("".join(known.values()))
        changes = {
            "line": entries[-1][0].number if entries else self.line,
            "told_stage": stage,
            "told": told,
            "when": np.array(list(known), np.int64).reshape(-1, 2),
            "transcripts": np.frombuffer(digests, np.uint8).reshape(-1, 32),
        }
        return self.model_copy(update=changes)

    def record_answer(self, here: RoundRef, **changes: Any) -> Journal:
        """Return the journal once a round is answered, with these fields changed."""
        recent = [*self.recent, here.round][-_RECENT:]
        when = {"round": here.round, "attempt": here.attempt, "recent": recent}
        return self.model_copy(update={**when, **changes})

    def check_going(self) -> None:
        """Raise :class:`TaskRefused`, with the reason, for a party that has stopped."""
        if self.stopped:
            raise TaskRefused(f"This party has stopped: {self.stopped}")

    def stop(self, said: str, reason: StopReason, *, left: bool = False) -> Journal:
        """Return the journal of a party that answers nothing any more.

        said: why, for its own people. reason: the word for others.
        left: whether its people left the session.
        """
        changes = {"stopped": said, "stop_reason": reason, "left": left}
        return self.model_copy(update=changes)

    def refuse(self, error: CoterieError) -> Journal:
        """Return the journal of a party that an error stopped; the first one counts."""
        return self if self.stopped else self.stop(str(error), find_stop_reason(error))

    def go_on(self) -> Journal:
        """Return the journal of a party whose people took back that they left."""
        changes = {"stopped": "", "stop_reason": None, "left": False}
        return self.model_copy(update=changes)


# In which word others are told why. A word says whose turn it is, and no more: which
# check refused would tell others something of the rows, or of the party's policy.

_BY_ROWS: Final = (
    Problem.INVALID_DATA,
    Problem.SHAPE_CONFLICT,
    Problem.ROWS_NOT_ALIGNED,
    Problem.OVERLAP_TOO_SMALL,
    Problem.COLUMNS_NOT_ALIGNED,
)
_BY_PEOPLE: Final = (
    Problem.CANCELLED,
    Problem.DEADLINE_PASSED,
    Problem.PARTY_STOPPED,
    Problem.SESSION_OVER,
)
_BY_RULES: Final = (
    Problem.MALFORMED,
    Problem.INVALID_ARRAY,
    Problem.AGREEMENT_MISMATCH,
    Problem.PROTOCOL_FAILED,
    Problem.RISK_NOT_ACCEPTED,
    Problem.GUARD_REFUSED,
    Problem.KEY_NOT_AUTHENTIC,
    Problem.SIGNATURE_REFUSED,
    Problem.CERTIFICATE_REFUSED,
    Problem.ENVELOPE_REFUSED,
    Problem.EQUIVOCATION,
    Problem.TASK_REFUSED,
    Problem.AUDIT_BROKEN,
)

_WORDS: Final[Mapping[Problem, StopReason]] = MappingProxyType(
    dict.fromkeys(_BY_PEOPLE, StopReason.LEFT)
    | dict.fromkeys(_BY_RULES, StopReason.REFUSED)
    | dict.fromkeys(_BY_ROWS, StopReason.DATA)
)
"""The word for each problem that is of rows, people or rules; others are the program's."""


def find_stop_reason(error: CoterieError) -> StopReason:
    """Return the word for an error that stopped a party for good."""
    return _WORDS.get(error.problem, StopReason.SOFTWARE)

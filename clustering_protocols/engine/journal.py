"""A party's journal of its answers so far, and of the reason if it has stopped.

A party answers the tasks of a session in the order that the stages declare, each at
most as often as declared, and leaves no stage before it has answered its required
tasks. A new attempt repeats its round's task, in which only the list of members may
shrink. The party stops for good if the analyst sends a task out of this order, changes
known lines of the transcript, or sends a task that differs from the transcript. A new
attempt resets the party's memory to its state before the round, but not the journal,
which is written to disk before an answer is sent, so that a restart cannot undo it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError, TaskRefused
from clustering_protocols.engine.transcript import Entry
from clustering_protocols.records import hash_chain
from clustering_protocols.records.arrays import ByteArray, IntArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.wire.states import StopReason

RECENT_ROUNDS: Final = 3  # the total of a sum arrives at most two answers later


class Journal(Record):
    """The position of a party in its session.

    round, attempt: those of the last answered task; 0 before the first.
    stage, exchange: indices of that task's stage, and of its exchange in the stage.
    answered: the number of answered rounds for each kind of task of this stage.
    asked: SHA-256 (hex) of the part of the task that attempts must not change.
    members: the members that the last attempt's task names, if any.
    stopped: why this party no longer answers; empty if it has not stopped.
    left: whether the party stopped because its operator left the session.
    stop_reason: the code of the reason in ``stopped``. Others can read only this code.
    line: the number of the last known line of the transcript.
    recent: the last rounds that were answered.
    when: int64 (h, 2); rounds and attempts since the first of the recent rounds.
    transcripts: uint8 (h, 32); the transcript up to each of these attempts.
    told_stage: the stage of the last round in the transcript.
    told: the number of rounds of that stage in the transcript for each kind of task,
        including rounds in which this party was not asked.
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
        """Return the transcripts (hex) keyed by round and attempt, in order."""
        digests = (bytes(row).hex() for row in self.transcripts)
        return {
            (round_, attempt): digest
            for (round_, attempt), digest in zip(
                self.when.tolist(), digests, strict=True
            )
        }

    @property
    def transcript(self) -> str:
        """Return the transcript (hex) up to the last known line."""
        if not len(self.transcripts):
            return hash_chain.START
        return bytes(self.transcripts[-1]).hex()

    def append_entries(self, entries: Sequence[tuple[Entry, str]]) -> Journal:
        """Return the journal extended by entries of the transcript.

        entries: each entry, with the transcript (hex) up to it.

        Raises TaskRefused if the numbers of rounds or attempts do not increase by one.
        """
        transcripts = self.transcript_by_attempt
        last = next(reversed(transcripts), (0, 0))
        first = min(self.recent, default=0)
        transcripts = {w: digest for w, digest in transcripts.items() if w[0] >= first}
        stage, counts = self.told_stage, dict(self.told)
        for entry, digest in entries:
            when = (entry.round, entry.attempt)
            if when not in {(last[0], last[1] + 1), (last[0] + 1, 1)}:
                raise TaskRefused(
                    f"Attempt {when[1]} of round {when[0]} is out of order."
                )
            if entry.stage != stage:
                stage, counts = entry.stage, {}
            if entry.attempt == 1:
                counts[entry.asks] = counts.get(entry.asks, 0) + 1
            transcripts[when], last = digest, when
        digests = bytes.fromhex("".join(transcripts.values()))
        changes = {
            "line": entries[-1][0].number if entries else self.line,
            "told_stage": stage,
            "told": counts,
            "when": np.array(list(transcripts), np.int64).reshape(-1, 2),
            "transcripts": np.frombuffer(digests, np.uint8).reshape(-1, 32),
        }
        return self.model_copy(update=changes)

    def check_not_stopped(self) -> None:
        """Raise :class:`TaskRefused`, with the reason, if the party has stopped."""
        if self.stopped:
            raise TaskRefused(f"This party has stopped: {self.stopped}")

    def stop(self, message: str, reason: StopReason, *, left: bool = False) -> Journal:
        """Return the journal of a party that no longer answers.

        message: the reason, for the party's own operator.
        reason: the code that others can read.
        left: whether the operator left the session.
        """
        changes = {"stopped": message, "stop_reason": reason, "left": left}
        return self.model_copy(update=changes)

    def stop_by_error(self, error: CoterieError) -> Journal:
        """Return the journal as stopped by an error, unless it has stopped before."""
        return self if self.stopped else self.stop(str(error), find_stop_reason(error))

    def resume(self) -> Journal:
        """Return the journal after the operator has returned to the session."""
        changes = {"stopped": "", "stop_reason": None, "left": False}
        return self.model_copy(update=changes)


# Others can read only a code, which says who has to act. The name of the failed check
# would reveal something about the rows or the party's policy.

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

_REASONS: Final[Mapping[Problem, StopReason]] = MappingProxyType(
    dict.fromkeys(_BY_PEOPLE, StopReason.LEFT)
    | dict.fromkeys(_BY_RULES, StopReason.REFUSED)
    | dict.fromkeys(_BY_ROWS, StopReason.DATA)
)
"""The code of each problem; a problem that is missing here is a software fault."""


def find_stop_reason(error: CoterieError) -> StopReason:
    """Return the code that others read for the error that stopped a party."""
    return _REASONS.get(error.problem, StopReason.SOFTWARE)

"""Where a session stands, as the analyst keeps it from round to round."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from clustering_protocols import hash_chain
from clustering_protocols.arrays import ByteArray, Spec
from clustering_protocols.contract import SessionContext, Stage
from clustering_protocols.contract.analyst import Nothing
from clustering_protocols.engine import mail, transcript
from clustering_protocols.engine.held import NOTHING, Held
from clustering_protocols.engine.mail import Mail
from clustering_protocols.engine.moves import Choosing, Opened
from clustering_protocols.figures import Figures
from clustering_protocols.packets import SIGNATURE_BYTES, UNSIGNED, Address
from clustering_protocols.profiling import stage as profiling
from clustering_protocols.records import Record
from clustering_protocols.rounds import RoundRef

_OPENED = transcript.AGREED + 1  # the line of the opening, which everybody signs


class AnalystState(Record):
    """The analyst's state between two rounds.

    Attributes
    ----------
    stage, round, attempt, quorum
        Of the open round.
    n_rows : dict of slot to int
        How many rows take part, of slots of which a stage has selected some.
    reached : dict of slot to int
        For each slot, the number of the last line of the transcript that it has answered.
    stage_state, history, held, mail : uint8 arrays
        The state of the stage's role; the lines of the transcript that a slot may lack;
        the results, until everybody has signed; envelopes for slots that are not asked.
    signatures : uint8 array of shape (s, 64)
        Those of the opening, until every slot has got them.
    """

    kind = "analyst-state"
    version = 3

    stage: int
    round: int
    attempt: int
    quorum: int
    n_rows: dict[str, int]
    reached: dict[str, int]
    stage_state: Annotated[ByteArray, Spec("bytes")]
    history: Annotated[ByteArray, Spec("characters")]
    signatures: Annotated[ByteArray, Spec("s", SIGNATURE_BYTES)]
    held: Annotated[ByteArray, Spec("held")]
    mail: Annotated[ByteArray, Spec("mail")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A session between two rounds, in memory; fields as in :class:`AnalystState`.

    Attributes
    ----------
    lines : sequence of str
        Of the transcript: those that a slot may lack, the last one at least.
    relay : sequence of (receiver, Envelope)
        What goes out with the next task of each receiver.
    """

    session: SessionContext
    stages: Sequence[Stage]
    lines: Sequence[str]
    reached: Mapping[str, int]
    index: int = 0
    round: int = 0
    attempt: int = 0
    signatures: ByteArray = field(default_factory=lambda: UNSIGNED)
    held: Held = NOTHING
    relay: Mail = ()

    @classmethod
    def beginning(cls, session: SessionContext, stages: Sequence[Stage]) -> Course:
        """Return the course of a session before its first round."""
        return cls(
            session=session,
            stages=stages,
            lines=[transcript.agreed(session)],
            reached=dict.fromkeys(session.slots, 0),
        )

    @classmethod
    def resumed(
        cls, session: SessionContext, stages: Sequence[Stage], state: AnalystState
    ) -> Course:
        """Return the course as a state keeps it."""
        return cls(
            session=session.with_rows(state.n_rows),
            stages=stages,
            lines=state.history.tobytes().decode().split("\n"),
            reached=state.reached,
            index=state.stage,
            round=state.round,
            attempt=state.attempt,
            signatures=state.signatures,
            held=Held.decode(state.held),
            relay=mail.kept(state.mail),
        )

    @property
    def stage(self) -> Stage:
        """Return the stage in hand."""
        return self.stages[self.index]

    @property
    def here(self) -> SessionContext:
        """Return the session as the stage in hand sees it: its run's parameters."""
        return self.session.of_run(self.stage.run)

    @property
    def is_first_stage(self) -> bool:
        """Return whether the stage in hand is the opening."""
        return self.index == 0

    @property
    def is_last_stage(self) -> bool:
        """Return whether the stage in hand is the closing."""
        return self.index == len(self.stages) - 1

    @property
    def is_after_runs(self) -> bool:
        """Return whether the protocol's own stages are over."""
        return self.is_last_stage or self.stage.name == profiling.NAME

    @property
    def transcript(self) -> str:
        """Return the digest (hex) of everything that was told until now."""
        return hash_chain.digest(self.lines[-1])

    @property
    def present(self) -> list[str]:
        """Return the slots that have answered the last round."""
        last = max(self.reached.values())
        return [slot for slot, number in self.reached.items() if number == last]

    def answered(self, slots: Sequence[str]) -> Course:
        """Return the course once these slots have answered the open round."""
        last = transcript.number_of(self.lines[-1])
        reached = {**self.reached, **dict.fromkeys(slots, last)}
        least = min(reached.values())
        return replace(
            self,
            reached=reached,
            lines=transcript.since(self.lines, min(least, last - 1)),
            signatures=self.signatures if least <= _OPENED else UNSIGNED,
        )

    def noted(self, asks: str, asked: Sequence[str], told: Sequence[str]) -> Course:
        """Return the course with this attempt in the transcript."""
        here = RoundRef(stage=self.stage.name, round=self.round, attempt=self.attempt)
        left_out = [slot for slot in self.session.slots if slot not in asked]
        lines = transcript.noted(
            self.lines, here, asks=asks, left_out=left_out, told=told
        )
        return replace(self, lines=lines)

    def lacking(self, slot: str) -> Sequence[str]:
        """Return the lines of the transcript that a slot has not answered, and the last."""
        last = transcript.number_of(self.lines[-1])
        return transcript.since(self.lines, min(self.reached[slot], last - 1))

    def to_show(self, slot: str) -> ByteArray:
        """Return the signatures of the opening, for a slot that has not seen them."""
        return self.signatures if self.reached[slot] == _OPENED else UNSIGNED

    def address(self, slot: str) -> Address:
        """Return where a packet for a slot, or the coordinator (empty), belongs."""
        return Address(
            session=self.session.terms.session,
            agreement=self.session.agreement_digest,
            slot=slot,
            stage=self.stage.name,
            round=self.round,
            attempt=self.attempt,
        )

    def opened(
        self,
        state: Record,
        quorum: int,
        tasks: Mapping[str, bytes],
        progress: Mapping[str, Any] | None,
    ) -> Opened:
        """Return the open round with what the analyst has to keep."""
        return Opened(
            round=self.round,
            attempt=self.attempt,
            stage=self.stage.name,
            stage_index=self.index,
            n_stages=len(self.stages),
            quorum=quorum,
            state=self._kept(state, quorum, tasks),
            tasks=tasks,
            progress=progress,
        )

    def waiting(self, figures: Sequence[Figures]) -> Choosing:
        """Return the choice that is open, with what the analyst has to keep."""
        return Choosing(
            state=self._kept(Nothing(), 0, ()),
            figures=[each.values for each in figures],
        )

    def _kept(self, state: Record, quorum: int, asked: Collection[str]) -> bytes:
        """Return the bytes of an :class:`AnalystState`: what is held is joined here."""
        kept = AnalystState(
            stage=self.index,
            round=self.round,
            attempt=self.attempt,
            quorum=quorum,
            n_rows=dict(self.session.selected),
            reached=dict(self.reached),
            stage_state=np.frombuffer(state.encode(), np.uint8),
            history=np.frombuffer("\n".join(self.lines).encode(), np.uint8),
            signatures=self.signatures,
            held=np.empty(0, np.uint8),
            mail=mail.keep([each for each in self.relay if each[0] not in asked]),
        )
        return kept.encode(held=self.held.pieces())

"""Sessions as one party knows them, recorded from all roles under one hand."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from clustering_protocols.contract import SessionContext
from clustering_protocols.engine.packets import read
from clustering_protocols.simulation import Session
from party_sdk.conformance.contributions import TOLERANCE, leeway_of
from party_sdk.conformance.vectors import Level, RecordedSession, Refusal, VectorCase
from party_sdk.lab import WireRehearsal

if TYPE_CHECKING:
    from benchmarks.vectors.forgery import Forger


ListRefusals: TypeAlias = "Callable[[Forger], list[Refusal]]"


def list_none(_: Forger) -> list[Refusal]:
    """Return no refusals."""
    return []


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A session to record, and whose side of it.

    list_refusals: returns which messages of it a party must refuse.
    """

    name: str
    level: Level
    rehearsal: WireRehearsal
    list_refusals: ListRefusals = list_none

    @property
    def slot(self) -> str:
        """Return whose side it is."""
        return self.rehearsal.slot

    def play(self) -> Session:
        """Return the session, played to its end."""
        session = self.rehearsal.begin()
        session.to_the_end()
        return session

    def record(self, session: Session, refusals: list[Refusal]) -> RecordedSession:
        """Return the session as the slot knows it."""
        return RecordedSession(
            name=self.name,
            level=self.level,
            receivers=self.rehearsal.find_receivers(session),
            steps=[self._begin(session), *self._steps(session), self._end(session)],
            refusals=refusals,
        )

    def _begin(self, session: Session) -> VectorCase:
        opening = self.rehearsal.describe_opening(session)
        return VectorCase(
            name="begin", section="5", call="init", input=opening, output={}
        )

    def _steps(self, session: Session) -> list[VectorCase]:
        tasks = [m for m in session.sent if m.receiver == self.slot]
        answers = [m for m in session.sent if m.sender == self.slot]
        return [
            self._build_step(session.session, task.payload, answer.payload)
            for task, answer in zip(tasks, answers, strict=True)
        ]

    def _build_step(
        self, session: SessionContext, task: bytes, contribution: bytes
    ) -> VectorCase:
        asked, given = read(task), read(contribution)
        here, leeway = asked.address, leeway_of(asked, given, session)
        return VectorCase(
            name=f"{asked.header.record['kind']}, round {here.round}.{here.attempt}",
            section="7" if here.stage in {"opening", "closing"} else "12",
            call="step",
            input={"task": as_text(task)},
            output={"contribution": as_text(contribution)},
            tolerance=TOLERANCE,
            turned=list(leeway.turned),
            units=leeway.units,
            chosen=list(leeway.chosen),
            values=leeway.values,
        )

    def _end(self, session: Session) -> VectorCase:
        result = session.final_step.results[self.slot]
        labels = session.outcomes()[self.slot].labels.tolist()
        return VectorCase(
            name="the result",
            section="12",
            call="conclude",
            input={"result": as_text(result)},
            output={"labels": labels},
        )


def as_text(content: bytes) -> str:
    """Return bytes as text."""
    return base64.b64encode(content).decode()

"""Sessions as one party knows them, recorded from all roles under one hand."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from clustering_protocols.contract import Params
from clustering_protocols.engine.packets import read
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import PartyKeys
from clustering_protocols.simulation import Session
from clustering_protocols.simulation.agreement import COORDINATOR
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.terms import About, Layout, digest
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.conformance.vectors import Level, RecordedSession, Refusal, VectorCase

SEED: Final = 23
ID: Final = "wards"
ABOUT: Final = About(title="Größe und Gewicht")
TURNED: Final = {"projections": ["rows", "anchors"]}
"""Arrays that a party may turn: its private map is its own choice."""
_TOLERANCE: Final = 1e-9


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A session to record, and whose side of it.

    tables: of all slots.
    """

    name: str
    level: Level
    params: Params
    layout: Layout
    tables: Mapping[str, MatrixSource]
    slot: str

    def play(self) -> Session:
        """Return the session, played to its end."""
        session = Session(
            *(self.params, self.layout, self.tables, SEED), session=ID, about=ABOUT
        )
        session.to_the_end()
        return session

    def record(self, session: Session, refusals: list[Refusal]) -> RecordedSession:
        """Return the session as the slot knows it."""
        own = self.slot
        others = {
            slot: PartyKeys(entropy, ID, slot).opening.private_bytes_raw().hex()
            for slot, entropy in session.entropies.items()
            if slot not in {own, COORDINATOR}
        }
        return RecordedSession(
            name=self.name,
            level=self.level,
            receivers=others,
            steps=[self.begin(session), *self.steps(session), self.end(session)],
            refusals=refusals,
        )

    def begin(self, session: Session) -> VectorCase:
        """Return the first step."""
        return VectorCase(
            name="begin",
            section="5",
            call="init",
            input=build_opening(session, self.slot, self.tables[self.slot]),
            output={},
        )

    def steps(self, session: Session) -> list[VectorCase]:
        """Return a step for each task."""
        tasks = [m for m in session.sent if m.receiver == self.slot]
        answers = [m for m in session.sent if m.sender == self.slot]
        return [
            build_step(task.payload, answer.payload)
            for task, answer in zip(tasks, answers, strict=True)
        ]

    def end(self, session: Session) -> VectorCase:
        """Return the last step."""
        result = session.final_step.results[self.slot]
        labels = session.outcomes()[self.slot].labels.tolist()
        return VectorCase(
            name="the result",
            section="12",
            call="conclude",
            input={"result": as_text(result)},
            output={"labels": labels},
        )


def build_step(task: bytes, contribution: bytes) -> VectorCase:
    """Return the case of a task and what answers it."""
    asked, given = read(task), read(contribution)
    kind = given.header.record["kind"]
    turned = TURNED.get(kind, [])
    here = asked.address
    return VectorCase(
        name=f"{asked.header.record['kind']}, round {here.round}.{here.attempt}",
        section="7" if here.stage in {"opening", "closing"} else "12",
        call="step",
        input={"task": as_text(task)},
        output={"contribution": as_text(contribution)},
        tolerance=_TOLERANCE if turned or given.envelopes else 0.0,
        turned=turned,
    )


def build_opening(session: Session, slot: str, table: MatrixSource) -> dict[str, Any]:
    """Return what a party knows when its session begins."""
    agreed, terms = session.session.agreement, session.session.agreement.terms
    coordinator = Institution.derive(session.entropies[COORDINATOR])
    name = session.session.terms.session
    signed = digest(terms.encode())
    invitation = Invitation(
        url="https://analyst.example.org",
        session=name,
        slot=slot,
        code="k3-Zq_9x",
        secret=roster_entries.session_secret(session.entropies[COORDINATOR], name),
        terms=signed,
        coordinator=coordinator.key,
        signature=roster_entries.sign_terms(coordinator, signed),
    )
    return {
        "slot": slot,
        "entropy": session.entropies[slot].hex(),
        "invitation": str(invitation),
        "terms": terms,
        "agreement": session.agreement.decode(),
        "own": agreed.member(slot).model_dump(mode="json"),
        "table": {
            "columns": list(table.columns),
            "ids": None if table.ids is None else list(table.ids),
            "rows": matrix(table).tolist(),
        },
        "choices": {},
    }


def as_text(content: bytes) -> str:
    """Return bytes as text."""
    return base64.b64encode(content).decode()

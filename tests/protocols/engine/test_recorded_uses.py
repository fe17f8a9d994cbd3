"""A home records what a session of any protocol discloses about its rows."""

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest
from support.examples import begun

from clustering_protocols import engine
from clustering_protocols.contract import Example
from clustering_protocols.engine import packets
from clustering_protocols.session_terms import disclosures_of_terms
from clustering_protocols.simulation import Session
from clustering_protocols.wire.answers import Receipt
from party_sdk.disclosures.uses import Use
from party_sdk.home.policy import Policy
from party_sdk.party.asker import Asker
from party_sdk.party.party_session import Document, Identity, PartySession
from party_sdk.party.rounds import Responder
from tests.protocols.engine.test_conformance import SEED, every_example

POLICY = Policy(minimum_rows=1, sums_limit=1.0)
WITHOUT_VALUES = {"opening", "secrets", "alignment", "linkage"}
"""Stages in which others learn at most which rows are common."""


class Receiver:
    """Acknowledges contributions, and has no next task."""

    def contribute(
        self,
        session: str,
        round_: int,
        attempt: int,
        content: bytes,
        *_: Any,
        **__: Any,
    ) -> tuple[Receipt, None]:
        receipt = Receipt(
            session=session,
            slot="",
            round=round_,
            attempt=attempt,
            digest=sha256(content).hexdigest(),
            size=len(content),
            received_at=datetime(2026, 1, 1, tzinfo=UTC),
            sequence=round_ * 10 + attempt,
            entry="0" * 64,
        )
        return receipt, None


class AtHome(Session):
    """A session in which one party answers from a home.

    recorded: whether the home had a record of a use after each answer, by stage.
    """

    slot: str
    files: PartySession
    responder: Responder
    recorded: dict[str, bool]

    def move_in(self, home: Path) -> None:
        terms, self.slot, self.recorded = self.session.terms, self.session.slots[0], {}
        self.files = PartySession(home, terms.session, self.slot)
        identity = Identity(
            invitation="https://a#coterie-2/s/a/code/secret",
            entropy=self.entropies[self.slot].hex(),
            terms=self.session.agreement.terms,
        )
        self.files.accept_terms(identity)
        self.files.save_document(Document.AGREEMENT, self.agreement)
        self.responder = Responder(
            stored=self.files,
            analyst=Receiver(),  # type: ignore[arg-type]  the one call of a responder
            terms=terms,
            policy=POLICY,
            asker=create_autospec(Asker, instance=True, is_present=True),
            allows_combination=False,
        )

    def ask_party(self, slot: str, task: bytes) -> engine.TaskOutcome:
        if slot == self.slot:
            self.responder.answer_and_await(self.party(slot), task, self.data[slot])
            stage = packets.parse(task).address.stage
            self.recorded[stage] = bool(self.uses)
        return super().ask_party(slot, task)

    @property
    def uses(self) -> list[Use]:
        nothing = Use(session="", slot="")
        return [entry.use for entry in self.files.history.other_entries(nothing)]


@pytest.mark.threat(155)
@every_example
def test_what_a_session_discloses_is_recorded_at_home(
    name: str, example: Example[Any], tmp_path: Path
) -> None:
    session = begun(example, SEED, AtHome)
    session.move_in(tmp_path)
    with session.files.lock():
        session.run_to_end()
    discloses = bool(disclosures_of_terms(session.session.terms))
    assert session.recorded == {
        stage: discloses and stage not in WITHOUT_VALUES for stage in session.recorded
    }, name
    assert len(session.uses) == discloses

"""Consent: asked once for each kind, readable, kept, and withdrawn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.examples import begun, dealt
from support.terminal import ACCEPT, Terminal, opened

from clustering_protocols import catalogue, simulation
from clustering_protocols.contract import Example
from clustering_protocols.engine import packets
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.engine.signatures import build_opening
from clustering_protocols.numerics.profiles import FieldProfile, Profile
from clustering_protocols.protocols.dummy.messages import Counted
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.profiles.messages import (
    ProfileTold,
    encode_profiles,
)
from party_sdk.application.asker import Answer, Asks, Confirmation
from party_sdk.lab.rehearsal import rehearse
from party_sdk.party.party_session import PartySession

ADDRESS = packets.Address(
    session="s", agreement="0" * 64, slot="a", stage="count", round=3, attempt=1
)
EXAMPLES = [
    pytest.param(example, id=f"{name}-{place}")
    for name, known in catalogue.catalogue().items()
    for place, example in enumerate(known.reference().examples())
]
LLF = [param for param in EXAMPLES if str(param.id).startswith("llf")]


def sent_by(example: Example[Any]) -> set[type[Record]]:
    """Every kind of record that a party of an example sends."""
    known = catalogue.protocol(catalogue.name_of(example.params))
    stages = [build_opening(), *known.stages(example.params, example.layout)]
    found = {exchange.answer for stage in stages for exchange in stage.exchanges}
    return found | {envelope for stage in stages for envelope in stage.envelopes}


@pytest.mark.parametrize("example", EXAMPLES)
def test_everything_that_is_sent_says_what_it_means(example: Example[Any]) -> None:
    for record in sent_by(example):
        if record.model_fields:
            assert record.meaning.endswith("."), record
            assert 0 < len(record.meaning.split()) <= 25
        if record.reach == "hidden":
            assert "nobody" in record.meaning or "only" in record.meaning


def inspected(record: Record, round_: int = 3) -> Inspection:
    address = ADDRESS.model_copy(update={"round": round_})
    return Inspection.of(packets.write(address, record), {}, records=(type(record),))


@dataclass
class Person:
    """Somebody who answers alike, and counts the questions."""

    answer: Answer
    asked: list[str] = field(default_factory=list)
    is_present = True

    def agree(self) -> bool:
        self.asked.append("agreement")
        return self.answer is not Answer.NO

    def let_go(self, found: Inspection, terms: object) -> Answer:
        del terms
        self.asked.append(found.consent_kind)
        return self.answer


@pytest.fixture
def folder(online: Terminal) -> PartySession:
    """The folder of a party that has accepted its terms."""
    session, invitation = opened(online)
    online("party", "join", invitation, *ACCEPT)
    return PartySession(Path(online.environment["COTERIE_HOME"]), session, "r1c1")


ROWS = Counted(positions=np.array([0, 1]))


def asking(person: Person, folder: PartySession, asks: Asks) -> Confirmation:
    return Confirmation(person, folder, asks)  # type: ignore[arg-type]  # two of its calls


def test_a_yes_to_a_kind_is_kept(
    folder: PartySession,
) -> None:
    person = Person(Answer.ALL)
    for round_ in (3, 4, 5):
        assert asking(person, folder, Asks.READABLE)(inspected(ROWS, round_))
    assert person.asked == ["counted"]
    [kept] = folder.consents.kinds
    assert kept.meaning == "The numbers of your rows."


def test_a_yes_to_one_alone_is_asked_for_again(folder: PartySession) -> None:
    person = Person(Answer.ONCE)
    assert asking(person, folder, Asks.READABLE)(inspected(ROWS))
    assert asking(person, folder, Asks.READABLE)(inspected(ROWS, 4))
    assert person.asked == ["counted", "counted"]


def test_what_nobody_can_read_is_asked_about_only_if_wished(
    folder: PartySession,
) -> None:
    shown = inspected(ROWS)
    parts = [replace(part, reach="hidden") for part in shown.parts]
    hidden = replace(shown, parts=parts)
    person = Person(Answer.NO)
    assert asking(person, folder, Asks.READABLE)(hidden)
    assert not person.asked
    assert not asking(person, folder, Asks.EVERYTHING)(hidden)


def test_after_a_withdrawal_every_kind_is_asked_about_again(
    folder: PartySession,
) -> None:
    yes = Person(Answer.ALL)
    assert asking(yes, folder, Asks.NOTHING)(inspected(ROWS))
    assert not yes.asked, "the policy decides"
    folder.consents.withdraw()
    no = Person(Answer.NO)
    assert not asking(no, folder, Asks.NOTHING)(inspected(ROWS))
    assert no.asked == ["counted"]
    assert asking(yes, folder, Asks.NOTHING)(inspected(ROWS))
    assert asking(no, folder, Asks.NOTHING)(inspected(ROWS, 4)), "somebody said yes"


def test_who_withdraws_sends_nothing_unasked(online: Terminal, rows: Path) -> None:
    session, invitation = opened(online)
    online("party", "join", invitation, *ACCEPT)
    told = online("party", "consent", session, "r1c1", "--withdraw").stderr
    assert "What was sent stays sent" in told
    run = ("party", "run", session, "r1c1", "--data", rows, "--id-column", "id")
    assert "You took your consent back" in online(*run, expect=3).stderr


def test_a_profile_is_shown_as_a_table() -> None:
    field_ = FieldProfile(
        name="age", n_rows=(40, 60), mean=(50.0, None), spread=(4.0, None), difference=1
    )
    profile = Profile(
        column=0,
        own=False,
        clusters=(0, 1),
        n_rows=(40, 60),
        rounded=True,
        fields=(field_,),
    )
    found = inspected(ProfileTold(text=encode_profiles([profile])))
    assert found.reach == "readable"
    [table] = found.tables
    assert table.columns == ("variable", "cluster 0", "cluster 1")
    assert table.rows == [("rows", "40", "60"), ("age", "50 ± 4", "–")]
    silent = inspected(ProfileTold(text=np.zeros(0, np.uint8)))
    assert silent.reach == "agreement", "an empty answer shows nothing"


@pytest.mark.parametrize("example", LLF)
@pytest.mark.quick(3)
def test_a_session_of_llf_asks_at_most_three_times_what_is_read(
    example: Example[Any],
) -> None:
    """With risks and safety number, which are one question each, at most five."""
    session = begun(example, 3, simulation.Session).session
    for slot in example.layout.names[:2]:
        found = rehearse(session.terms, slot, dealt(example, 3).data[slot]).left
        read = {e.example.consent_kind for e in found if e.example.reach == "readable"}
        assert len(read) <= 3

"""A coordinator that holds what the analyst says against what it signed itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from support.in_process import ACCEPTING, Api

from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    AgreementMismatch,
    AuditBroken,
    InvalidParameters,
    KeyNotAuthentic,
    NotReady,
    SessionExists,
    Unavailable,
)
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy.keys import safety_number
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.terms import About, Layout, read_terms
from clustering_protocols.wire.states import SessionState
from coterie import Coordinator, Party
from party_sdk.analyst_client.http_analyst import HttpAnalyst
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.coordinator.session import CoordinatedSession, StoredSession
from party_sdk.home.identities import OwnIdentity

PARTS = simulation.split(np.eye(24)[:, :3], Layout.lattice(2), seed=1)
A, B = PARTS.layout.names


@pytest.fixture
def coordinator(api: Api, home: Path) -> Coordinator:
    return Coordinator("http://127.0.0.1", api.key(), home=home, analyst=api.connect())


@pytest.fixture
def joined(api: Api, coordinator: Coordinator, home: Path) -> CoordinatedSession:
    session = coordinator.create_session("wards", Dummy(), PARTS.layout)
    for slot, invitation in session.invite().items():
        here = {"home": home / slot, "analyst": api.connect()}
        OwnIdentity(home / slot).create(f"Hospital {slot}")
        Party.join(invitation, policy=ACCEPTING, **here).enrol(PARTS.data[slot])
    return session


def in_agreement(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], object]
) -> None:
    honest = HttpAnalyst.agreement

    def agreement(self: HttpAnalyst, session: str) -> bytes:
        told = json.loads(honest(self, session))
        change(told)
        return json.dumps(told).encode()

    monkeypatch.setattr(HttpAnalyst, "agreement", agreement)


def test_an_invitation_has_the_digest_of_its_own_terms(
    api: Api, coordinator: Coordinator, home: Path
) -> None:
    about = About(title="Wards", purpose="Fewer falls.", contact="The registry")
    session = coordinator.create_session(about, Dummy(), PARTS.layout)
    told = api.send("POST", "/v1/join/preview", json={"code": "c" * 20})
    assert told.status_code == 404
    for invitation in session.invite().values():
        found = Invitation.parse(invitation)
        shown = api.send("POST", "/v1/join/preview", json={"code": found.code}).json()
        assert digest(shown["terms"].encode()) == found.terms
        terms = read_terms(shown["terms"].encode())
        assert terms.about == about
        own = OwnIdentity(home).load().key
        assert terms.identities.coordinator == found.coordinator == own


def test_a_coordinator_notices_changed_terms_and_parties_a_forged_digest(
    api: Api, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    honest = HttpAnalyst.put_session

    def weaker(self: HttpAnalyst, session: str, body: dict[str, Any]) -> Any:
        return honest(self, session, {**body, "guards": {"minimum_rows": 1}})

    def forged(self: HttpAnalyst, session: str, body: dict[str, Any]) -> Any:
        stored = StoredSession.load(home, session)
        assert stored is not None
        status = weaker(self, session, body)
        return status.model_copy(update={"terms_digest": stored.terms_digest})

    monkeypatch.setattr(HttpAnalyst, "put_session", weaker)
    with pytest.raises(AgreementMismatch, match="differ from those requested"):
        coordinator.create_session("wards", Dummy(), PARTS.layout)
    monkeypatch.setattr(HttpAnalyst, "put_session", forged)
    session = coordinator.create_session("wards", Dummy(), PARTS.layout)
    with pytest.raises(AgreementMismatch, match="that the coordinator signed"):
        Party.join(
            session.invite()[A], policy=ACCEPTING, home=home / A, analyst=api.connect()
        )
    with pytest.raises(AuditBroken, match="terms other than yours"):
        session.audit()


def test_who_takes_part_is_computed_from_the_agreement(
    joined: CoordinatedSession,
) -> None:
    roster = joined.roster()
    assert [seat.name for seat in roster.seats] == [f"Hospital {A}", f"Hospital {B}"]
    assert not any(seat.known for seat in roster.seats)
    content = joined._analyst.agreement(joined.id)
    assert roster.safety_number == safety_number(content)
    assert joined.audit().verified_entries()[0]["event"] == "opened"


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], type[Exception]]] = {
    "terms": (
        lambda d: d.update(terms=d["terms"].replace(":10", ":11")),
        AgreementMismatch,
    ),
    "rows": (lambda d: d["roster"][1].update(n_rows=2), KeyNotAuthentic),
}


@pytest.mark.threat(34)
@pytest.mark.parametrize("what", CHANGES)
def test_a_coordinator_shows_no_agreement_that_was_not_signed(
    joined: CoordinatedSession, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    change, expected = CHANGES[what]
    in_agreement(monkeypatch, change)
    with pytest.raises(expected):
        joined.roster()
    with pytest.raises(expected):
        joined.summary()


def test_a_home_keeps_one_session_of_an_id(
    api: Api, coordinator: Coordinator, home: Path
) -> None:
    """Anyone who opens another one, with another key or elsewhere, keeps the first."""
    first = coordinator.create_session("a", Dummy(), PARTS.layout, session_id="same")
    before = StoredSession.load(home, "same")
    here = {"home": home, "analyst": api.connect()}
    with (
        Coordinator("http://127.0.0.1", api.key(), **here) as other,
        pytest.raises(SessionExists, match="already has a session 'same'"),
    ):
        other.create_session("b", Dummy(), PARTS.layout, session_id="same")
    assert StoredSession.load(home, "same") == before
    assert first.invite()


def test_an_id_is_free_again_after_the_analyst_refused(
    coordinator: Coordinator, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        for refusal, stays in (
            (InvalidParameters("no"), False),
            (Unavailable(""), True),
        ):
            patch.setattr(HttpAnalyst, "put_session", Mock(side_effect=refusal))
            with pytest.raises(type(refusal)):
                coordinator.create_session("a", Dummy(), PARTS.layout, session_id="x")
            assert (StoredSession.load(home, "x") is not None) == stays
    coordinator.create_session("b", Dummy(), PARTS.layout, session_id="y")
    # after an outage the same seed is used again
    again = coordinator.create_session("a", Dummy(), PARTS.layout, session_id="x")
    assert again.status().state is SessionState.RECRUITING


def test_what_cannot_be_checked_here_is_not_shown(
    joined: CoordinatedSession, home: Path
) -> None:
    elsewhere = CoordinatedSession(joined.id, joined._analyst, home / "elsewhere")
    assert not elsewhere.is_ours
    for shown in (elsewhere.roster, elsewhere.summary, elsewhere.invite):
        with pytest.raises(NotReady):
            shown()
    assert elsewhere.audit() == joined.audit()  # the chain can be

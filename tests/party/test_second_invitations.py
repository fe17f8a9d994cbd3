"""What a party does with a second invitation, and after it was shut out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest
from support.analyst_process import ACCEPTING

from analyst_service import members
from analyst_service.credentials import list_tokens
from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    GuardRefused,
    InvitationExpired,
    KeyNotAuthentic,
    Unavailable,
)
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.terms import Layout
from coterie import Party
from party_sdk.analyst_client.http_analyst import HttpAnalyst, connect
from party_sdk.analyst_client.invitations import Invitation

if TYPE_CHECKING:
    from support.in_process import Api, ByHand

X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, Layout.lattice(1), seed=1)
[A] = PARTS.layout.names
HERE, THERE = "http://127.0.0.1", "http://127.0.0.1:9"


class Guest:
    """A party that has joined, and an address that writes down what it is sent."""

    def __init__(self, api: Api, home: Path) -> None:
        self.api, self.home = api, home
        self.session: ByHand = api.open(Dummy(), PARTS)
        self.sent_there: list[httpx.Request] = []
        with self.party() as party:
            party.enrol(PARTS.data[A])
            self.token = party.stored.load_identity().token

    def invitation(self, url: str = HERE, secret: bytes | None = None) -> str:
        secret = secret or self.session.secret
        return self.session.invitation(A, url=url, secret=secret)

    def party(
        self, url: str = HERE, *, secret: bytes | None = None, moved: bool = False
    ) -> Party:
        return Party.join(
            self.invitation(url, secret),
            policy=ACCEPTING,
            home=self.home,
            analyst=self.connect(url),
            accept_moved=moved,
        )

    def connect(self, url: str) -> HttpAnalyst:
        if url.rstrip("/") == HERE:
            return self.api.connect()

        def note(request: httpx.Request) -> httpx.Response:
            self.sent_there.append(request)
            return httpx.Response(404)

        http = httpx.Client(base_url=url, transport=httpx.MockTransport(note))
        return connect(url, patience=0, http=http)


@pytest.fixture
def guest(api: Api, home: Path) -> Iterator[Guest]:
    return Guest(api, home)


def test_a_moved_analyst_is_followed_if_the_operator_agrees(guest: Guest) -> None:
    with pytest.raises(GuardRefused, match=r"127\.0\.0\.1:9.*not sent there.*--moved"):
        guest.party(THERE)
    assert guest.sent_there == []
    for url in (HERE, f"{HERE}/", f"{HERE}:80"):  # the same, written otherwise
        with guest.party(url) as party:
            assert party.stored.load_identity().token == guest.token
    with guest.party(THERE, moved=True) as party:
        kept = Invitation.parse(party.stored.load_identity().invitation)
        assert kept.url == THERE
    with guest.party(THERE):
        pass  # it is the address now
    with pytest.raises(GuardRefused, match="--moved"):
        guest.party(HERE)


def shut_out(guest: Guest) -> None:
    assert guest.api.service.database.transact(members.shut_out, guest.session.id) == 1


@pytest.mark.threat(29)
def test_a_party_that_was_shut_out_stops_and_gets_no_token(guest: Guest) -> None:
    guest.api.turn()
    shut_out(guest)
    with guest.party() as party:
        for _ in range(2):
            with pytest.raises(InvitationExpired, match="administrator revoked"):
                party.run(PARTS.data[A])
        assert party.stored.load_identity().token is None
    found = guest.api.service.database.query(list_tokens)
    assert found
    assert [c.slot for c, _ in found if c.revoked_at is None] == []


def test_a_party_whose_token_expired_joins_again_by_itself(guest: Guest) -> None:
    identity = (folder := guest.party().stored).load_identity()
    folder.save_identity(identity.model_copy(update={"token": "pt_expired"}))
    with guest.party() as party:
        party._remember(party._identity.model_copy(update={"token": None}))
        party.enrol(PARTS.data[A])
        renewed = party.stored.load_identity().token
    assert renewed not in {None, guest.token, "pt_expired"}


def test_a_refused_proof_is_sent_only_a_few_times(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with guest.party() as party:
        party._remember(party._identity.model_copy(update={"token": None}))
        refused = KeyNotAuthentic("no")
        tries: list[int] = []

        def join(*_: object) -> str:
            tries.append(1)
            raise refused

        monkeypatch.setattr(party._analyst, "join", join)
        with pytest.raises(KeyNotAuthentic):
            party.enrol(PARTS.data[A])
        assert len(tries) == 1, "nobody else had joined meanwhile"
        preview = party._analyst.preview(guest.session.codes[A])
        counted = iter(range(1000))
        monkeypatch.setattr(
            party._analyst,
            "preview",
            lambda _: preview.model_copy(update={"joins": next(counted)}),
        )
        with pytest.raises(Unavailable):
            party.enrol(PARTS.data[A])
        assert len(tries) == 6


def test_changed_terms_or_coordinator_are_refused_once_accepted(guest: Guest) -> None:
    """Anyone who holds the secret, and the analyst, cannot lead a party elsewhere later."""
    with pytest.raises(GuardRefused, match="another session secret"):
        guest.party(secret=bytes(32), moved=True)
    session = guest.session
    weaker = session.drawn.replace(b'"minimum_rows":10', b'"minimum_rows":1')
    other = Institution("", bytes(32))
    signed = digest(session.drawn)
    for invitation in (
        session.invitation(A, terms=weaker),
        session.invitation(
            A, coordinator=other.key, signature=roster_entries.sign_terms(other, signed)
        ),
    ):
        with pytest.raises(GuardRefused, match="other terms than were accepted"):
            Party.join(
                invitation,
                policy=ACCEPTING,
                home=guest.home,
                analyst=guest.connect(HERE),
                accept_moved=True,
            )

"""Whom a party knows, and with whom it sits down."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from support.in_process import ACCEPTING, Api, ByHand
from support.terminal import coterie

from analyst_service import members
from analyst_service.credentials import list_tokens
from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    AgreementMismatch,
    GuardRefused,
    InvalidParameters,
    InvitationExpired,
    KeyNotAuthentic,
    NotReady,
    Unavailable,
)
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import safety_number
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import read_agreement
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.terms import Layout, SessionRequest
from coterie import Party, Policy
from party_sdk.analyst_client.http_analyst import HttpAnalyst, connect
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.home.identities import OwnIdentity, TrustedInstitutions
from party_sdk.party.asker import Asker
from party_sdk.party.roster import PeerVerifier, Roster
from party_sdk.party.rounds import SessionWatch

ROWS = np.random.default_rng(0).normal(size=(36, 3))
PARTS = simulation.split(ROWS, Layout.lattice(3), seed=1)
A, B, C = PARTS.layout.names
RISK = "dummy.by-design"
STRICT = Policy(accepted_risks=frozenset({RISK}))


def institution(slot: str) -> Institution:
    return Institution(f"Hospital {slot}", slot.encode().ljust(32))


def test_a_new_identity_is_kept_and_readable_by_its_owner_only(home: Path) -> None:
    with pytest.raises(NotReady, match="identity new"):
        OwnIdentity(home).load()
    made = OwnIdentity(home).load_or_create()
    assert made.name == ""
    assert OwnIdentity(home).load().key == OwnIdentity(home).load_or_create().key
    path = home / "home.db"
    assert (path.stat().st_mode & 0o777, home.stat().st_mode & 0o777) == (0o600, 0o700)
    assert made.key not in {OwnIdentity(home / "other").load_or_create().key, "0" * 64}


def test_a_first_identity_can_be_named_and_keeps_its_key(home: Path) -> None:
    first = OwnIdentity(home).load_or_create()
    named = OwnIdentity(home).create("St. Mary's")
    assert (named.key, named.name) == (first.key, "St. Mary's")
    with pytest.raises(GuardRefused, match=r"St\. Mary.s.*--replace"):
        OwnIdentity(home).create("Another")
    assert OwnIdentity(home).load().name == "St. Mary's"
    other = OwnIdentity(home).create("Another", replace=True)
    assert other.key != first.key
    assert OwnIdentity(home).load().name == "Another"


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x1b[8m", "x" * 101])
def test_a_name_that_cannot_be_shown_is_refused(home: Path, name: str) -> None:
    with pytest.raises(InvalidParameters):
        OwnIdentity(home).create(name)
    with pytest.raises(NotReady):
        OwnIdentity(home).load()


def test_of_many_that_make_an_identity_at_once_all_have_one(home: Path) -> None:
    start = threading.Barrier(8)

    def make(_: int) -> str:
        start.wait()
        return OwnIdentity(home).load_or_create().key

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(make, range(8)))) == 1


def test_who_is_trusted_is_known_until_forgotten(home: Path) -> None:
    known = TrustedInstitutions(home)
    assert known.keys_by_name() == {}
    for slot in (A, B):
        known.trust(institution(slot).card)
        known.trust(institution(slot).card)
    assert known.keys_by_name() == {f"Hospital {s}": institution(s).key for s in (A, B)}
    assert known.name_of(institution(A).key) == f"Hospital {A}"
    assert known.name_of(institution(C).key) is None
    known.forget(f"Hospital {A}")
    with pytest.raises(NotReady):
        known.forget(f"Hospital {A}")
    assert known.keys_by_name() == {f"Hospital {B}": institution(B).key}


@pytest.mark.parametrize(
    "name",
    [
        "St. Mary's",
        "st. mary's",
        "ST.  MARY'S ",
        "\uff33t. Mary's",
        *(
            f"St.{invisible}Mary's"
            for invisible in "\u200b\u2060\xad\ufe0f\u3164\u2800"
        ),
    ],
)
def test_a_known_name_is_never_given_another_key(home: Path, name: str) -> None:
    known = TrustedInstitutions(home)
    known.trust(Institution("St. Mary's", bytes(32)).card)
    before = known.keys_by_name()
    other = Institution(name, bytes(31) + b"1")
    with pytest.raises(GuardRefused, match="is known here with the key"):
        known.trust(other.card)
    with pytest.raises(GuardRefused, match="known here"):
        known.check_key(name, other.key)
    assert known.keys_by_name() == before
    known.check_key(name, before["St. Mary's"])
    known.check_key("St. Mark's", other.key)


@pytest.mark.parametrize(
    "name", ["St. M\u0430ry's", "St. Mary'\u0455", "\u0391BC Clinic"]
)
def test_a_name_with_letters_of_another_script_in_a_word_is_not_trusted(
    home: Path, name: str
) -> None:
    known = TrustedInstitutions(home)
    with pytest.raises(GuardRefused, match="letters of two scripts"):
        known.trust(Institution(name, bytes(32)).card)
    known.trust(
        Institution("\u041a\u043b\u0438\u043d\u0438\u043a\u0430 Nord", bytes(32)).card
    )


def test_one_key_has_one_name(home: Path) -> None:
    known = TrustedInstitutions(home)
    known.trust(Institution("St. Mary's", bytes(32)).card)
    with pytest.raises(GuardRefused, match=r"as that of \"St\. Mary"):
        known.trust(Institution("St. Mark's", bytes(32)).card)


def agreement(*named: str, names: dict[str, Institution] | None = None) -> bytes:
    """Return an agreement of three institutions, of whom the terms name some."""
    from clustering_protocols import session_terms
    from clustering_protocols.terms.terms import Identities

    sitting = {slot: institution(slot) for slot in PARTS.layout.names} | (names or {})
    expected = {slot: sitting[slot].key for slot in named}
    proposal = SessionRequest(
        protocol={"name": "dummy", "params": {}},
        layout=PARTS.layout,
        identities=Identities(slots=expected),
        seed=1,
    )
    terms = session_terms.draw_up_terms("s", proposal)
    roster = {
        slot: roster_entries.create_roster_line(
            bytes(32), terms, slot, slot.encode(), who, n_rows=12, n_columns=3
        )
        for slot, who in sitting.items()
    }
    return roster_entries.build_agreement(terms, roster)


class Compared(Asker):
    """Says that all members have read the same safety number."""

    def confirm_members(self, *_: object, **__: object) -> bool:
        return True


ALL = agreement(A, B, C)
OPEN = agreement(A, B)


@pytest.mark.threat(151)
@pytest.mark.parametrize(
    ("content", "least", "known", "refused"),
    [
        (ALL, None, [], True),
        (ALL, None, [B], True),
        (ALL, None, [B, C], False),
        (ALL, 1, [B], False),
        (ALL, 0, [], False),
        (ALL, 9, [B, C], False),
        (ALL, 9, [B], True),
        (ALL, 1, [A], True),
        (OPEN, None, [B], True),
        (OPEN, None, [B, C], False),
        (OPEN, 0, [], False),
        (OPEN, 1, [], True),
        (OPEN, 2, [B], True),
        (OPEN, 2, [B, C], False),
    ],
)
def test_enough_of_the_others_have_to_be_known(
    content: bytes, least: int | None, known: list[str], *, refused: bool
) -> None:
    keys = [institution(slot).key for slot in known]
    policy = Policy(least_known=least)
    if not refused:
        policy.check_known_members(content, A, keys)
        return
    needed = 2 if least is None else min(least, 2)
    said = f"You know {len(set(known) - {A})} of the 2.*'least_known' is {needed}"
    with pytest.raises(GuardRefused, match=said):
        policy.check_known_members(content, A, keys)


def test_one_known_institution_at_two_slots_is_one() -> None:
    twice = {B: institution(B), C: institution(B)}
    content = agreement(A, B, C, names=twice)
    with pytest.raises(GuardRefused, match="You know 1 of the 2"):
        Policy().check_known_members(content, A, [institution(B).key])


def test_a_known_name_with_another_key_is_always_refused(home: Path) -> None:
    impostor = Institution(f"Hospital {B}", bytes(32))
    content = agreement(names={B: impostor})
    TrustedInstitutions(home).trust(institution(B).card)
    verifier = PeerVerifier(home, number=safety_number(content))
    with pytest.raises(GuardRefused, match=f"'Hospital {B}' is known here"):
        verifier.verify_members(content, A, ACCEPTING)
    TrustedInstitutions(home).forget(f"Hospital {B}")
    verifier.verify_members(content, A, ACCEPTING)


@pytest.mark.threat(34)
def test_parties_with_different_rosters_stop_on_comparison(home: Path) -> None:
    """Each roster holds by itself: every line in it is marked and signed."""
    shown_to_a = agreement()
    shown_to_b = agreement(names={C: Institution("Hospital r3c1", bytes(32))})
    told = safety_number(shown_to_b)
    for asker in (Asker(), Compared()):
        verifier = PeerVerifier(home, number=told, asker=asker)
        with pytest.raises(KeyNotAuthentic, match="different members"):
            verifier.verify_members(shown_to_a, A, ACCEPTING)
        with pytest.raises(KeyNotAuthentic):
            verifier.verify_safety_number(shown_to_a)
    verifier.verify_safety_number(shown_to_b)


def test_a_roster_shows_whose_card_was_trusted(home: Path) -> None:
    renamed = Institution("The North", institution(B).key_bytes)
    with_new_key = Institution(f"Hospital {C}", bytes(32))
    for other in (renamed, with_new_key):
        TrustedInstitutions(home).trust(other.card)
    roster = Roster.of(ALL, TrustedInstitutions(home), A)
    assert [(seat.name, seat.known) for seat in roster.seats] == [
        (f"Hospital {A}", True),
        ("The North", True),
        (f"Hospital {C}", False),
    ]
    assert roster.safety_number == safety_number(ALL)


class Guests:
    def __init__(self, api: Api, folder: Path, *named: str) -> None:
        self.api, self.folder = api, folder
        self.who = {
            slot: OwnIdentity(self.home(slot)).create(slot) for slot in (A, B, C)
        }
        expected = {slot: self.who[slot].key for slot in named}
        params = Dummy(n_clusters=3)
        self.session: ByHand = api.open(params, PARTS, expected=expected)

    def home(self, slot: str) -> Path:
        return self.folder / slot

    def party(self, slot: str, policy: Policy = ACCEPTING, **more: Any) -> Party:
        home = more.pop("home", self.home(slot))
        return self.session.accept(slot, home, policy=policy, **more)


@pytest.fixture
def guests(api: Api, tmp_path: Path) -> Callable[..., Guests]:
    folders = (tmp_path / f"homes-{number}" for number in count())
    return lambda *named: Guests(api, next(folders), *named)


def test_terms_of_another_coordinator_are_refused(
    guests: Callable[..., Guests],
) -> None:
    """Somebody signs the true terms with a key that is not in them."""
    here = guests()
    other = Institution("", bytes(32))
    signature = roster_entries.sign_terms(other, digest(here.session.drawn))
    invitation = here.session.invitation(A, coordinator=other.key, signature=signature)
    with pytest.raises(AgreementMismatch, match="not signed by"):
        here.party(A, invitation=invitation)


def test_a_leaked_invitation_does_not_admit_another_key(
    guests: Callable[..., Guests],
) -> None:
    here = guests(A, B, C)
    with pytest.raises(GuardRefused, match="The terms expect the key"):
        here.party(A, STRICT, home=here.home("thief"))


def test_institutions_that_know_each_other_sit_down(
    guests: Callable[..., Guests],
) -> None:
    here = guests(A, B, C)
    for slot in (A, B, C):
        with here.party(slot, STRICT) as party:
            party.enrol(PARTS.data[slot])
            assert party.identity.key == here.who[slot].key
    content = here.api.send("GET", f"{here.session.path}/agreement", here.session.key)
    agreed, _ = read_agreement(content.content)
    assert [m.institution for m in agreed.roster] == [A, B, C]
    with here.party(A, STRICT) as party:
        client = party._analyst.as_party(party._identity.token or "")
        watch = SessionWatch(client, here.session.id, None)
        state = watch.fetch_status().state
        with pytest.raises(GuardRefused, match="You know 0 of the 2"):
            party._await_agreement(client, watch, state)
        assert party.safety_number is None
        for other in (B, C):
            TrustedInstitutions(here.home(A)).trust(here.who[other].card)
        assert party._await_agreement(client, watch, state) == content.content
        assert party.safety_number == safety_number(content.content)


def test_a_party_with_a_new_identity_rejoins_under_the_old_one(
    guests: Callable[..., Guests],
) -> None:
    here = guests()
    with here.party(A) as party:
        party.enrol(PARTS.data[A])
        token = party._identity.token
    OwnIdentity(here.home(A)).create("New name", replace=True)
    with here.party(A) as party:
        party._save_identity(party._identity.model_copy(update={"token": None}))
        party.enrol(PARTS.data[A])
        assert party._identity.token not in {None, token}
        assert party._identity.member.identity == here.who[A].key


def test_cards_are_made_handed_over_and_trusted(tmp_path: Path) -> None:
    north, south = (
        partial(coterie, "identity", env={"COTERIE_HOME": str(tmp_path / name)})
        for name in ("north", "south")
    )
    north("card", expect=7)
    made = json.loads(north("new", "North", "--json").stdout)
    north("new", "North", expect=3)
    card = tmp_path / "north.json"
    card.write_text(north("card").stdout)
    assert south("trust", "--list").stdout == ""
    told = south("trust", card).stdout
    assert told.split()[:2] == ["North", made["key"][:4]]
    listed = json.loads(south("trust", "--list", "--json").stdout)
    assert listed == {"North": made["key"]}
    card.write_text(card.read_text().replace("North", "Nord"))
    south("trust", card, expect=3)
    south("trust", "--forget", "North")
    assert south("trust", "--list").stdout == ""
    south("trust", expect=2)
    south("trust", card, "--list", expect=2)


@pytest.mark.threat(151)
def test_a_safety_number_counts_only_for_confirmed_members(home: Path) -> None:
    """An inventor reads its own number aloud: it shows that all see the same members."""
    number = safety_number(ALL)
    usual = Policy(accepted_risks=STRICT.accepted_risks)
    named = [f"Hospital {slot}" for slot in (B, C)]

    def verify(**how: Any) -> None:
        PeerVerifier(home, **how).verify_members(ALL, A, usual)

    for confirmed, known in ((), 0), (named[:1], 1):
        with pytest.raises(GuardRefused, match=f"You know {known} of the 2 other"):
            verify(number=number, confirmed_with=confirmed)
    for told in (number, number.replace(" ", "")):
        verify(number=told, confirmed_with=named)
    with pytest.raises(GuardRefused):
        verify(asker=Asker())
    verify(asker=Compared())
    TrustedInstitutions(home).trust(institution(B).card)
    verify(number=number, confirmed_with=named[1:])
    with pytest.raises(GuardRefused, match="give the number too"):
        verify(confirmed_with=named)
    with pytest.raises(KeyNotAuthentic):
        verify(number="1", confirmed_with=named)


@pytest.mark.parametrize("name", ["nobody", f"Hospital {A}", f"Hospital {B}"])
def test_who_read_the_number_is_one_other_member(home: Path, name: str) -> None:
    """A name of nobody, of two members, or one's own lets nobody in."""
    content = agreement(names={C: Institution(f"Hospital {B}", bytes(32))})
    verifier = PeerVerifier(home, number=safety_number(content), confirmed_with=[name])
    with pytest.raises(GuardRefused, match=r"are called|You know 0 of the 2"):
        verifier.verify_members(content, A, Policy())


# A second invitation, and after a party was shut out


ALONE_ROWS = np.random.default_rng(0).normal(size=(40, 3))
ALONE = simulation.split(ALONE_ROWS, Layout.lattice(1), seed=1)
[SLOT] = ALONE.layout.names
HERE, THERE = "http://127.0.0.1", "http://127.0.0.1:9"


class Guest:
    """A party that has joined, and an address that writes down what it is sent."""

    def __init__(self, api: Api, home: Path) -> None:
        self.api, self.home = api, home
        self.session: ByHand = api.open(Dummy(), ALONE)
        self.sent_there: list[httpx.Request] = []
        with self.party() as party:
            party.enrol(ALONE.data[SLOT])
            self.token = party.stored.load_identity().token

    def invitation(self, url: str = HERE, secret: bytes | None = None) -> str:
        secret = secret or self.session.secret
        return self.session.invitation(SLOT, url=url, secret=secret)

    def party(
        self, url: str = HERE, *, secret: bytes | None = None, moved: bool = False
    ) -> Party:
        return self.session.accept(
            SLOT,
            self.home,
            invitation=self.invitation(url, secret),
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
    database = guest.api.service.database
    assert database.transact(members.revoke_access, guest.session.id) == 1


@pytest.mark.threat(29)
def test_a_party_that_was_shut_out_stops_and_gets_no_token(guest: Guest) -> None:
    guest.api.turn()
    shut_out(guest)
    with guest.party() as party:
        for _ in range(2):
            with pytest.raises(InvitationExpired, match="administrator revoked"):
                party.run(ALONE.data[SLOT])
        assert party.stored.load_identity().token is None
    found = guest.api.service.database.query(list_tokens)
    assert found
    assert [token.slot for token in found if token.revoked_at is None] == []


def test_a_refused_proof_is_sent_only_a_few_times(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with guest.party() as party:
        party._save_identity(party._identity.model_copy(update={"token": None}))
        refused = KeyNotAuthentic("no")
        tries: list[int] = []

        def join(*_: object) -> str:
            tries.append(1)
            raise refused

        monkeypatch.setattr(party._analyst, "join", join)
        with pytest.raises(KeyNotAuthentic):
            party.enrol(ALONE.data[SLOT])
        assert len(tries) == 1, "nobody else had joined meanwhile"
        preview = party._analyst.preview(guest.session.codes[SLOT])
        counted = iter(range(1000))
        monkeypatch.setattr(
            party._analyst,
            "preview",
            lambda _: preview.model_copy(update={"joins": next(counted)}),
        )
        with pytest.raises(Unavailable):
            party.enrol(ALONE.data[SLOT])
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
        session.invitation(SLOT, terms=weaker),
        session.invitation(
            SLOT,
            coordinator=other.key,
            signature=roster_entries.sign_terms(other, signed),
        ),
    ):
        with pytest.raises(GuardRefused, match="differ from the accepted ones"):
            session.accept(SLOT, guest.home, invitation=invitation, accept_moved=True)

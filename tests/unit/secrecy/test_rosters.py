"""Who takes part: lines that are marked and signed, and what a party checks of them."""

from hashlib import sha256
from typing import Any

import pytest

from clustering_protocols import session_terms
from clustering_protocols.common.errors import (
    AgreementMismatch,
    KeyNotAuthentic,
    Malformed,
)
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import PartyKeys, compute_mark, safety_number
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member, read_agreement
from clustering_protocols.terms.canonical import canonical_json, digest
from clustering_protocols.terms.terms import About, Identities, Layout, SessionRequest

ENTROPY = bytes(range(32))
SECRET = sha256(b"session secret").digest()


def changed(digits: str) -> str:
    return f"{int(digits[0], 16) ^ 8:x}{digits[1:]}"


LAYOUT = Layout.lattice(2, 1)


def drawn(session: str = "s", **identities: Any) -> bytes:
    proposal = SessionRequest(
        about=About(title="t"),
        protocol={"name": "dummy", "params": Dummy().model_dump(mode="json")},
        layout=LAYOUT,
        identities=Identities(**identities),
        seed=1,
    )
    return session_terms.draw_up_terms(session, proposal)


TERMS = drawn()


def institution(slot: str) -> Institution:
    return Institution(f"The {slot} hospital", sha256(f"{slot}!".encode()).digest())


def enrolled(
    slot: str, secret: bytes = SECRET, terms: bytes = TERMS, who: str | None = None
) -> Member:
    entropy, by = sha256(slot.encode()).digest(), institution(who or slot)
    return roster_entries.create_roster_line(
        secret, terms, slot, entropy, by, n_rows=20, n_columns=3
    )


ROSTER = {slot: enrolled(slot) for slot in LAYOUT.names}
OWN = ROSTER["r1c1"]


def agreement(**changes: Member) -> bytes:
    return roster_entries.build_agreement(TERMS, ROSTER | changes)


def check(content: bytes) -> None:
    roster_entries.check_agreement(content, TERMS, SECRET, OWN)


def both(slots: dict[str, str]) -> bytes:
    return drawn(slots={slot: institution(who).key for slot, who in slots.items()})


def resigned(line: Member, who: Institution, terms: bytes = TERMS) -> Member:
    written = roster_entries._build_entry_bytes("s", digest(terms), line.line)
    update = {"mark": compute_mark(SECRET, written), "signature": who.sign(written)}
    return line.model_copy(update=update)


@pytest.mark.threat(34)
@pytest.mark.parametrize(
    "update",
    [
        {"n_rows": 21},
        {"n_columns": 4},
        {"keys": PartyKeys(bytes(32), "s", "r2c1").public},
        {"institution": "Another"},
        {"identity": institution("analyst").key},
        {"signature": OWN.signature},
    ],
    ids=lambda update: next(iter(update)),
)
def test_the_secret_does_not_allow_a_change_of_signed_lines(
    update: dict[str, Any],
) -> None:
    """The analyst together with one party, or with the coordinator."""
    line = ROSTER["r2c1"].model_copy(update=update)
    written = roster_entries._build_entry_bytes("s", digest(TERMS), line.line)
    marked = line.model_copy(update={"mark": compute_mark(SECRET, written)})
    with pytest.raises(KeyNotAuthentic, match="did not sign the line of slot 'r2c1'"):
        check(agreement(r2c1=marked))


@pytest.mark.threat(34)
def test_terms_own_line_and_marks_are_those_of_the_joining() -> None:
    with pytest.raises(AgreementMismatch, match="terms changed"):
        roster_entries.check_agreement(agreement(), drawn("t"), SECRET, OWN)
    with pytest.raises(AgreementMismatch, match="changed line for slot 'r1c1'"):
        check(agreement(r1c1=enrolled("r1c1", who="analyst")))
    with pytest.raises(KeyNotAuthentic, match="'r2c1' has a mark that was not made"):
        check(agreement(r2c1=enrolled("r2c1", secret=bytes(32))))


@pytest.mark.threat(34)
def test_another_institution_may_not_sit_where_one_is_expected() -> None:
    terms = both({"r1c1": "r1c1", "r2c1": "r2c1"})
    own = enrolled("r1c1", terms=terms)
    theirs = enrolled("r2c1", terms=terms)
    stranger = enrolled("r2c1", terms=terms, who="analyst")

    def join(line: Member) -> None:
        agreed = roster_entries.build_agreement(terms, {"r1c1": own, "r2c1": line})
        roster_entries.check_agreement(agreed, terms, SECRET, own)

    join(theirs)
    named = resigned(
        theirs.model_copy(update={"keys": stranger.keys}), institution("analyst"), terms
    )
    for line in (stranger, named):
        with pytest.raises(KeyNotAuthentic, match="'r2c1'"):
            join(line)
        with pytest.raises(KeyNotAuthentic, match="'r2c1'"):
            roster_entries.check_roster_line(terms, line)
    roster_entries.check_roster_line(terms, theirs)


def test_at_an_open_slot_anybody_who_was_invited_may_sit() -> None:
    check(agreement(r2c1=enrolled("r2c1", who="analyst")))


def test_two_rosters_of_one_session_have_two_safety_numbers() -> None:
    """Both hold for anyone who reads one of them: only a comparison tells."""
    shown = [agreement(), agreement(r2c1=enrolled("r2c1", who="analyst"))]
    for content in shown:
        check(content)
    assert safety_number(shown[0]) != safety_number(shown[1])


def test_a_coordinators_signature_is_for_its_terms_and_its_key() -> None:
    own, other = institution("r1c1"), institution("r2c1")
    signature = roster_entries.sign_terms(own, digest(TERMS))
    roster_entries.check_terms_signature(own.key, digest(TERMS), signature)
    for key, terms, made in (
        (other.key, TERMS, signature),
        (own.key, drawn("t"), signature),
        (own.key, TERMS, changed(signature)),
        (own.key, TERMS, own.sign(digest(TERMS).encode())),
    ):
        with pytest.raises(KeyNotAuthentic):
            roster_entries.check_terms_signature(key, digest(terms), made)


def test_a_roster_that_does_not_fill_the_layout_is_malformed() -> None:
    agreed, _ = read_agreement(agreement())
    first, second = agreed.roster
    for roster in (
        (),
        (first,),
        (second, first),
        (first, first),
        (first, second, second),
    ):
        content = canonical_json(agreed.model_copy(update={"roster": roster}))
        with pytest.raises(Malformed):
            check(content)


def test_a_session_secret_belongs_to_one_entropy_and_session() -> None:
    secrets = {
        roster_entries.derive_session_secret(entropy, session)
        for entropy in (ENTROPY, bytes(32))
        for session in ("s", "t")
    }
    assert len(secrets) == 4
    assert {len(secret) for secret in secrets} == {32}

"""How a session's roster comes about, and what a party checks before it trusts it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from cryptography.exceptions import InvalidSignature

from clustering_protocols.errors import AgreementMismatch, KeyNotAuthentic
from clustering_protocols.randomness import derive_key, length_prefixed
from clustering_protocols.secrecy.keys import Line, PartyKeys, check_mark, mark
from clustering_protocols.terms import (
    Agreement,
    Member,
    canonical_json,
    read_agreement,
    read_terms,
)


def session_secret(entropy: bytes, session: str) -> bytes:
    """Return the 32 bytes that all invitations of a session carry, and no request."""
    return derive_key(entropy, "coterie/session-secret/1", session)


def enrol(
    secret: bytes, session: str, slot: str, entropy: bytes, n_rows: int, n_columns: int
) -> Member:
    """Return a party's line of the roster: its sizes, public keys and their mark."""
    line = Line(slot, PartyKeys(entropy, session, slot).public, n_rows, n_columns)
    return Member(**line._asdict(), mark=mark(secret, session, line))


def prove(entropy: bytes, session: str, member: Member, code: str, joins: int) -> str:
    """Return the signature (hex) that goes with a join.

    Roster and codes are known to others: only the holder of the private key may take
    the slot, or take it again. It covers the whole line of the roster, and how often
    the slot was joined before (``joins``), so that a join that somebody recorded is of
    no use after it has counted.
    """
    signing = PartyKeys(entropy, session, member.slot).signing
    return signing.sign(_joining(session, member, code, joins)).hex()


def check_proof(
    member: Member, session: str, code: str, joins: int, proof: str
) -> None:
    """Raise :class:`KeyNotAuthentic` unless the holder of the member's key signed."""
    try:
        member.keys.verifying.verify(
            bytes.fromhex(proof), _joining(session, member, code, joins)
        )
    except (InvalidSignature, ValueError):
        raise KeyNotAuthentic(
            f"The proof for slot {member.slot!r} does not fit, or has counted before."
        ) from None


def _joining(session: str, member: Member, code: str, joins: int) -> bytes:
    digest = sha256(code.encode()).digest()
    line = canonical_json(member)
    return length_prefixed("coterie/join/2", session, line, digest, joins)


def agree(terms: bytes, roster: Mapping[str, Member]) -> bytes:
    """Return the agreement of terms (exact bytes) and a complete roster."""
    names = read_terms(terms).layout.names
    return canonical_json(
        Agreement(terms=terms.decode(), roster=tuple(roster[name] for name in names))
    )


def check_agreement(
    agreement: bytes, accepted_terms: bytes, own: Member, secret: bytes
) -> None:
    """Refuse an agreement that is not what this party joined.

    Raises
    ------
    AgreementMismatch
        If the terms are not byte for byte those accepted, or the party's own line of
        the roster differs from what it sent.
    KeyNotAuthentic
        If keys or sizes of anybody were not marked with the session secret.
    """
    agreed, terms = read_agreement(agreement)
    if agreed.terms.encode() != accepted_terms:
        raise AgreementMismatch("The terms changed after they were accepted.")
    if agreed.member(own.slot) != own:
        raise AgreementMismatch(f"The roster changed the line of slot {own.slot!r}.")
    for member in agreed.roster:
        check_mark(secret, terms.session, member.line, member.mark)

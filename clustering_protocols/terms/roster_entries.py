"""The entries of a session's roster, and the checks that make it trustworthy."""

from __future__ import annotations

from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature

from clustering_protocols.common.errors import AgreementMismatch, KeyNotAuthentic
from clustering_protocols.numerics.randomness import derive_key, length_prefixed
from clustering_protocols.secrecy.identities import Institution, check_signature
from clustering_protocols.secrecy.keys import PartyKeys, check_mark, compute_mark
from clustering_protocols.terms.agreements import (
    Agreement,
    Member,
    RosterEntry,
    read_agreement,
)
from clustering_protocols.terms.canonical import canonical_json, digest
from clustering_protocols.terms.terms import Terms, read_terms


def derive_session_secret(entropy: bytes, session: str) -> bytes:
    """Return the 32-byte secret that every invitation contains.

    No request contains the secret.
    """
    return derive_key(entropy, "coterie/session-secret/1", session)


# The coordinator's signature of the terms


def sign_terms(coordinator: Institution, terms_digest: str) -> str:
    """Return the coordinator's signature (hex) over the digest of its terms."""
    return coordinator.sign(_build_terms_bytes(terms_digest))


def check_terms_signature(coordinator: str, terms_digest: str, signature: str) -> None:
    """Raise :class:`KeyNotAuthentic` unless the holder of this key signed the terms."""
    signed_bytes = _build_terms_bytes(terms_digest)
    check_signature(coordinator, signed_bytes, signature, "these terms")


def _build_terms_bytes(terms_digest: str) -> bytes:
    return length_prefixed("coterie/terms/1", terms_digest)


# A party's line of the roster


def create_roster_line(
    secret: bytes,
    terms: bytes,
    slot: str,
    entropy: bytes,
    institution: Institution,
    *,
    n_rows: int,
    n_columns: int,
) -> Member:
    """Return a party's line of the roster for these terms (exact bytes).

    The mark, computed with the session secret, proves that the party was invited. The
    signature proves which institution it is.
    """
    session = read_terms(terms).session
    line = RosterEntry(
        slot=slot,
        n_rows=n_rows,
        n_columns=n_columns,
        keys=PartyKeys(entropy, session, slot).public,
        institution=institution.name,
        identity=institution.key,
    )
    signed_bytes = _build_entry_bytes(session, digest(terms), line)
    return Member(
        **line.model_dump(),
        mark=compute_mark(secret, signed_bytes),
        signature=institution.sign(signed_bytes),
    )


def check_roster_line(terms: bytes, member: Member) -> None:
    """Raise :class:`KeyNotAuthentic` unless the expected institution signed this line."""
    _check_roster_line(read_terms(terms), digest(terms), member)


def _check_roster_line(terms: Terms, terms_digest: str, member: Member) -> None:
    expected = terms.identities.slots.get(member.slot, member.identity)
    if member.identity != expected:
        raise KeyNotAuthentic(
            f"Slot {member.slot!r} is taken by an institution that the terms do not expect."
        )
    signed_bytes = _build_entry_bytes(terms.session, terms_digest, member.line)
    subject = f"the line of slot {member.slot!r}"
    check_signature(member.identity, signed_bytes, member.signature, subject)


def _build_entry_bytes(session: str, terms_digest: str, line: RosterEntry) -> bytes:
    return length_prefixed(
        "coterie/line/1", session, terms_digest, canonical_json(line)
    )


def sign_join(
    entropy: bytes, session: str, member: Member, code: str, joins: int
) -> str:
    """Return the signature (hex) with which a party joins.

    Others may know the roster and the invitation codes, but only the holder of the
    private key can take the slot, or take it again. The signature covers the roster
    line and the number of earlier joins (``joins``), so that a recorded join cannot be
    replayed.
    """
    signing = PartyKeys(entropy, session, member.slot).signing
    return signing.sign(_build_join_bytes(session, member, code, joins)).hex()


def check_join_signature(
    member: Member, session: str, code: str, joins: int, proof: str
) -> None:
    """Raise :class:`KeyNotAuthentic` unless the member's key signed this join."""
    try:
        member.keys.verifying_key.verify(
            bytes.fromhex(proof), _build_join_bytes(session, member, code, joins)
        )
    except (InvalidSignature, ValueError):
        raise KeyNotAuthentic(
            f"The proof for slot {member.slot!r} is invalid, or was used before."
        ) from None


def _build_join_bytes(session: str, member: Member, code: str, joins: int) -> bytes:
    line, code_digest = canonical_json(member), digest(code.encode())
    return length_prefixed("coterie/join/3", session, line, code_digest, joins)


def build_agreement(terms: bytes, roster: Mapping[str, Member]) -> bytes:
    """Return the agreement that consists of terms (exact bytes) and a full roster."""
    names = read_terms(terms).layout.names
    return canonical_json(
        Agreement(terms=terms.decode(), roster=tuple(roster[name] for name in names))
    )


def check_agreement(
    agreement: bytes,
    accepted_terms: bytes,
    secret: bytes,
    own: Member | None = None,
) -> None:
    """Raise if an agreement differs from what was accepted and signed.

    accepted_terms: the terms that the party accepted, or that the coordinator wrote.
    own: the party's own line; None for a coordinator.

    Raises AgreementMismatch if the terms or the party's own line were changed.
    Raises KeyNotAuthentic if a line lacks the mark of the session secret or the
        signature of its institution, or if that institution is not the expected one.
    """
    document, terms = read_agreement(agreement)
    if document.terms.encode() != accepted_terms:
        raise AgreementMismatch("The terms changed after they were accepted.")
    if own is not None and document.member(own.slot) != own:
        raise AgreementMismatch(f"The roster has a changed line for slot {own.slot!r}.")
    terms_digest = digest(accepted_terms)
    for member in document.roster:
        signed_bytes = _build_entry_bytes(terms.session, terms_digest, member.line)
        check_mark(secret, member.slot, signed_bytes, member.mark)
        _check_roster_line(terms, terms_digest, member)

"""Inviting and joining."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Final

import sqlalchemy as sa

from analyst_service import audit
from analyst_service.credentials import (
    Caller,
    Role,
    create_party_token,
    digest_of,
    revoke_tokens,
)
from analyst_service.database import Transaction
from analyst_service.models import Invitation, Member, Session
from analyst_service.sessions import members_of, move, require_alive, visible, with_ids
from clustering_protocols.catalogue import parse_params
from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidParameters,
    InvitationExpired,
    InvitationUsed,
    NotFound,
    ShapeConflict,
)
from clustering_protocols.secrecy.keys import PublicKeys
from clustering_protocols.session_terms import check_opening
from clustering_protocols.terms import agreements as wire
from clustering_protocols.terms.roster_entries import agree, check_line, check_proof
from clustering_protocols.terms.terms import Terms, read_terms
from clustering_protocols.wire.states import Event, SlotState

INVITATION_SECONDS: Final = 7 * 86_400
"""How long an invitation is valid."""

TOKEN_SECONDS: Final = 90 * 86_400
"""How long a party's token is valid; the SDK joins again when it has ended."""

_LABEL_BYTES = 8
_COORDINATORS = (Role.COORDINATOR, Role.ADMINISTRATOR)


def invite(
    db: Transaction, caller: Caller, session_id: str, slots: Sequence[str] | None
) -> dict[str, str]:
    """Return a new one-time code per slot; earlier unused codes become invalid.

    slots: by default all that nobody has taken.
    """
    caller.require(*_COORDINATORS)
    session = visible(db, caller, session_id, lock=True)
    require_alive(session)
    members = members_of(db, session.id)
    free = {m.slot: m for m in members if m.state != SlotState.JOINED}
    invited = list(free) if slots is None else slots
    if unknown := set(invited) - {member.slot for member in members}:
        raise InvalidParameters(
            f"There is no slot {', '.join(sorted(unknown))}; the slots are "
            f"{', '.join(member.slot for member in members)}."
        )
    if taken := set(invited) - set(free):
        raise InvalidParameters(f"Slots are taken: {', '.join(sorted(taken))}.")
    revoke_unused(db, session.id, set(invited))
    for slot in invited:
        _set_state(db, free[slot], SlotState.INVITED)
        free[slot].read_at = None
    now = db.now()
    codes = {slot: secrets.token_urlsafe(24) for slot in invited}
    db.add_all(
        Invitation(
            code_digest=digest_of(code),
            session_id=session.id,
            slot=slot,
            created_at=now,
            expires_at=now + timedelta(seconds=INVITATION_SECONDS),
        )
        for slot, code in codes.items()
    )
    db.flush()
    return codes


def revoke_unused(db: Transaction, session_id: str, slots: Collection[str]) -> None:
    """Revoke the unused invitations of slots."""
    db.execute(
        sa.update(Invitation)
        .where(
            Invitation.session_id == session_id,
            Invitation.slot.in_(slots),
            Invitation.used_at.is_(None),
            Invitation.revoked_at.is_(None),
        )
        .values(revoked_at=db.now())
    )


def preview(db: Transaction, code: str) -> tuple[Session, Member]:
    """Return the session and the slot of a code, which stays valid."""
    invitation = _require_valid(db, code)
    session = _session_of(db, invitation)
    return session, _slots(db, session)[invitation.slot]


def record_reading(db: Transaction, session_id: str, slot: str) -> None:
    """Store when the invitation of a slot was first read, for the coordinator."""
    db.execute(
        sa.update(Member)
        .where(Member.session_id == session_id, Member.slot == slot)
        .where(Member.read_at.is_(None))
        .values(read_at=db.now())
    )


def find_slot(db: Transaction, code: str) -> tuple[str | None, str | None]:
    """Return the session's id and the slot of a code; None for an unknown code."""
    invitation = _by_code(db, code)
    return (invitation.session_id, invitation.slot) if invitation else (None, None)


def shut_out(db: Transaction, session_id: str, slot: str | None = None) -> int:
    """Revoke the tokens of a slot, or of all slots; return their number.

    The invitations of these slots are revoked too, so that neither the party nor
    somebody who recorded its request gets another token by joining again.
    """
    with_ids(db, [session_id], lock=True)  # the lock makes joins wait
    now = db.now()
    ended = db.scalars(
        sa.update(Invitation)
        .where(
            Invitation.session_id == session_id,
            sa.true() if slot is None else Invitation.slot == slot,
            Invitation.used_at.is_not(None),
            Invitation.revoked_at.is_(None),
        )
        .values(revoked_at=now)
        .returning(Invitation.slot)
    )
    for ended_slot in sorted(ended):
        audit.append(db, session_id, "revoked", now, slot=ended_slot)
    return revoke_tokens(db, session_id, slot)


def join(
    db: Transaction, code: str, joining: wire.Member, proof: str, max_bytes: int
) -> tuple[Session, str]:
    """Take the slot of a code; return the session and the party's token.

    Other people know the code and the roster, so the party signs to prove that it holds the
    private key. With the same keys and a new proof it may join again to get another
    token, because the response to its earlier request may have been lost.

    max_bytes: the largest message of this service, into which the labels have to fit.
    """
    session, invitation = _lock_session(db, code)
    members = _slots(db, session)
    own = members[invitation.slot]
    if joining.slot != own.slot:
        raise InvalidParameters(f"The invitation is for slot {own.slot!r}.")
    if invitation.used_at is not None and _roster_line(own) != joining:
        raise InvitationUsed(f"Slot {own.slot!r} is taken.")
    check_line(session.terms, joining)
    check_proof(joining, session.name, code, own.joins, proof)
    if invitation.used_at is None:
        _check_joining(read_terms(session.terms), members, own, joining, max_bytes)
        _fill_slot(db, session, members, own, joining, invitation)
    own.joins += 1
    return session, create_party_token(db, session.id, own.slot, TOKEN_SECONDS)


def decline(db: Transaction, code: str, state: SlotState, reason: str) -> None:
    """Note why the party of a code does not join; it may still join later.

    Only the first time is audited, because the holder of a code may repeat it.
    """
    session, invitation = _lock_session(db, code)
    if invitation.used_at is not None:
        raise InvitationUsed(f"Slot {invitation.slot!r} is taken.")
    own = _slots(db, session)[invitation.slot]
    if own.state == SlotState.INVITED:
        _set_state(db, own, state)
    own.state, own.reason = state.value, reason


def _set_state(db: Transaction, member: Member, state: SlotState, **more: str) -> None:
    """Set the state of a slot, and record it in the audit.

    The reason, which people write, stays out of the audit, which outlives the session.
    """
    member.state, member.reason = state.value, None
    audit.append(db, member.session_id, state.value, db.now(), slot=member.slot, **more)


def _fill_slot(
    db: Transaction,
    session: Session,
    members: Mapping[str, Member],
    own: Member,
    joining: wire.Member,
    invitation: Invitation,
) -> None:
    """Write a party's line of the roster; the last party completes the agreement."""
    now = db.now()
    invitation.used_at = own.joined_at = now
    line = joining.model_dump(exclude={"slot", "keys"}) | joining.keys.model_dump()
    for name, value in line.items():
        setattr(own, name, value)
    digest = sha256(joining.model_dump_json().encode()).hexdigest()
    _set_state(db, own, SlotState.JOINED, digest=digest)
    if all(member.state == SlotState.JOINED for member in members.values()):
        roster = {slot: _roster_line(member) for slot, member in members.items()}
        move(db, session, Event.ALL_JOINED, now, agreement=agree(session.terms, roster))


def _check_joining(
    terms: Terms,
    members: Mapping[str, Member],
    own: Member,
    joining: wire.Member,
    max_bytes: int,
) -> None:
    """Refuse a shape that the terms, this service or an earlier party rule out."""
    if joining.n_rows < terms.guards.minimum_rows:
        raise GuardRefused(
            f"{joining.n_rows} rows; the terms ask for {terms.guards.minimum_rows}."
        )
    if (needed := joining.n_rows * _LABEL_BYTES) > max_bytes:
        raise InvalidParameters(
            f"The labels of {joining.n_rows} rows take {needed} bytes; this service "
            f"takes messages of at most {max_bytes}."
        )
    check_opening(terms)
    params = parse_params(terms.protocol.name, terms.protocol.params)
    joined = [m for m in members.values() if m.state == SlotState.JOINED]
    for other in joined:
        same_rows = not params.selects_rows and other.row_group == own.row_group
        if same_rows and other.n_rows != joining.n_rows:
            raise ShapeConflict(
                f"{joining.n_rows} rows; {other.slot!r} of the row group has "
                f"{other.n_rows}."
            )
        same_columns = other.column_group == own.column_group
        if same_columns and other.n_columns != joining.n_columns:
            raise ShapeConflict(
                f"{joining.n_columns} columns; {other.slot!r} of the column group has "
                f"{other.n_columns}."
            )


def _roster_line(member: Member) -> wire.Member:
    """Return the roster's line of a taken slot."""
    fields = {name: getattr(member, name, None) for name in wire.Member.model_fields}
    keys = PublicKeys.model_validate(member, from_attributes=True)
    return wire.Member.model_validate(fields | {"keys": keys})


# Invitations


def _lock_session(db: Transaction, code: str) -> tuple[Session, Invitation]:
    """Return the session of a code, locked, and its invitation."""
    session = _session_of(db, _require_valid(db, code), lock=True)
    require_alive(session)
    return session, _require_valid(db, code)  # it may have been used while we waited


def _slots(db: Transaction, session: Session) -> dict[str, Member]:
    return {member.slot: member for member in members_of(db, session.id)}


def _by_code(db: Transaction, code: str) -> Invitation | None:
    """Return the invitation of a code, as it is now."""
    return db.get(Invitation, digest_of(code), populate_existing=True)


def _require_valid(db: Transaction, code: str) -> Invitation:
    invitation = _by_code(db, code)
    if invitation is None:
        raise NotFound("No invitation has this code.")
    if invitation.revoked_at is not None and invitation.used_at is not None:
        raise InvitationExpired(
            "The administrator revoked this slot: it stays out of this session, and only "
            "a new session could include it."
        )
    expired = db.now() >= invitation.expires_at and invitation.used_at is None
    if invitation.revoked_at is not None or expired:
        raise InvitationExpired("It expired or was replaced by a newer one.")
    return invitation


def _session_of(
    db: Transaction, invitation: Invitation, *, lock: bool = False
) -> Session:
    session_id = invitation.session_id
    return with_ids(db, [session_id], lock=lock)[session_id]

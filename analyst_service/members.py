"""Invite parties to a session, and let them join or decline."""

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
    hash_secret,
    revoke_tokens,
)
from analyst_service.database import Transaction
from analyst_service.models import Invitation, Member, Session
from analyst_service.sessions import (
    apply_event,
    find_sessions,
    members_of,
    require_not_ended,
    visible_session,
)
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
from clustering_protocols.session_terms import check_new_session_terms
from clustering_protocols.terms import agreements as wire
from clustering_protocols.terms.roster_entries import (
    build_agreement,
    check_join_signature,
    check_roster_line,
)
from clustering_protocols.terms.terms import Terms, read_terms
from clustering_protocols.wire.states import Event, SlotState

INVITATION_SECONDS: Final = 7 * 86_400
"""The number of seconds for which an invitation is valid."""

TOKEN_SECONDS: Final = 90 * 86_400
"""The number of seconds for which a party's token is valid; the SDK then joins again."""

_LABEL_BYTES = 8
_COORDINATORS = (Role.COORDINATOR, Role.ADMINISTRATOR)


def invite_parties(
    db: Transaction, caller: Caller, session_id: str, slots: Sequence[str] | None
) -> dict[str, str]:
    """Return a new one-time code for each slot, and invalidate the slots' unused codes.

    slots: the slots to invite; None for all slots that no party has taken.
    """
    caller.require_role(*_COORDINATORS)
    session = visible_session(db, caller, session_id, lock=True)
    require_not_ended(session)
    members = members_of(db, session.id)
    free = {m.slot: m for m in members if m.state != SlotState.JOINED}
    invited = list(free) if slots is None else list(dict.fromkeys(slots))
    if unknown := set(invited) - {member.slot for member in members}:
        raise InvalidParameters(
            f"There is no slot {', '.join(sorted(unknown))}; the slots are "
            f"{', '.join(member.slot for member in members)}."
        )
    if taken := set(invited) - set(free):
        raise InvalidParameters(f"Slots are taken: {', '.join(sorted(taken))}.")
    revoke_invitations(db, session.id, set(invited))
    for slot in invited:
        _mark_slot(db, free[slot], SlotState.INVITED)
        free[slot].read_at = None
    now = db.now()
    codes = {slot: secrets.token_urlsafe(24) for slot in invited}
    db.add_all(
        Invitation(
            code_digest=hash_secret(code),
            session_id=session.id,
            slot=slot,
            created_at=now,
            expires_at=now + timedelta(seconds=INVITATION_SECONDS),
        )
        for slot, code in codes.items()
    )
    db.flush()
    return codes


def revoke_invitations(
    db: Transaction, session_id: str, slots: Collection[str]
) -> None:
    """Revoke those invitations to the slots that have not been used."""
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


def preview_invitation(db: Transaction, code: str) -> tuple[Session, Member]:
    """Return the session and the slot that a code is for, without using it up."""
    invitation = _valid_invitation(db, code)
    session = _session_of_invitation(db, invitation)
    return session, _members_by_slot(db, session)[invitation.slot]


def record_first_reading(db: Transaction, session_id: str, slot: str) -> None:
    """Record when the invitation to a slot was first read, for the coordinator to see."""
    db.execute(
        sa.update(Member)
        .where(Member.session_id == session_id, Member.slot == slot)
        .where(Member.read_at.is_(None))
        .values(read_at=db.now())
    )


def find_slot_of_code(db: Transaction, code: str) -> tuple[str | None, str | None]:
    """Return the session id and slot that a code is for, or two Nones if it is unknown."""
    invitation = _find_invitation(db, code)
    return (invitation.session_id, invitation.slot) if invitation else (None, None)


def revoke_access(db: Transaction, session_id: str, slot: str | None = None) -> int:
    """Revoke the tokens of a slot, or of all slots; return how many were revoked.

    The used invitations of these slots are revoked too. Otherwise the party, or
    somebody who recorded its request, could get another token by joining again.
    """
    find_sessions(db, [session_id], lock=True)  # joins wait for this lock
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
        audit.add_line(db, session_id, "revoked", now, slot=ended_slot)
    return revoke_tokens(db, session_id, slot)


def join_session(
    db: Transaction, code: str, joining: wire.Member, proof: str, max_bytes: int
) -> tuple[Session, str]:
    """Join a party to the slot of its code; return the session and the party's token.

    Other people may know the code and the roster, so the party proves with a signature
    that it holds the private key. The party may join again with the same keys and a new
    proof, which gives it another token: the response to its first request may have been
    lost.

    max_bytes: the size of the largest message that this service accepts, which the
        party's labels must not exceed.
    """
    session, invitation = _lock_session_of_code(db, code)
    members = _members_by_slot(db, session)
    own = members[invitation.slot]
    if joining.slot != own.slot:
        raise InvalidParameters(f"The invitation is for slot {own.slot!r}.")
    if invitation.used_at is not None and _roster_entry(own) != joining:
        raise InvitationUsed(f"Slot {own.slot!r} is taken.")
    check_roster_line(session.terms, joining)
    check_join_signature(joining, session.name, code, own.joins, proof)
    if invitation.used_at is None:
        _check_sizes(read_terms(session.terms), members, own, joining, max_bytes)
        _fill_slot(db, session, members, own, joining, invitation)
    own.joins += 1
    return session, create_party_token(db, session.id, own.slot, TOKEN_SECONDS)


def decline_invitation(
    db: Transaction, code: str, state: SlotState, reason: str
) -> None:
    """Record why the party invited by a code does not join. The party may join later.

    Only the first refusal is audited, because the holder of a code may send any number
    of them.
    """
    session, invitation = _lock_session_of_code(db, code)
    if invitation.used_at is not None:
        raise InvitationUsed(f"Slot {invitation.slot!r} is taken.")
    own = _members_by_slot(db, session)[invitation.slot]
    if own.state == SlotState.INVITED:
        _mark_slot(db, own, state)
    own.state, own.reason = state.value, reason


def _mark_slot(db: Transaction, member: Member, state: SlotState, **more: str) -> None:
    """Set the state of a slot and record it in the audit log.

    Reasons for declining are not recorded there: they are free text, and the audit log
    outlives the session.
    """
    member.state, member.reason = state.value, None
    audit.add_line(
        db, member.session_id, state.value, db.now(), slot=member.slot, **more
    )


def _fill_slot(
    db: Transaction,
    session: Session,
    members: Mapping[str, Member],
    own: Member,
    joining: wire.Member,
    invitation: Invitation,
) -> None:
    """Store a party's roster entry, and the agreement once the last party has joined."""
    now = db.now()
    invitation.used_at = own.joined_at = now
    line = joining.model_dump(exclude={"slot", "keys"}) | joining.keys.model_dump()
    for name, value in line.items():
        setattr(own, name, value)
    digest = sha256(joining.model_dump_json().encode()).hexdigest()
    _mark_slot(db, own, SlotState.JOINED, digest=digest)
    if all(member.state == SlotState.JOINED for member in members.values()):
        roster = {slot: _roster_entry(member) for slot, member in members.items()}
        agreement = build_agreement(session.terms, roster)
        apply_event(db, session, Event.ALL_JOINED, now, agreement=agreement)


def _check_sizes(
    terms: Terms,
    members: Mapping[str, Member],
    own: Member,
    joining: wire.Member,
    max_bytes: int,
) -> None:
    """Raise if the numbers of rows and columns of a joining party are not acceptable.

    Both numbers must satisfy the terms and the limits of this service, and must match
    the numbers of the parties that have joined the same row group or column group.
    """
    if joining.n_rows < terms.guards.minimum_rows:
        raise GuardRefused(
            f"{joining.n_rows} rows; the terms ask for {terms.guards.minimum_rows}."
        )
    if (needed := joining.n_rows * _LABEL_BYTES) > max_bytes:
        raise InvalidParameters(
            f"The labels of {joining.n_rows} rows take {needed} bytes; this service "
            f"takes messages of at most {max_bytes}."
        )
    check_new_session_terms(terms)
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


def _roster_entry(member: Member) -> wire.Member:
    fields = {name: getattr(member, name, None) for name in wire.Member.model_fields}
    keys = PublicKeys.model_validate(member, from_attributes=True)
    return wire.Member.model_validate(fields | {"keys": keys})


def _lock_session_of_code(db: Transaction, code: str) -> tuple[Session, Invitation]:
    """Lock the session that a code is for; return it and the invitation."""
    session = _session_of_invitation(db, _valid_invitation(db, code), lock=True)
    require_not_ended(session)
    # The invitation may have been used or revoked while we waited for the lock.
    return session, _valid_invitation(db, code)


def _members_by_slot(db: Transaction, session: Session) -> dict[str, Member]:
    return {member.slot: member for member in members_of(db, session.id)}


def _find_invitation(db: Transaction, code: str) -> Invitation | None:
    return db.get(Invitation, hash_secret(code), populate_existing=True)


def _valid_invitation(db: Transaction, code: str) -> Invitation:
    invitation = _find_invitation(db, code)
    if invitation is None:
        raise NotFound("No invitation has this code.")
    if invitation.revoked_at is not None and invitation.used_at is not None:
        raise InvitationExpired(
            "The administrator revoked this slot: its party cannot take part in this session."
        )
    expired = db.now() >= invitation.expires_at and invitation.used_at is None
    if invitation.revoked_at is not None or expired:
        raise InvitationExpired("It expired or was replaced by a newer one.")
    return invitation


def _session_of_invitation(
    db: Transaction, invitation: Invitation, *, lock: bool = False
) -> Session:
    session_id = invitation.session_id
    return find_sessions(db, [session_id], lock=lock)[session_id]

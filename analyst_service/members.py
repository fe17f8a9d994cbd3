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
from analyst_service.sessions import find, members_of, move, require_alive, visible
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
    """Return a new one-time code per slot; earlier unused codes end.

    Without a list of slots: for all that nobody has taken.
    """
    caller.require(*_COORDINATORS)
    session = visible(db, caller, session_id, lock=True)
    require_alive(session)
    members = members_of(db, session.id)
    free = {m.slot: m for m in members if m.state != SlotState.JOINED}
    wanted = list(free) if slots is None else slots
    if unknown := set(wanted) - {member.slot for member in members}:
        raise InvalidParameters(
            f"There is no slot {', '.join(sorted(unknown))}; there are "
            f"{', '.join(member.slot for member in members)}."
        )
    if taken := set(wanted) - set(free):
        raise InvalidParameters(f"Taken already: {', '.join(sorted(taken))}.")
    revoke_unused(db, session.id, set(wanted))
    for slot in wanted:
        _set_state(db, free[slot], SlotState.INVITED)
    now = db.now()
    codes = {slot: secrets.token_urlsafe(24) for slot in wanted}
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
    """End earlier invitations of slots that were not used."""
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
    """Return the session of a code, and its slot; nothing is used up."""
    invitation = _require_valid(db, code)
    session = _session_of(db, invitation)
    return session, _slots(db, session)[invitation.slot]


def place_of(db: Transaction, code: str) -> tuple[str | None, str | None]:
    """Return the session's id and the slot of a code; None for one of nobody."""
    invitation = _by_code(db, code)
    return (invitation.session_id, invitation.slot) if invitation else (None, None)


def shut_out(db: Transaction, session_id: str, slot: str | None = None) -> int:
    """Revoke the tokens of a slot, by default of all; return how many there were.

    The invitations with which slots were taken end too: a join that was recorded, or
    that the party repeats, gives no new token.
    """
    if find(db, session_id, lock=True) is None:  # joins wait, and find it done
        return 0
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

    Code and roster are known to others, so the holder of the private key signs.

    With the same keys and a proof that has not counted yet it succeeds again and gives a
    fresh token: the response to an earlier request may have been lost.

    max_bytes: of a message of this service; the labels have to fit.
    """
    session, invitation = _lock_place(db, code)
    members = _slots(db, session)
    own = members[invitation.slot]
    if joining.slot != own.slot:
        raise InvalidParameters(f"The invitation is for slot {own.slot!r}.")
    if invitation.used_at is not None and _line(own) != joining:
        raise InvitationUsed(f"Slot {own.slot!r} is taken.")
    check_line(session.terms, joining)
    check_proof(joining, session.name, code, own.joins, proof)
    if invitation.used_at is None:
        _check_joining(read_terms(session.terms), members, own, joining, max_bytes)
        _take(db, session, members, own, joining, invitation)
    own.joins += 1
    return session, create_party_token(db, session.id, own.slot, TOKEN_SECONDS)


def decline(db: Transaction, code: str, state: SlotState, reason: str) -> None:
    """Note why the party of a code does not join; it may join all the same, later.

    Once is in the audit: who holds a code may say so again and again.
    """
    session, invitation = _lock_place(db, code)
    if invitation.used_at is not None:
        raise InvitationUsed(f"Slot {invitation.slot!r} is taken.")
    own = _slots(db, session)[invitation.slot]
    if own.state == SlotState.INVITED:
        _set_state(db, own, state)
    own.state, own.reason = state.value, reason


def _set_state(db: Transaction, member: Member, state: SlotState, **more: str) -> None:
    """Let a slot be in a state, and say so in the audit.

    A reason is not in it: the audit outlives the session, and people's words.
    """
    member.state, member.reason = state.value, None
    audit.append(db, member.session_id, state.value, db.now(), slot=member.slot, **more)


def _take(
    db: Transaction,
    session: Session,
    members: Mapping[str, Member],
    own: Member,
    joining: wire.Member,
    invitation: Invitation,
) -> None:
    """Write a party's line into its slot; the last one makes the agreement."""
    now = db.now()
    invitation.used_at = own.joined_at = now
    line = joining.model_dump(exclude={"slot", "keys"}) | joining.keys.model_dump()
    for name, value in line.items():
        setattr(own, name, value)
    digest = sha256(joining.model_dump_json().encode()).hexdigest()
    _set_state(db, own, SlotState.JOINED, digest=digest)
    if all(member.state == SlotState.JOINED for member in members.values()):
        roster = {slot: _line(member) for slot, member in members.items()}
        move(db, session, Event.ALL_JOINED, now, agreement=agree(session.terms, roster))


def _check_joining(
    terms: Terms,
    members: Mapping[str, Member],
    own: Member,
    joining: wire.Member,
    max_bytes: int,
) -> None:
    """Refuse rows that the terms, the service or parties of the same groups exclude."""
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


def _line(member: Member) -> wire.Member:
    """Return the roster's line of a slot that is taken."""
    fields = {name: getattr(member, name, None) for name in wire.Member.model_fields}
    keys = PublicKeys.model_validate(member, from_attributes=True)
    return wire.Member.model_validate(fields | {"keys": keys})


# Invitations


def _lock_place(db: Transaction, code: str) -> tuple[Session, Invitation]:
    """Return a code's session, which nobody else changes now, and its invitation."""
    session = _session_of(db, _require_valid(db, code), lock=True)
    require_alive(session)
    return session, _require_valid(db, code)  # while waiting it may have been used


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
            "The administrator ended what was joined with it: this slot stays out, and "
            "only a new session could take it in."
        )
    expired = db.now() >= invitation.expires_at and invitation.used_at is None
    if invitation.revoked_at is not None or expired:
        raise InvitationExpired("It expired or was replaced by a newer one.")
    return invitation


def _session_of(
    db: Transaction, invitation: Invitation, *, lock: bool = False
) -> Session:
    session = find(db, invitation.session_id, lock=lock)
    if session is None:
        raise NotFound("No invitation has this code.")
    return session

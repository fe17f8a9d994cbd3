"""Inviting and joining."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import AuthService, Caller, Role, digest_of
from analyst_service.clock import Clock
from analyst_service.sessions.service import (
    SessionRepository,
    SessionService,
    require_alive,
)
from analyst_service.settings import Settings
from analyst_service.storage.models import Invitation, Member, Session
from analyst_service.transactions.audit import Audit
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
from clustering_protocols.terms.terms import read_terms
from clustering_protocols.wire.states import Event, SlotState

INVITATION_SECONDS: Final = 7 * 86_400
"""How long an invitation is valid."""

TOKEN_SECONDS: Final = 90 * 86_400
"""How long a party's token is valid; the SDK joins again when it has ended."""

_LABEL_BYTES = 8


def revoke_unused(
    transaction: Transaction, session_id: str, slots: Collection[str], now: datetime
) -> None:
    """End earlier invitations of slots that were not used."""
    transaction.execute(
        sa.update(Invitation)
        .where(
            Invitation.session_id == session_id,
            Invitation.slot.in_(slots),
            Invitation.used_at.is_(None),
            Invitation.revoked_at.is_(None),
        )
        .values(revoked_at=now)
    )


class MemberService:
    """Invitations and members in one transaction."""

    def __init__(
        self, transaction: Transaction, clock: Clock, settings: Settings
    ) -> None:
        self._sessions = SessionService(transaction, clock)
        self._rows = SessionRepository(transaction)
        self._transaction = transaction
        self._auth = AuthService(transaction, clock)
        self._audit = Audit(transaction)
        self._clock = clock
        self._settings = settings

    def invite(
        self, caller: Caller, session_id: str, slots: Sequence[str] | None
    ) -> dict[str, str]:
        """Return a new one-time code per slot; earlier unused codes end.

        Without a list of slots: for all that nobody has taken.
        """
        caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
        session = self._sessions.visible(caller, session_id, lock=True)
        require_alive(session)
        members = self._rows.members(session.id)
        free = {m.slot: m for m in members if m.state != SlotState.JOINED}
        wanted = list(free) if slots is None else slots
        if unknown := set(wanted) - {member.slot for member in members}:
            raise InvalidParameters(
                f"There is no slot {', '.join(sorted(unknown))}; there are "
                f"{', '.join(member.slot for member in members)}."
            )
        if taken := set(wanted) - set(free):
            raise InvalidParameters(f"Taken already: {', '.join(sorted(taken))}.")
        revoke_unused(self._transaction, session.id, set(wanted), self._clock.now())
        for slot in wanted:
            self._put(free[slot], SlotState.INVITED)
        return {slot: self._new_code(session.id, slot) for slot in wanted}

    def preview(self, code: str) -> tuple[Session, str, int]:
        """Return session, slot and number of joins of a code; nothing is used up."""
        invitation = self._find(code)
        session = self._session_of(invitation)
        members = {member.slot: member for member in self._rows.members(session.id)}
        return session, invitation.slot, members[invitation.slot].joins

    def place(self, code: str) -> tuple[str, str] | None:
        """Return the session's id and the slot of a code; None for one of nobody."""
        found = self._by_code(code)
        return None if found is None else (found.session_id, found.slot)

    def shut_out(self, session_id: str, slot: str | None = None) -> int:
        """Revoke the tokens of a slot, by default of all; return how many there were.

        The invitations with which slots were taken end too: a join that was recorded,
        or that the party repeats, gives no new token.
        """
        session = self._rows.get(session_id, lock=True)  # joins wait, and find it done
        if session is None:
            return 0
        now = self._clock.now()
        for ended in self._revoke_used(session_id, slot, now):
            self._audit.append(session_id, "revoked", now, slot=ended)
        return self._auth.revoke_tokens(session_id, slot)

    def join(self, code: str, joining: wire.Member, proof: str) -> tuple[Session, str]:
        """Take the slot of a code; return the session and the party's token.

        Code and roster are known to others, so the holder of the private key signs.

        With the same keys and a proof that has not counted yet it succeeds again and
        gives a fresh token: the response to an earlier request may have been lost.
        """
        session = self._session_of(self._find(code), lock=True)
        require_alive(session)
        invitation = self._find(code)  # again: while waiting it may have been used
        members = {member.slot: member for member in self._rows.members(session.id)}
        own = members[invitation.slot]
        if joining.slot != own.slot:
            raise InvalidParameters(f"The invitation is for slot {own.slot!r}.")
        if invitation.used_at is not None and _line(own) != joining:
            raise InvitationUsed(f"Slot {own.slot!r} is taken.")
        check_line(session.terms, joining)
        check_proof(joining, session.name, code, own.joins, proof)
        if invitation.used_at is None:
            self._take(session, members, own, joining, invitation)
        own.joins += 1
        token = self._auth.create_party_token(session.id, own.slot, TOKEN_SECONDS)
        return session, token

    def decline(self, code: str, state: SlotState, reason: str) -> None:
        """Note why the party of a code does not join; it may join all the same, later.

        Once is in the audit: who holds a code may say so again and again.
        """
        session = self._session_of(self._find(code), lock=True)
        require_alive(session)
        invitation = self._find(code)  # again: while waiting it may have been used
        if invitation.used_at is not None:
            raise InvitationUsed(f"Slot {invitation.slot!r} is taken.")
        [own] = (m for m in self._rows.members(session.id) if m.slot == invitation.slot)
        if own.state == SlotState.INVITED:
            self._put(own, state)
        own.state, own.reason = state.value, reason

    def _put(self, member: Member, state: SlotState, **said: str) -> None:
        """Let a slot be in a state, and say so in the audit.

        A reason is not in it: the audit outlives the session, and people's words.
        """
        member.state, member.reason = state.value, None
        now, slot = self._clock.now(), member.slot
        self._audit.append(member.session_id, state.value, now, slot=slot, **said)

    def _take(
        self,
        session: Session,
        members: dict[str, Member],
        own: Member,
        joining: wire.Member,
        invitation: Invitation,
    ) -> None:
        terms = read_terms(session.terms)
        if joining.n_rows < terms.guards.minimum_rows:
            raise GuardRefused(
                f"{joining.n_rows} rows; the terms ask for {terms.guards.minimum_rows}."
            )
        self._check_room(joining)
        check_opening(terms)
        known = parse_params(terms.protocol.name, terms.protocol.params)
        _check_fit(members.values(), own, joining, same_rows=not known.selects_rows)
        now = self._clock.now()
        invitation.used_at = own.joined_at = now
        own.n_rows, own.n_columns = joining.n_rows, joining.n_columns
        own.x25519, own.ed25519 = joining.keys.x25519, joining.keys.ed25519
        own.mark, own.signature = joining.mark, joining.signature
        own.institution, own.identity = joining.institution, joining.identity
        digest = sha256(joining.model_dump_json().encode()).hexdigest()
        self._put(own, SlotState.JOINED, digest=digest)
        if all(member.state == SlotState.JOINED for member in members.values()):
            roster = {slot: _line(member) for slot, member in members.items()}
            agreement = agree(session.terms, roster)
            self._rows.move(session, Event.ALL_JOINED, now, agreement=agreement)

    def _check_room(self, joining: wire.Member) -> None:
        """Refuse more rows than this service could return labels for."""
        needed, limit = joining.n_rows * _LABEL_BYTES, self._settings.max_body_bytes
        if needed > limit:
            raise InvalidParameters(
                f"The labels of {joining.n_rows} rows take {needed} bytes; this service "
                f"takes messages of at most {limit}."
            )

    def _new_code(self, session_id: str, slot: str) -> str:
        code = secrets.token_urlsafe(24)
        now = self._clock.now()
        self._transaction.add(
            Invitation(
                code_digest=digest_of(code),
                session_id=session_id,
                slot=slot,
                created_at=now,
                expires_at=now + timedelta(seconds=INVITATION_SECONDS),
            )
        )
        self._transaction.flush()
        return code

    def _by_code(self, code: str) -> Invitation | None:
        """Return the invitation of a code, as it is now."""
        return self._transaction.get(
            Invitation, digest_of(code), populate_existing=True
        )

    def _revoke_used(
        self, session_id: str, slot: str | None, now: datetime
    ) -> list[str]:
        """End the invitations with which slots were taken; return those slots."""
        ended = self._transaction.scalars(
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
        return sorted(ended)

    def _find(self, code: str) -> Invitation:
        found = self._by_code(code)
        if found is None:
            raise NotFound("No invitation has this code.")
        if found.revoked_at is not None and found.used_at is not None:
            raise InvitationExpired(
                "The administrator ended what was joined with it: this slot stays out, and "
                "only a new session could take it in."
            )
        expired = self._clock.now() >= found.expires_at
        if found.revoked_at is not None or (expired and found.used_at is None):
            raise InvitationExpired("It expired or was replaced by a newer one.")
        return found

    def _session_of(self, invitation: Invitation, *, lock: bool = False) -> Session:
        session = self._rows.get(invitation.session_id, lock=lock)
        if session is None:
            raise NotFound("No invitation has this code.")
        return session


def _check_fit(
    members: Iterable[Member], own: Member, joining: wire.Member, *, same_rows: bool
) -> None:
    """Refuse sizes other than those of the parties of the same groups."""
    for other in members:
        if other.state != SlotState.JOINED:
            continue
        together = same_rows and other.row_group == own.row_group
        if together and other.n_rows != joining.n_rows:
            raise ShapeConflict(
                f"{joining.n_rows} rows; {other.slot!r} of the row group has "
                f"{other.n_rows}."
            )
        if (
            other.column_group == own.column_group
            and other.n_columns != joining.n_columns
        ):
            raise ShapeConflict(
                f"{joining.n_columns} columns; {other.slot!r} of the column group has "
                f"{other.n_columns}."
            )


def _line(member: Member) -> wire.Member:
    """Return the roster's line of a slot that is taken."""
    return wire.Member.model_validate(
        {
            "slot": member.slot,
            "n_rows": member.n_rows,
            "n_columns": member.n_columns,
            "keys": PublicKeys.model_validate(member, from_attributes=True),
            "institution": member.institution,
            "identity": member.identity,
            "mark": member.mark,
            "signature": member.signature,
        }
    )

"""Who may be told what about a session."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import Caller
from analyst_service.notices.mail import Notification
from analyst_service.notices.repository import ALWAYS, LeasedNotice, NoticeRepository
from analyst_service.process_context import Service
from analyst_service.sessions.repository import SessionRepository
from analyst_service.sessions.service import SessionService, require_alive
from analyst_service.settings import is_mail_address
from analyst_service.storage.models import Notice, Receiver, Session
from analyst_service.transactions.outbox import NoticeEvent, Outbox, SessionMove
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import InvalidParameters, NotOffered
from clustering_protocols.wire.notices import ReceiverAdded, ReceiverLine, Receivers
from clustering_protocols.wire.states import SessionState

MOST_AN_HOUR: Final = 20
"""Notices of one receiver within an hour, but for the last."""

_MOST = 5  # addresses at once, of a coordinator or a party of a session
_MOST_EVER = 20  # with those that were removed: each is told that it was added
_MOST_A_DAY = 100  # of one credential
_STALE = timedelta(days=7)  # after an outage, or while nothing was sent


class NoticeService:
    """Receivers and what they are told, in one transaction."""

    def __init__(self, transaction: Transaction, service: Service) -> None:
        self._sessions = SessionService(transaction, service.clock)
        self._rows = SessionRepository(transaction)
        self._notices = NoticeRepository(transaction)
        self._outbox = Outbox(transaction)
        self._service = service
        self._clock = service.clock

    # Receivers

    def add(self, caller: Caller, session_id: str, address: str) -> ReceiverAdded:
        """Let an address be told; one that is there already is added anew.

        Raises NotOffered if the analyst sends no mail.
        Raises InvalidParameters if it is no address of mail, or there are too many.
        """
        session = self._sessions.visible(caller, session_id, lock=True)
        require_alive(session)
        if not self._service.settings.smtp_server:
            raise NotOffered(
                "It sends no mail: no mail server is set (COTERIE_SMTP_SERVER)."
            )
        if not is_mail_address(address):
            raise InvalidParameters(
                "one address of mail, like a@b.example.", field="address"
            )
        self._make_room(caller, session, address)
        now = self._clock.now()
        receiver = Receiver(
            id=secrets.token_hex(16),
            session_id=session.id,
            slot=caller.slot,
            credential_id=caller.credential_id,
            address=address,
            created_at=now,
        )
        self._notices.add(receiver)
        self._outbox.welcome(receiver, SessionMove.of(session), now)
        return ReceiverAdded(id=receiver.id)

    def own(self, caller: Caller, session_id: str) -> Receivers:
        """Return the caller's receivers, and whether mail is sent."""
        session = self._sessions.visible(caller, session_id)
        found = self._notices.of_place(session.id, caller.slot)
        return Receivers(
            offered=bool(self._service.settings.smtp_server),
            receivers=[self._line(each) for each in found if each.address],
        )

    def remove(self, caller: Caller, session_id: str, receiver_id: str) -> None:
        """Forget an address of the caller; what is not there is left alone."""
        session = self._sessions.visible(caller, session_id, lock=True)
        for each in self._notices.of_place(session.id, caller.slot):
            if each.id == receiver_id:
                self._notices.forget(each)

    def _make_room(self, caller: Caller, session: Session, address: str) -> None:
        named = self._notices.of_place(session.id, caller.slot)
        for each in named:
            if each.address == address:
                self._notices.forget(each)
        if sum(bool(each.address) for each in named) >= _MOST:
            raise InvalidParameters(
                f"{_MOST} are told already; remove one of them first.", field="address"
            )
        today = self._notices.added_today(caller.credential_id, self._clock.now())
        if len(named) >= _MOST_EVER or today >= _MOST_A_DAY:
            raise InvalidParameters(
                "too many were named by now; those that are told stay.", field="address"
            )

    def _line(self, receiver: Receiver) -> ReceiverLine:
        found = self._notices.tally(receiver)
        return ReceiverLine(
            id=receiver.id,
            address=receiver.address,
            created_at=receiver.created_at,
            sent=found.sent,
            given_up=found.given_up,
            retrying=found.retrying,
            failure=found.failure,
        )

    # What they are told

    def has_due(self) -> bool:
        """Return whether a notice waits for a sender; takes no lock."""
        return self._notices.any_due(self._clock.now())

    def take(self) -> tuple[Notice, Notification] | None:
        """Take a notice that is due, and still true; None if there is none."""
        now = self._clock.now()
        while (taken := self._notices.take(now)) is not None:
            told = self._build_notification(taken, now)
            if told is not None:
                return taken.notice, told
            self._notices.drop(taken.notice)
        return None

    def settle(self, notice: Notice, **values: object) -> bool:
        """Note what became of a notice; False if another sender has it now."""
        return self._notices.settle(notice, **values)

    def has_leftovers(self) -> bool:
        """Return whether receivers of ended sessions are kept; takes no lock."""
        return self._notices.has_leftovers(self._clock.now())

    def tidy(self) -> None:
        """Remove the receivers of sessions that ended, once all are told."""
        self._notices.tidy(self._clock.now())

    def _build_notification(
        self, taken: LeasedNotice, now: datetime
    ) -> Notification | None:
        """Return what a receiver is told; None where that is nothing any more."""
        notice, receiver = taken.notice, taken.receiver
        session = self._rows.get(notice.session_id)
        if session is None or not self._is_wanted(taken, now):
            return None
        awaited = self._find_awaited(session, receiver)
        if notice.event not in ALWAYS:
            is_asked = awaited or _is_choosing_for(session, receiver)
            is_often = self._notices.sent_lately(receiver, now) >= MOST_AN_HOUR
            if is_often or not (is_asked and _is_there(notice, session)):
                return None
        is_over = notice.event == NoticeEvent.ENDED.value
        return Notification(
            notice_id=notice.id,
            receiver_id=receiver.id,
            address=receiver.address,
            event=NoticeEvent(notice.event),
            session=session.name,
            slot=receiver.slot,
            state=notice.session_state,
            round=notice.round,
            since=session.changed_at,
            deadline=None if is_over else session.deadline,
            reason=notice.reason,
            awaited=tuple(awaited) if receiver.slot is None else None,
            detail=None if receiver.slot else _find_missing(session),
        )

    def _is_wanted(self, taken: LeasedNotice, now: datetime) -> bool:
        """Return whether a receiver may be told still, and would not wonder about it."""
        return (
            bool(self._service.settings.smtp_server)
            and self._notices.is_entitled(taken.receiver)
            and now - taken.notice.due_at < _STALE
        )

    def _find_awaited(self, session: Session, receiver: Receiver) -> list[str]:
        """Return who is awaited, as far as it is the receiver's to know."""
        awaited = sorted(self._sessions.find_awaited(session))
        if receiver.slot is None:
            return awaited
        return [slot for slot in awaited if slot == receiver.slot]


def _is_choosing_for(session: Session, receiver: Receiver) -> bool:
    return receiver.slot is None and session.state == SessionState.CHOOSING


def _find_missing(session: Session) -> str | None:
    """Return who was missing in the end, or has stopped: the coordinator reads that."""
    has_expired = session.state == SessionState.EXPIRED
    has_stopped = session.reason == Problem.PARTY_STOPPED.slug
    return session.detail if has_expired or has_stopped else None


def _is_there(notice: Notice, session: Session) -> bool:
    """Return whether a session stands where it stood when a notice was written."""
    return (session.state, session.round, session.attempt) == (
        notice.session_state,
        notice.round,
        notice.attempt,
    )

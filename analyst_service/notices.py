"""Compose mail about sessions, store the addresses that receive it, and send it."""

from __future__ import annotations

import logging
import secrets
import smtplib
import ssl
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import sqlalchemy as sa
from sqlalchemy import orm

from analyst_service.credentials import Caller
from analyst_service.database import Database, Transaction
from analyst_service.logs import describe_error
from analyst_service.models import Credential, Notice, Receiver, Session
from analyst_service.outbox import NoticeEvent, NoticeState, write_first_notices
from analyst_service.process_context import Service
from analyst_service.sessions import (
    awaited_slots,
    find_session,
    require_not_ended,
    visible_session,
)
from analyst_service.settings import Settings, is_mail_address
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import InvalidParameters, NotOffered
from clustering_protocols.wire.answers import (
    Failure,
    ReceiverAdded,
    ReceiverLine,
    Receivers,
)
from clustering_protocols.wire.states import SessionState

_PORT = 587
_SERVER_SECONDS = 10.0  # timeout of each exchange with the mail server
_REFUSED_FOR_GOOD = 500
_HEADLINES = {
    NoticeEvent.ADDED: "notices come here",
    NoticeEvent.TURN: "your turn",
    NoticeEvent.AWAITED: "still waiting",
    NoticeEvent.ENDED: "it has ended",
}


class DeliveryFailed(Exception):
    """A notice was not delivered; ``is_final`` says that a retry would be pointless."""

    def __init__(self, failure: Failure, *, is_final: bool = False) -> None:
        super().__init__(failure.value)
        self.failure = failure
        self.is_final = is_final


class Notification(NamedTuple):
    """A notice to send, with its receiver, its session and the slots that are awaited."""

    notice: Notice
    receiver: Receiver
    session: Session
    awaited: Sequence[str]


def compose_mail(notification: Notification, sender: str, at: datetime) -> EmailMessage:
    """Return the mail for a notice, dated ``at``.

    The mail contains neither the session's title nor the names of other parties. The
    headers contain only session names and addresses that were validated.
    """
    notice, receiver, session, _ = notification
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = receiver.address
    headline = _HEADLINES[NoticeEvent(notice.event)]
    mail["Subject"] = f"Coterie: session {session.name}: {headline}"
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = f"<{notice.id}@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: suppresses automatic replies
    lines = [*_mail_body_lines(notification), "", _mail_footer(receiver, session)]
    mail.set_content("\n".join(lines) + "\n")
    return mail


def send_mail(settings: Settings, notification: Notification, at: datetime) -> None:
    """Send a notice; raise :class:`DeliveryFailed` unless the mail server accepts it."""
    mail = compose_mail(notification, settings.smtp_from, at)
    url = urlsplit(settings.smtp_server)
    host, port = url.hostname or "", url.port or _PORT
    try:
        with smtplib.SMTP(host, port, timeout=_SERVER_SECONDS) as server:
            if url.scheme == "smtp":  # smtp+plain is without TLS
                server.starttls(context=ssl.create_default_context())
            if url.username:
                server.login(url.username, settings.smtp_password.get_secret_value())
            server.send_message(mail)
    except smtplib.SMTPRecipientsRefused as error:
        [(code, _)] = error.recipients.values()
        is_final = code >= _REFUSED_FOR_GOOD
        raise DeliveryFailed(Failure.NOT_TAKEN, is_final=is_final) from None
    except (smtplib.SMTPException, OSError):
        raise DeliveryFailed(Failure.MAIL_SERVER) from None


def _mail_body_lines(notification: Notification) -> Iterator[str]:
    notice, receiver, session, awaited = notification
    slot = receiver.slot
    where = f"session {session.name}" + (f", slot {slot}" if slot else "")
    until = f" until {session.deadline:%Y-%m-%d %H:%M} UTC"
    if notice.event == NoticeEvent.ADDED:
        yield f"Notices about {where} come to this address from now on."
        yield "There is nothing to do."
    elif notice.event == NoticeEvent.ENDED:
        yield f"The end of {where}: {notice.session_state}."
        yield from _lines_about_end(notification)
    elif slot:
        still = " still" if notice.event == NoticeEvent.AWAITED else ""
        yield f"The analyst{still} waits for this party in {where}, round {notice.round}{until}."
        yield f"What to do: coterie party run {session.name} {slot} --data FILE"
    elif notice.session_state == SessionState.CHOOSING:
        yield f"All runs of {where} are done. The analyst waits{until} for a choice."
        yield f"What to do: coterie session choose {session.name} --n-clusters NUMBER"
    else:
        since, names = f"{session.changed_at:%Y-%m-%d %H:%M}", ", ".join(awaited)
        yield f"In {where} the analyst has waited since {since} UTC and waits{until} for: {names}."
        yield (
            f"What to do: ask them, or wait longer: coterie session extend {session.name} "
            "--days NUMBER"
        )


def _lines_about_end(notification: Notification) -> Iterator[str]:
    notice, receiver, session, _ = notification
    slot = receiver.slot
    if notice.session_state == SessionState.COMPLETED:
        yield "What to do: " + (
            f"coterie party run {session.name} {slot} --data FILE fetches the labels."
            if slot
            else f"coterie session show {session.name} prints the result."
        )
        return
    # Only the coordinator may learn which party was missing or has stopped.
    has_expired = session.state == SessionState.EXPIRED
    has_stopped = session.reason == Problem.PARTY_STOPPED.slug
    if session.detail and slot is None and (has_expired or has_stopped):
        yield session.detail
    try:
        problem = Problem.from_slug(notice.reason or "")
    except KeyError:
        return
    yield f"{problem.title}."
    yield f"What to do: {problem.remedy}"


def _mail_footer(receiver: Receiver, session: Session) -> str:
    command = (
        f"party status {session.name} {receiver.slot}"
        if receiver.slot
        else f"session show {session.name}"
    )
    return (
        "-- \nSomebody who takes part in this session left this address. To stop these "
        f"notices:\ncoterie {command} --remove {receiver.id}"
    )


MAX_NOTICES_PER_HOUR: Final = 20
"""The most notices per receiver and hour; the first and the last one are always sent."""

_MAX_ADDRESSES = 5  # per session and slot, or per session for its coordinator
_MAX_ADDRESSES_EVER = 20  # the same, with removed addresses, which got a first notice
_MAX_ADDRESSES_PER_DAY = 100  # added with one credential
_STALE = timedelta(days=7)  # a notice that is overdue for this long is discarded
_RETENTION = timedelta(days=7)  # how long addresses are kept after the session's end
_LEASE = timedelta(minutes=2)  # must exceed the time that a delivery may take
_ALWAYS = {NoticeEvent.ADDED.value, NoticeEvent.ENDED.value}
_IS_PENDING = Notice.state == NoticeState.PENDING.value


def add_receiver(
    db: Transaction,
    caller: Caller,
    session_id: str,
    address: str,
    *,
    is_offered: bool,
) -> ReceiverAdded:
    """Add an address for notices about a session, replacing an earlier entry for it.

    Raises NotOffered if this service does not send mail, and InvalidParameters if the
    address is malformed or there are too many addresses.
    """
    session = visible_session(db, caller, session_id, lock=True)
    require_not_ended(session)
    if not is_offered:
        raise NotOffered("This analyst has no mail server (COTERIE_SMTP_SERVER).")
    if not is_mail_address(address):
        raise InvalidParameters(
            "expected one mail address, like a@b.example.", field="address"
        )
    _admit_address(db, caller, session, address)
    receiver = Receiver(
        id=secrets.token_hex(16),
        session_id=session.id,
        slot=caller.slot,
        credential_id=caller.credential_id,
        address=address,
        created_at=db.now(),
    )
    db.add(receiver)
    db.flush()
    write_first_notices(db, receiver, session, receiver.created_at)
    return ReceiverAdded(id=receiver.id)


def list_receivers(
    db: Transaction, caller: Caller, session_id: str, *, is_offered: bool
) -> Receivers:
    """Return the caller's addresses for a session, and whether this service sends mail."""
    receivers = _receivers_of(db, caller, visible_session(db, caller, session_id))
    return Receivers(
        offered=is_offered,
        receivers=[
            _receiver_line(db, receiver) for receiver in receivers if receiver.address
        ],
    )


def remove_receiver(
    db: Transaction, caller: Caller, session_id: str, receiver_id: str
) -> None:
    """Remove one of the caller's addresses. Removing it again changes nothing."""
    session = visible_session(db, caller, session_id, lock=True)
    for receiver in _receivers_of(db, caller, session):
        if receiver.id == receiver_id:
            _forget_address(db, receiver)


def _receivers_of(db: Transaction, caller: Caller, session: Session) -> list[Receiver]:
    """Return all receivers ever added for the caller's slot, or by coordinators."""
    query = sa.select(Receiver).where(
        Receiver.session_id == session.id,
        Receiver.slot.is_(None)
        if caller.slot is None
        else Receiver.slot == caller.slot,
    )
    return list(db.scalars(query.order_by(Receiver.created_at, Receiver.id)))


def _admit_address(
    db: Transaction, caller: Caller, session: Session, address: str
) -> None:
    """Remove an earlier entry for the address; raise if the caller has added too many."""
    receivers = _receivers_of(db, caller, session)
    for receiver in receivers:
        if receiver.address == address:
            _forget_address(db, receiver)
    if sum(bool(receiver.address) for receiver in receivers) >= _MAX_ADDRESSES:
        raise InvalidParameters(
            f"there are {_MAX_ADDRESSES} addresses already; remove one first.",
            field="address",
        )
    today = _count_rows(
        db,
        Receiver.id,
        Receiver.credential_id == caller.credential_id,
        Receiver.created_at > db.now() - timedelta(days=1),
    )
    if len(receivers) >= _MAX_ADDRESSES_EVER or today >= _MAX_ADDRESSES_PER_DAY:
        raise InvalidParameters(
            "too many addresses were added; the existing ones stay.", field="address"
        )


def _forget_address(db: Transaction, receiver: Receiver) -> None:
    """Delete an address and its notices; the row still counts against the limits."""
    receiver.address = ""
    db.execute(sa.delete(Notice).where(Notice.receiver_id == receiver.id))
    db.flush()


def _receiver_line(db: Transaction, receiver: Receiver) -> ReceiverLine:
    query = sa.select(Notice.state, Notice.failure).order_by(Notice.happened_at)
    notices = db.execute(query.where(Notice.receiver_id == receiver.id)).all()
    numbers = Counter(NoticeState(state) for state, _ in notices)
    failed = [(s, why) for s, why in notices if why and s != NoticeState.SENT.value]
    return ReceiverLine(
        id=receiver.id,
        address=receiver.address,
        created_at=receiver.created_at,
        sent=numbers[NoticeState.SENT],
        given_up=numbers[NoticeState.GIVEN_UP],
        retrying=sum(state == NoticeState.PENDING.value for state, _ in failed),
        failure=failed[-1][1] if failed else None,
    )


def _count_rows(
    db: Transaction,
    column: orm.InstrumentedAttribute[str],
    *conditions: sa.ColumnElement[bool],
) -> int:
    return db.scalar(sa.select(sa.func.count(column)).where(*conditions)) or 0


def has_due_notice(db: Transaction) -> bool:
    """Return whether a notice is due whose receiver no sender is serving; takes no lock."""
    query = sa.select(Notice.id).where(_is_free_to_lease(db.now())).limit(1)
    return db.scalar(query) is not None


def lease_next_notice(db: Transaction) -> Notification | None:
    """Lease the next notice that is due and return it, or None if no notice is due.

    Notices with the fewest attempts come first, so that a failing receiver does not
    delay the others; of notices with equal attempts and due times, the event 'added'
    comes first. Outdated notices found on the way are deleted. A notice is skipped
    while another sender is serving its receiver.
    """
    now = db.now()
    is_free = _is_free_to_lease(now)
    free = (
        sa.select(Notice, Receiver)
        .join(Receiver, Receiver.id == Notice.receiver_id)
        .where(is_free)
        .order_by(Notice.attempts, Notice.due_at, Notice.event)
        .limit(1)
        .with_for_update(skip_locked=True, key_share=True)  # lets others add notices
    )
    while (row := db.execute(free).first()) is not None:
        notice, receiver = row
        # PostgreSQL evaluates the condition at the start of a query and locks the rows at
        # the end, so two concurrent queries may both find the notice free. A second query
        # sees what was committed before this one acquired the lock.
        is_still_free = sa.select(Notice.id).where(Notice.id == notice.id, is_free)
        if db.scalar(is_still_free) is None:
            continue
        notice.lease_token = secrets.token_hex(16)
        notice.lease_until = now + _LEASE
        notice.attempts += 1
        db.flush()
        notification = _build_notification(db, notice, receiver, now)
        if notification is not None:
            return notification
        db.delete(notice)
        db.flush()
    return None


def record_outcome(
    db: Transaction, notice: Notice, values: Mapping[str, object]
) -> None:
    """Store the outcome of a delivery, unless the lease on the notice is lost."""
    db.execute(
        sa.update(Notice)
        .where(Notice.id == notice.id, Notice.lease_token == notice.lease_token)
        .values({"lease_token": None, "lease_until": None, **values})
        .execution_options(synchronize_session=False)
    )


def remove_receivers_of_ended_sessions(db: Transaction) -> None:
    """Delete the receivers of sessions that were deleted, or that ended a week ago.

    Ended sessions must also have been purged. Receivers with a pending notice are kept,
    unless the notice is stale: without a mail server, no notice is ever sent.
    """
    now = db.now()
    ended = sa.select(Session.id).where(
        sa.or_(
            Session.deleted_at.is_not(None),
            sa.and_(
                Session.purged_at.is_not(None),
                Session.changed_at <= now - _RETENTION,
            ),
        )
    )
    waits = sa.exists().where(
        Notice.receiver_id == Receiver.id, _IS_PENDING, Notice.due_at > now - _STALE
    )
    db.execute(
        sa.delete(Receiver)
        .where(Receiver.session_id.in_(ended), ~waits)
        .execution_options(synchronize_session=False)
    )


def _build_notification(
    db: Transaction, notice: Notice, receiver: Receiver, now: datetime
) -> Notification | None:
    """Return a notice with what its mail needs, or None if it is no longer wanted."""
    session = find_session(db, notice.session_id)
    credential = db.get(Credential, receiver.credential_id)
    if session is None or credential is None or credential.revoked_at is not None:
        return None
    if now - notice.due_at >= _STALE:
        return None
    awaited = sorted(awaited_slots(db, [session]).get(session.id, []))
    if receiver.slot is not None:
        awaited = [slot for slot in awaited if slot == receiver.slot]
    if notice.event not in _ALWAYS:
        chooses = receiver.slot is None and session.state == SessionState.CHOOSING
        written_at = notice.session_state, notice.round, notice.attempt
        has_moved = (session.state, session.round, session.attempt) != written_at
        if has_moved or not (awaited or chooses):
            return None
        sent_lately = _count_rows(
            db,
            Notice.id,
            Notice.receiver_id == receiver.id,
            Notice.state == NoticeState.SENT.value,
            Notice.settled_at > now - timedelta(hours=1),
        )
        if sent_lately >= MAX_NOTICES_PER_HOUR:
            return None
    return Notification(notice, receiver, session, awaited)


def _is_free_to_lease(now: datetime) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a notice is due and no sender serves its receiver.

    Each receiver gets one notice at a time, so that its notices arrive in order. A lease
    that ends later than any sender would set it is ignored: it was set before the clock
    was turned back.
    """
    other = orm.aliased(Notice)
    has_no_lease = sa.or_(
        other.lease_until.is_(None),
        other.lease_until <= now,
        other.lease_until > now + 2 * _LEASE,
    )
    is_served = sa.exists().where(
        other.receiver_id == Notice.receiver_id, ~has_no_lease
    )
    return sa.and_(_IS_PENDING, Notice.due_at <= now, ~is_served)


# Several senders may run, in one process or in several. A lease decides which of them sends
# a notice. If a sender is killed after sending a notice but before storing the outcome, the
# notice is sent again with the same Message-ID.

log = logging.getLogger(__name__)

RETRIES = tuple(
    timedelta(seconds=seconds)
    for seconds in (10, 60, 300, 1800, 2 * 3600, 6 * 3600, 12 * 3600)
)
"""The delay before each retry of a notice; after the last retry it is given up."""

POLL_SECONDS = 1.0
_AT_ONCE = 4


def send_due_notices(service: Service) -> int:
    """Send up to four due notices in parallel, and return how many there were."""
    notifications = list(islice(_lease_due_notices(service.database), _AT_ONCE))
    if notifications:
        with ThreadPoolExecutor(_AT_ONCE, "notice") as pool:
            list(pool.map(partial(_deliver_notice, service), notifications))
    return len(notifications)


def _lease_due_notices(database: Database) -> Iterator[Notification]:
    """Lease due notices one by one, each in a short transaction of its own."""
    while database.query(has_due_notice):
        notification = database.transact(lease_next_notice)
        if notification is None:
            return
        yield notification


def _deliver_notice(service: Service, notification: Notification) -> None:
    """Send a notice. If that fails, schedule another attempt or give it up."""
    notice = notification.notice
    failed: DeliveryFailed | None = None
    changes: dict[str, Any]
    try:
        send_mail(service.settings, notification, service.clock.now())
    except DeliveryFailed as error:
        failed = error
    except Exception as error:  # noqa: BLE001  the other notices are still sent
        log.error("notices: %s", describe_error(error))  # noqa: TRY400  no traceback: it may hold values
        failed = DeliveryFailed(Failure.INTERNAL)
    now = service.clock.now()
    if failed is None:
        outcome, changes = "sent", {"state": NoticeState.SENT.value}
    elif failed.is_final or notice.attempts > len(RETRIES):
        fields = {"failure": failed.failure.value}
        log.warning("notice given up", extra={"fields": fields})
        outcome, changes = "given-up", {"state": NoticeState.GIVEN_UP.value}
    else:
        delay = RETRIES[notice.attempts - 1]
        outcome, changes = "tried-again", {"due_at": now + delay}
    failure = None if failed is None else failed.failure.value
    changes |= {"failure": failure, "settled_at": now}
    service.database.transact(record_outcome, notice, changes)
    service.metrics.notices.labels(outcome).inc()

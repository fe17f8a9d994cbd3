"""What a receiver of notices reads, and the mail server that it goes over."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from analyst_service.settings import Settings
from analyst_service.transactions.outbox import NoticeEvent
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.wire.notices import Failure
from clustering_protocols.wire.states import SessionState

_SECONDS = 10.0  # of each answer of the server
_REFUSED_FOR_GOOD = 500
_HEADLINES = {
    NoticeEvent.ADDED: "you will be told",
    NoticeEvent.TURN: "your turn",
    NoticeEvent.AWAITED: "awaited for long",
    NoticeEvent.ENDED: "it has ended",
}


class Undelivered(Exception):
    """A notice did not arrive; ``is_final`` where it is of no use to try again."""

    def __init__(self, failure: Failure, *, is_final: bool = False) -> None:
        super().__init__(failure.value)
        self.failure = failure
        self.is_final = is_final


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A notice, as far as its receiver may know: no title, no other institution.

    slot: of the party that is told; None for the coordinator.
    awaited: slots for which the session waits; of coordinators alone.
    detail: who was missing where a session has expired, or which party stopped; of
        coordinators alone.
    """

    notice_id: str
    receiver_id: str
    address: str = field(repr=False)
    event: NoticeEvent
    session: str
    slot: str | None
    state: str
    round: int
    since: datetime
    deadline: datetime | None
    reason: str | None
    awaited: tuple[str, ...] | None
    detail: str | None


def letter(told: Notification, sender: str, at: datetime) -> EmailMessage:
    """Return the mail of a notice.

    Headers hold names of sessions and checked addresses; the library refuses the rest.
    """
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = told.address
    mail["Subject"] = f"Coterie: session {told.session}: {_HEADLINES[told.event]}"
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = f"<{told.notice_id}@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody answers by machine
    mail.set_content("\n".join([*_lines(told), "", _footer(told)]) + "\n")
    return mail


class MailSender:
    """Sends mail; safe from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def send(self, told: Notification, at: datetime) -> None:
        """Send a notice; raise :class:`Undelivered` unless the server took it."""
        mail = letter(told, self._settings.smtp_from, at)
        try:
            self._hand_over(mail)
        except smtplib.SMTPRecipientsRefused as error:
            [(code, _)] = error.recipients.values()
            is_final = code >= _REFUSED_FOR_GOOD
            raise Undelivered(Failure.NOT_TAKEN, is_final=is_final) from None
        except (smtplib.SMTPException, OSError):
            raise Undelivered(Failure.MAIL_SERVER) from None

    def _hand_over(self, mail: EmailMessage) -> None:
        settings, at = self._settings, self._settings.mail_server
        with smtplib.SMTP(at.host, at.port, timeout=_SECONDS) as server:
            if at.is_tls:
                server.starttls(context=ssl.create_default_context())
            if at.user:
                server.login(at.user, settings.smtp_password.get_secret_value())
            server.send_message(mail)


def _lines(told: Notification) -> Iterator[str]:
    where = f"session {told.session}"
    if told.slot:
        where += f", slot {told.slot}"
    until = (
        "" if told.deadline is None else f" until {told.deadline:%Y-%m-%d %H:%M} UTC"
    )
    if told.event is NoticeEvent.ADDED:
        yield f"Notices about {where} come to this address from now on."
        yield "There is nothing to do."
    elif told.event is NoticeEvent.ENDED:
        yield f"The end of {where}: {told.state}."
        yield from _reasons(told)
    elif told.slot:
        long = " still" if told.event is NoticeEvent.AWAITED else ""
        yield f"The analyst{long} waits for this party in {where}, round {told.round}{until}."
        yield f"What to do: coterie party run {told.session} {told.slot} --data FILE"
    elif told.state == SessionState.CHOOSING:
        yield f"All runs of {where} are done; one is to be chosen{until}."
        yield f"What to do: coterie session choose {told.session} --n-clusters NUMBER"
    else:
        names = ", ".join(told.awaited or ())
        yield f"In {where} the analyst has waited since {told.since:%Y-%m-%d %H:%M} UTC{until and ' and waits'}{until} for: {names}."
        yield (
            f"What to do: ask them; coterie session extend {told.session} --days NUMBER "
            "waits longer."
        )


def _reasons(told: Notification) -> Iterator[str]:
    if told.state == SessionState.COMPLETED:
        yield "What to do: " + (
            f"coterie party run {told.session} {told.slot} --data FILE fetches the labels."
            if told.slot
            else f"coterie session show {told.session} prints the result."
        )
        return
    if told.detail:
        yield told.detail
    try:
        problem = Problem.of_slug(told.reason or "")
    except KeyError:
        return
    yield f"{problem.title}."
    yield f"What to do: {problem.remedy}"


def _footer(told: Notification) -> str:
    who = (
        f"party notify {told.session} {told.slot}"
        if told.slot
        else f"session notify {told.session}"
    )
    return (
        "-- \nSomebody who takes part in this session left this address. To hear no more "
        f"of it:\ncoterie {who} --remove {told.receiver_id}"
    )

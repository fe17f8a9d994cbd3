"""Sending mail: plain text, one receiver, over the administrator's mail server."""

from __future__ import annotations

import smtplib
import ssl
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from analyst_service.configuration.settings import Settings
from analyst_service.notices.messages import (
    Notification,
    Undelivered,
    as_letter,
    subject,
)
from clustering_protocols.wire.notices import Failure

_SECONDS = 10.0  # of each answer of the server
_REFUSED_FOR_GOOD = 500


def letter(told: Notification, sender: str, at: datetime) -> EmailMessage:
    """Return the mail of a notice.

    Headers hold names of sessions and checked addresses; the library refuses the rest.
    """
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = told.address
    mail["Subject"] = subject(told)
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = f"<{told.notice_id}@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody answers by machine
    mail.set_content(as_letter(told))
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
        settings = self._settings
        with smtplib.SMTP(
            settings.smtp_host, settings.smtp_port, timeout=_SECONDS
        ) as server:
            if settings.smtp_starttls:
                server.starttls(context=self._build_tls_context())
            if settings.smtp_user:
                server.login(
                    settings.smtp_user, settings.smtp_password.get_secret_value()
                )
            server.send_message(mail)

    def _build_tls_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._settings.notices_ca_file)

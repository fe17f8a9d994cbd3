"""What an administrator may set about mail."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from analyst_service.secret_files import SECRET

# Narrower than the standard: what has to be quoted, and what names a route, is none.
_MAIL: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{0,63}"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9-]{1,63}){1,8}"
)
_SERVER: Final = re.compile(
    r"(?P<scheme>smtp|smtp\+plain)://(?:(?P<user>[^\s/:@]+)@)?(?P<host>[^\s/:@]+)"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)
_PORT: Final = 587


def is_mail_address(text: str) -> bool:
    """Return whether a text is one address of mail, and nothing beside it."""
    return _MAIL.fullmatch(text) is not None


class MailServer(NamedTuple):
    """The mail server: who logs in there (empty for nobody), and whether under TLS."""

    host: str
    port: int
    user: str
    is_tls: bool


class NoticeSettings(BaseSettings):
    """The settings of mail; which authorities count, ``SSL_CERT_FILE`` says."""

    smtp_url: str = Field(
        default="",
        description="Mail server, smtp://user@host:587, spoken to under TLS (STARTTLS); "
        "smtp+plain://host:25 without. Without one no mail is sent.",
    )
    smtp_password: SecretStr = Field(
        default=SecretStr(""),
        description="The password of that user.",
        json_schema_extra=SECRET,
    )
    smtp_from: str = Field(default="", description="Address that mail comes from.")

    @field_validator("smtp_url")
    @classmethod
    def _check_server(cls, url: str) -> str:
        if url and _SERVER.fullmatch(url) is None:
            raise ValueError("a mail server has the form smtp://user@host:587")
        return url

    @model_validator(mode="after")
    def _check_mail(self) -> Self:
        if self.smtp_url and not is_mail_address(self.smtp_from):
            raise ValueError("COTERIE_SMTP_URL needs COTERIE_SMTP_FROM, an address")
        return self

    @property
    def mail_server(self) -> MailServer:
        """Return the parts of the mail server's address."""
        if (found := _SERVER.fullmatch(self.smtp_url)) is None:
            raise ValueError("no mail server is set")
        return MailServer(
            found["host"],
            int(found["port"] or _PORT),
            found["user"] or "",
            found["scheme"] == "smtp",
        )

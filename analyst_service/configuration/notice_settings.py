"""What an administrator may set about notices: webhooks, mail, and their limits."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Final, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from analyst_service.secret_files import SECRET

Network = IPv4Network | IPv6Network

# Narrower than the standard: what has to be quoted, and what names a route, is none.
_MAIL: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{0,63}"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9-]{1,63}){1,8}"
)


def is_mail_address(text: str) -> bool:
    """Return whether a text is one address of mail, and nothing beside it."""
    return _MAIL.fullmatch(text) is not None


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


class NoticeSettings(BaseSettings):
    """The settings that telling people needs."""

    notices_webhooks: bool = Field(
        default=False,
        description="Whether webhooks are sent; see also COTERIE_SMTP_HOST.",
    )
    notices_internal: str = Field(
        default="",
        description="Networks, separated by commas, of webhooks inside the institution: "
        "10.2.0.0/16; other addresses have to be public.",
    )
    notices_http: bool = Field(
        default=False, description="Whether webhooks may go without TLS."
    )
    notices_ca_file: Path | None = Field(
        default=None,
        description="PEM file of the authority of receivers inside; by default the usual "
        "ones.",
    )
    notices_per_hour: int = Field(
        default=20, ge=1, description="Notices of one receiver, but for the last."
    )
    smtp_host: str = Field(default="", description="Mail server; without one no mail.")
    smtp_port: int = Field(default=587, ge=1, le=65535, description="Its port.")
    smtp_user: str = Field(
        default="", description="Who logs in there; nobody by default."
    )
    smtp_password: SecretStr = Field(
        default=SecretStr(""),
        description="The password of that user.",
        json_schema_extra=SECRET,
    )
    smtp_from: str = Field(default="", description="Address that mail comes from.")
    smtp_starttls: bool = Field(
        default=True, description="Whether mail goes to the server under TLS only."
    )

    @field_validator("notices_internal")
    @classmethod
    def _check_networks(cls, text: str) -> str:
        _networks(text)
        return text

    @model_validator(mode="after")
    def _check_sender(self) -> Self:
        if self.smtp_host and not is_mail_address(self.smtp_from):
            raise ValueError("COTERIE_SMTP_HOST needs COTERIE_SMTP_FROM, an address")
        return self

    @property
    def internal_networks(self) -> tuple[Network, ...]:
        """Return the networks inside the institution to which webhooks may go."""
        return _networks(self.notices_internal)

"""What an administrator may set, from ``COTERIE_…`` in the environment."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from analyst_service.blobs.store_factory import BlobPlace
from analyst_service.configuration.engine_settings import TUNING, EngineSettings
from analyst_service.configuration.notice_settings import (
    NoticeSettings,
    is_mail_address,
)
from analyst_service.secret_files import PREFIX, SECRET, read_secrets
from clustering_protocols.common.limits import BODY_BYTES, JSON_BYTES

# What RFC 9116 has as a contact, in one line.
_WEB_OR_PHONE: Final = re.compile(r"https://[!-~]{1,500}|tel:\+[0-9-]{3,30}")


class Settings(NoticeSettings, EngineSettings):
    """Settings of the analyst service."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    data_dir: Path = Field(
        default=Path("coterie-data"), description="Folder of blobs and of SQLite."
    )
    blob_store: str = Field(
        default="",
        description="Object store of arrays, e.g. s3://bucket/prefix; by default files "
        "in the data folder, which is else a cache in front.",
        json_schema_extra=SECRET,
    )
    cache_bytes: int = Field(
        default=20 << 30,
        ge=0,
        description="With an object store: how much of the cache stays after a sweep.",
    )
    database_url: str = Field(
        default="",
        description="postgresql://… or sqlite:///…; by default SQLite in the data folder.",
        json_schema_extra=SECRET,
    )
    database_password: SecretStr = Field(
        default=SecretStr(""),
        description="Password of the database's user, where the address has none.",
        json_schema_extra=SECRET,
    )
    database_connections: int = Field(
        default=20,
        ge=2,
        le=1000,
        description="Most connections to PostgreSQL that one process opens at once. The "
        "sum over all processes stays below the server's max_connections.",
    )
    identity_file: Path | None = Field(
        default=None,
        description="File of the key that signs receipts and audits; by default in the "
        "data folder. All processes of one analyst share it.",
    )
    certificate_file: Path | None = Field(
        default=None,
        description="PEM file of the certificate that a proxy in front shows: its end is a "
        "figure of /metrics.",
    )
    max_body_bytes: int = Field(
        default=BODY_BYTES, ge=1 << 10, description="Largest contribution."
    )
    max_json_bytes: int = Field(
        default=JSON_BYTES,
        ge=1 << 10,
        description="Largest JSON body.",
        json_schema_extra=TUNING,
    )
    max_header_bytes: int = Field(
        default=32 << 10,
        ge=1 << 10,
        description="Largest headers and address.",
        json_schema_extra=TUNING,
    )
    max_requests: int = Field(
        default=2000,
        ge=1,
        description="Callers' requests under way at once, per process; more get 429. A long "
        "poll that waits is none of them.",
        json_schema_extra=TUNING,
    )
    max_requests_each: int = Field(
        default=200,
        ge=1,
        description="Of them, of one credential; of strangers' requests, of one address.",
        json_schema_extra=TUNING,
    )
    max_waiting_each: int = Field(
        default=32,
        ge=0,
        description="Long polls of one credential that are held; more are answered at "
        "once.",
        json_schema_extra=TUNING,
    )
    max_stranger_requests: int = Field(
        default=1000,
        ge=1,
        description="Requests under way without a credential, counted apart.",
        json_schema_extra=TUNING,
    )
    max_stranger_bytes: int = Field(
        default=16 << 10,
        ge=1 << 10,
        description="Largest body without a credential.",
        json_schema_extra=TUNING,
    )
    stranger_seconds: float = Field(
        default=5.0,
        gt=0,
        description="Head start of a body without a credential.",
        json_schema_extra=TUNING,
    )
    trusted_proxies: str = Field(
        default="",
        description="Addresses, separated by commas, whose X-Forwarded-For is believed.",
    )
    hidden_protocols: str = Field(
        default="dummy", description="Protocols, separated by commas, not offered."
    )
    protocol_packages: str = Field(
        default="",
        description="Installed packages, separated by commas, whose protocols are offered "
        "too. Code of no other package is loaded.",
    )
    body_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Head start of a body before its rate counts.",
        json_schema_extra=TUNING,
    )
    body_bytes_per_second: int = Field(
        default=16 << 10,
        ge=1,
        description="Slowest body, on average; slower ones get 408.",
        json_schema_extra=TUNING,
    )
    requests_per_second: float = Field(
        default=100.0,
        gt=0,
        description="Requests of one credential, or of one address that shows none.",
        json_schema_extra=TUNING,
    )
    request_burst: int = Field(
        default=500,
        ge=1,
        description="Requests at once, after a rest.",
        json_schema_extra=TUNING,
    )
    max_wait_seconds: float = Field(
        default=25.0,
        ge=0,
        le=300,
        description="Cap of the long poll; keep it under your proxy's timeout.",
        json_schema_extra=TUNING,
    )
    poll_seconds: float = Field(
        default=0.1,
        gt=0,
        le=10,
        description="How often waiting requests and the driver look at the database.",
        json_schema_extra=TUNING,
    )
    drain_seconds: float = Field(
        default=0.0,
        ge=0,
        le=300,
        description="How long after SIGTERM requests are still answered, while /readyz "
        "says 503.",
    )
    invitation_seconds: int = Field(
        default=7 * 86_400, ge=60, description="How long an invitation is valid."
    )
    token_seconds: int = Field(
        default=90 * 86_400, ge=60, description="How long a party token is valid."
    )
    key_seconds: int = Field(
        default=365 * 86_400, ge=60, description="How long a key is valid."
    )
    quota_sessions: int | None = Field(
        default=None,
        ge=1,
        description="Open sessions of one coordinator; by default any number.",
    )
    quota_bytes: int | None = Field(
        default=None,
        ge=1,
        description="Bytes that parties have uploaded to the open sessions of one "
        "coordinator; by default any number.",
    )
    security_contact: str = Field(
        default="",
        description="Whom to tell of a weakness of this analyst, separated by spaces: "
        "mailto:ADDRESS, https://… or tel:+…; /.well-known/security.txt then says it.",
    )
    retention_seconds: int = Field(
        default=0,
        ge=0,
        description="How long contributions are kept after the end of their session.",
    )
    delete_seconds: int | None = Field(
        default=None,
        ge=3600,  # parties have to fetch their results
        description="How long after its end a session is deleted, but for its audit; by "
        "default never.",
    )
    orphan_seconds: int = Field(
        default=1800,
        ge=60,
        description="Age at which files that nothing names are removed.",
        json_schema_extra=TUNING,
    )
    sweep_seconds: float = Field(
        default=60.0,
        gt=0,
        le=600,
        description="How often to look for what is to be removed.",
        json_schema_extra=TUNING,
    )
    least_free_bytes: int = Field(
        default=100 << 20,
        ge=0,
        description="Room in the data folder that uploads leave for results.",
    )
    workers: int = Field(
        default=1, ge=1, le=64, description="Processes that step rounds."
    )
    lease_seconds: float = Field(
        default=15.0,
        ge=0.5,
        le=3600,
        description="After how long without a sign of life a step is taken from its "
        "driver.",
        json_schema_extra=TUNING,
    )
    step_attempts: int = Field(
        default=10,
        ge=1,
        description="How often a step is begun before it fails.",
        json_schema_extra=TUNING,
    )

    @property
    def named_packages(self) -> tuple[str, ...]:
        """Return the distributions whose protocols count here."""
        return tuple(filter(None, map(str.strip, self.protocol_packages.split(","))))

    def offers(self, protocol: str) -> bool:
        """Return whether sessions of a protocol may be opened here."""
        hidden = {name.strip() for name in self.hidden_protocols.split(",")}
        return protocol not in hidden

    @model_validator(mode="before")
    @classmethod
    def _read_secrets(cls, given: dict[str, Any]) -> dict[str, Any]:
        return {**given, **read_secrets(cls.model_fields, given, os.environ)}

    @model_validator(mode="after")
    def _check_password(self) -> Self:
        if not self.database_password.get_secret_value():
            return self
        from sqlalchemy import make_url

        if not self.database_url or make_url(self.database_url).password:
            raise ValueError(
                "COTERIE_DATABASE_PASSWORD is for a COTERIE_DATABASE_URL that has a user "
                "and no password"
            )
        return self

    @field_validator("security_contact")
    @classmethod
    def _check_contacts(cls, text: str) -> str:
        for contact in text.split():
            is_mail = contact.startswith("mailto:") and is_mail_address(contact[7:])
            if not is_mail and _WEB_OR_PHONE.fullmatch(contact) is None:
                raise ValueError("a contact is mailto:ADDRESS, https://… or tel:+…")
        return text

    @field_validator("blob_store")
    @classmethod
    def _check_store(cls, address: str) -> str:
        if address and find_spec("obstore") is None:
            raise ValueError("obstore is not installed: pip install 'coterie[objects]'")
        return address

    @property
    def database(self) -> str:
        """Return the database URL with the driver that we install, and the password."""
        if not self.database_url:
            return f"sqlite:///{self.data_dir.resolve() / 'coterie.db'}"
        url = self.database_url
        scheme, _, rest = url.partition("://")
        if scheme in {"postgres", "postgresql"}:
            url = f"postgresql+psycopg://{rest}"
        if password := self.database_password.get_secret_value():
            from sqlalchemy import make_url

            with_it = make_url(url).set(password=password)
            url = with_it.render_as_string(hide_password=False)
        return url

    @property
    def identity_path(self) -> Path:
        """Return the file of the analyst's identity."""
        return self.identity_file or self.data_dir / "identity.json"

    @property
    def backup_mark(self) -> Path:
        """Return the file that says when the last backup ended."""
        return self.data_dir / "last-backup"

    @property
    def blob_place(self) -> BlobPlace:
        """Return where blobs lie."""
        return BlobPlace(
            folder=self.data_dir / "blobs",
            url=self.blob_store,
            cache_bytes=self.cache_bytes,
        )

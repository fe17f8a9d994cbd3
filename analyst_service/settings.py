"""The analyst's settings, which come from environment variables named ``COTERIE_…``."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, Self

from pydantic import Field, JsonValue, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from analyst_service.blobs import BlobLocation
from analyst_service.secret_files import read_secret
from clustering_protocols.common.limits import BODY_BYTES

# TLS is required, because anyone who can reach a scheduler can run code on its workers.
_SCHEDULER: Final = re.compile(
    r"tls://[^/\s@]+:[0-9]{1,5}|tcp\+plain://(?:127(?:\.[0-9]{1,3}){3}|localhost|\[::1\]):[0-9]{1,5}"
)

# Stricter than the standard: quoted local parts and source routes are not accepted.
_MAIL: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{0,63}"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9-]{1,63}){1,8}"
)
_SERVER: Final = re.compile(
    r"smtp(?:\+plain)?://(?:[^\s/:@?#\[\]]+@)?[^\s/:@?#\[\]]+(?::[0-9]{1,5})?/?"
)
PREFIX: Final = "COTERIE_"
_SECRET: Final[dict[str, JsonValue]] = {"secret": True}  # its value may be in a file


def variable_name(field: str) -> str:
    """Return the name of a setting's environment variable."""
    return f"{PREFIX}{field.upper()}"


def file_variable_name(field: str) -> str:
    """Return the name of the variable that names the file of a secret setting."""
    return f"{variable_name(field)}_FILE"


def is_mail_address(text: str) -> bool:
    """Return whether the text is a single mail address and nothing else."""
    return _MAIL.fullmatch(text) is not None


def _items(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


class Settings(BaseSettings):
    """The settings of the analyst service."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    data_dir: Path = Field(
        default=Path("coterie-data"), description="Folder of blobs and of SQLite."
    )
    blob_store: str = Field(
        default="",
        description="Object store of arrays, e.g. s3://bucket/prefix; by default files "
        "in the data folder, which otherwise is a cache.",
        json_schema_extra=_SECRET,
    )
    cache_bytes: int = Field(
        default=20 << 30,
        ge=0,
        description="With an object store: the size to which a sweep shrinks the cache.",
    )
    database_url: str = Field(
        default="",
        description="postgresql://… or sqlite:///…; by default SQLite in the data folder.",
        json_schema_extra=_SECRET,
    )
    database_password: SecretStr = Field(
        default=SecretStr(""),
        description="Password of the database's user, if the URL has none.",
        json_schema_extra=_SECRET,
    )
    database_connections: int = Field(
        default=20,
        ge=2,
        le=1000,
        description="Maximum number of connections to PostgreSQL per process. The sum "
        "over all processes stays below the server's max_connections.",
    )
    identity_file: Path | None = Field(
        default=None,
        description="File of the key that signs receipts and audits; by default in the "
        "data folder. All processes of one analyst share it.",
    )
    certificate_file: Path | None = Field(
        default=None,
        description="PEM file of the certificate of the proxy in front: its expiry is in "
        "/metrics.",
    )
    max_body_bytes: int = Field(
        default=BODY_BYTES, ge=1 << 10, description="Largest contribution."
    )
    max_requests: int = Field(
        default=2000,
        ge=1,
        description="Callers' simultaneous requests, per process; further ones get "
        "429. Waiting long polls do not count.",
    )
    trusted_proxies: str = Field(
        default="",
        description="Addresses, separated by commas, whose X-Forwarded-For is trusted.",
    )
    hidden_protocols: str = Field(
        default="dummy", description="Protocols, separated by commas, not offered."
    )
    protocol_packages: str = Field(
        default="",
        description="Installed packages, separated by commas, whose protocols are offered "
        "too. Other packages' code is not loaded.",
    )
    requests_per_second: float = Field(
        default=100.0,
        gt=0,
        description="Requests of one credential, or of one address without any.",
    )
    drain_seconds: float = Field(
        default=0.0,
        ge=0,
        le=300,
        description="How long after SIGTERM requests are still answered, while /readyz "
        "returns 503.",
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
    retention_seconds: int = Field(
        default=0,
        ge=0,
        description="How long contributions are kept after the end of their session.",
    )
    delete_seconds: int | None = Field(
        default=None,
        ge=3600,  # time for parties to fetch results
        description="How long after its end a session is deleted, except for its audit; "
        "by default never.",
    )
    least_free_bytes: int = Field(
        default=100 << 20,
        ge=0,
        description="Bytes in the data folder that uploads leave free for results.",
    )
    workers: int = Field(
        default=1, ge=1, le=64, description="Processes that compute steps."
    )
    engine: str = Field(
        default="local",
        description="Where steps work on blocks of rows: 'local', in their own process; "
        "'dask', on workers that the service starts (pip install 'coterie[dask]'); or "
        "on the workers of a scheduler, tls://host:8786.",
    )
    smtp_server: str = Field(
        default="",
        description="Mail server, smtp://user@host:587 with TLS (STARTTLS) or "
        "smtp+plain://host:25 without. By default no mail is sent.",
    )
    smtp_password: SecretStr = Field(
        default=SecretStr(""),
        description="Password of that user.",
        json_schema_extra=_SECRET,
    )
    smtp_from: str = Field(default="", description="Sender address of mail.")

    @property
    def protocol_package_names(self) -> tuple[str, ...]:
        """The distributions whose protocols are offered with the built-in ones."""
        return _items(self.protocol_packages)

    @property
    def hidden_protocol_names(self) -> tuple[str, ...]:
        """Return the names of the protocols for which no session may be opened here."""
        return _items(self.hidden_protocols)

    def offers_protocol(self, protocol: str) -> bool:
        """Return whether coordinators may open sessions of a protocol here."""
        return protocol not in self.hidden_protocol_names

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, text: str) -> str:
        for address in () if text.strip() == "*" else _items(text):
            try:
                ip_network(address)
            except ValueError:
                raise ValueError(
                    f"{address!r} is not an IP address or network; '*' alone means any"
                ) from None
        return text

    @model_validator(mode="after")
    def _check_packages(self) -> Self:
        for name in self.protocol_package_names:
            try:
                distribution(name)
            except (PackageNotFoundError, ValueError):
                raise ValueError(
                    f"COTERIE_PROTOCOL_PACKAGES names {name!r}, which is not installed"
                ) from None
        return self

    @model_validator(mode="before")
    @classmethod
    def _read_secrets(cls, values: dict[str, Any]) -> dict[str, Any]:
        secrets = {}
        for name, path in find_secret_files().items():
            variable, file_variable = variable_name(name), file_variable_name(name)
            if values.get(name):
                raise ValueError(
                    f"{variable} and {file_variable} are both set: set only one"
                )
            secrets[name] = read_secret(file_variable, path)
        return {**values, **secrets}

    @model_validator(mode="after")
    def _check_database_password(self) -> Self:
        if not self.database_password.get_secret_value():
            return self
        from sqlalchemy import make_url

        if not self.database_url or make_url(self.database_url).password:
            raise ValueError(
                "COTERIE_DATABASE_PASSWORD is for a COTERIE_DATABASE_URL that has a user "
                "and no password"
            )
        return self

    @field_validator("database_url")
    @classmethod
    def _check_host(cls, url: str) -> str:
        """Refuse a password with an @: its end would be used, and logged, as the host."""
        from sqlalchemy import exc, make_url

        host = None
        with suppress(exc.ArgumentError, ValueError):  # reported when it is opened
            host = make_url(url).host
        if "@" in (host or ""):
            raise ValueError(
                "write @ in the password as %40, or set COTERIE_DATABASE_PASSWORD_FILE"
            )
        return url

    @field_validator("blob_store")
    @classmethod
    def _require_obstore(cls, address: str) -> str:
        if address and find_spec("obstore") is None:
            raise ValueError("obstore is not installed: pip install 'coterie[objects]'")
        return address

    @property
    def database(self) -> str:
        """The URL of the database, including the driver and the password."""
        if not self.database_url:
            return f"sqlite:///{self.data_dir.resolve() / 'coterie.db'}"
        url = self.database_url
        scheme, _, rest = url.partition("://")
        if scheme in {"postgres", "postgresql"}:
            url = f"postgresql+psycopg://{rest}"
        if password := self.database_password.get_secret_value():
            from sqlalchemy import make_url

            full = make_url(url).set(password=password)
            url = full.render_as_string(hide_password=False)
        return url

    @property
    def identity_path(self) -> Path:
        """The path of the file with the analyst's key."""
        return self.identity_file or self.data_dir / "identity.json"

    @property
    def backup_mark(self) -> Path:
        """The path of a file whose modification time is the time of the last backup."""
        return self.data_dir / "last-backup"

    @property
    def blob_location(self) -> BlobLocation:
        """The location of the blob store."""
        return BlobLocation(
            folder=self.data_dir / "blobs",
            url=self.blob_store,
            cache_bytes=self.cache_bytes,
        )

    @field_validator("engine")
    @classmethod
    def _check_engine(cls, engine: str) -> str:
        if engine == "local":
            return engine
        if engine != "dask" and _SCHEDULER.fullmatch(engine) is None:
            raise ValueError(
                "give local, dask or the address of a scheduler, tls://host:8786. On this "
                "machine tcp+plain://127.0.0.1:8786 works without TLS, but then every "
                "account on the machine can run code as its workers"
            )
        if find_spec("distributed") is None:
            raise ValueError("Dask is not installed: pip install 'coterie[dask]'")
        return engine

    @field_validator("smtp_server")
    @classmethod
    def _check_mail_server(cls, url: str) -> str:
        if url and _SERVER.fullmatch(url) is None:
            raise ValueError("a mail server has the form smtp://user@host:587")
        return url

    @model_validator(mode="after")
    def _require_mail_sender(self) -> Self:
        if self.smtp_server and not is_mail_address(self.smtp_from):
            raise ValueError("COTERIE_SMTP_SERVER needs COTERIE_SMTP_FROM, an address")
        return self

    @property
    def sends_mail(self) -> bool:
        """Whether a mail server is configured."""
        return bool(self.smtp_server)


SECRET_SETTINGS: Final = tuple(
    name
    for name, field in Settings.model_fields.items()
    if field.json_schema_extra == _SECRET
)


def find_secret_files() -> dict[str, Path]:
    """Return the files of the secret settings that come from files."""
    paths = {name: os.environ.get(file_variable_name(name)) for name in SECRET_SETTINGS}
    return {name: Path(path) for name, path in paths.items() if path}

"""The administrator's commands; `coterie` finds them through an entry-point group."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

# What a command needs is imported when it runs: this module is read for every list of
# commands. It is found now, though: without the extra there are no such commands.
if find_spec("sqlalchemy") is None:
    raise ModuleNotFoundError(
        "The service needs the extra 'analyst'.", name="sqlalchemy"
    )
if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Transaction

    from analyst_service.auth.service import AuthService
    from analyst_service.database import Database
    from analyst_service.settings import Settings


def _settings() -> Settings:
    from analyst_service.settings import Settings

    return Settings()


def _auth(transaction: Transaction) -> AuthService:
    from analyst_service.auth.service import AuthService
    from analyst_service.clock import SystemClock

    return AuthService(transaction, SystemClock())


@contextmanager
def _database(settings: Settings) -> Iterator[Database]:
    """Open the database for a while; it must have the schema of this release."""
    with _any_database(settings) as database:
        if not database.is_current():
            raise click.ClickException(
                "The database does not have the schema of this release. "
                "Run 'coterie migrate' first."
            )
        yield database


@contextmanager
def _any_database(settings: Settings) -> Iterator[Database]:
    from analyst_service.database import Database

    os.umask(0o077)  # what lies here is for this user alone
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    settings.data_dir.chmod(0o700)
    with closing(Database(settings.database)) as database:
        yield database


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind.")
@click.option("--port", default=8443, show_default=True, help="Port to bind.")
@click.option("--certificate", type=click.Path(exists=True), help="PEM file for TLS.")
@click.option("--private-key", type=click.Path(exists=True), help="PEM file for TLS.")
def serve(
    host: str, port: int, certificate: str | None, private_key: str | None
) -> None:
    """Run the analyst service.

    Settings come from the environment: COTERIE_DATA_DIR, COTERIE_DATABASE_URL and
    others (see docs/administrator.md). Without --certificate it speaks plain HTTP:
    put a reverse proxy with TLS in front of it.
    """
    import uvicorn

    from analyst_service.app import create_app
    from analyst_service.logs import write_json_lines

    settings = _settings()
    with _database(settings):
        pass  # it has the schema
    if _shows_secrets(host, certificate, settings):
        click.echo(
            f"Warning: plain HTTP on {host}: keys and tokens can be read by whoever sees "
            "the network. Give --certificate and --private-key, or listen on 127.0.0.1 "
            "behind a reverse proxy with TLS (then set COTERIE_TRUSTED_PROXIES).",
            err=True,
        )
    write_json_lines()
    uvicorn.run(
        create_app(settings),
        host=host,
        port=port,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
        log_config=None,
        access_log=False,  # the service writes its own, without addresses
        # anybody can write X-Forwarded-For: it says who asks where a proxy wrote it
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
    )


def _shows_secrets(host: str, certificate: str | None, settings: Settings) -> bool:
    is_local = host in {"localhost", "127.0.0.1", "::1"}
    return not (is_local or certificate or settings.trusted_proxies)


@click.command()
def migrate() -> None:
    """Create the database's schema, or bring it up to this release."""
    from alembic.util import CommandError

    with _any_database(_settings()) as database:
        try:
            database.migrate()
        except CommandError:
            raise click.ClickException(
                "The database has a schema that this release does not know: it is of a "
                "newer release. Install that one."
            ) from None
    click.echo("The schema is current.", err=True)


@click.group()
def key() -> None:
    """Make, list and revoke keys of administrators and coordinators."""


@key.command("create")
@click.option(
    "--role",
    type=click.Choice(["coordinator", "administrator"]),
    default="coordinator",
    show_default=True,
    help="A coordinator opens sessions; an administrator sees all of them.",
)
@click.option("--label", default="", help="For whom the key is.")
@click.option("--days", type=click.IntRange(1, 3660), help="How long it is valid.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def create_key(role: str, label: str, days: int | None, *, as_json: bool) -> None:
    """Make a key and print it, once."""
    from analyst_service.auth.service import Role

    settings = _settings()
    seconds = days * 86_400 if days else settings.key_seconds
    with _database(settings) as database, database.write() as transaction:
        key_id, secret = _auth(transaction).create_key(Role(role), label, seconds)
    click.echo(json.dumps({"id": key_id, "key": secret}) if as_json else secret)


@key.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_keys(*, as_json: bool) -> None:
    """List keys and tokens: id, role, label, when they end. Never the secrets."""
    with _database(_settings()) as database, database.read() as transaction:
        found = _auth(transaction).keys()
    lines = [
        {
            "id": credential.id,
            "role": role.value,
            "label": credential.label,
            "session": credential.session_id,
            "expires_at": credential.expires_at.isoformat(),
            "revoked": credential.revoked_at is not None,
        }
        for credential, role in found
    ]
    if as_json:
        click.echo(json.dumps(lines))
        return
    for line in lines:
        click.echo("  ".join(str(value) for value in line.values()))


@key.command("rotate")
@click.argument("key_id")
@click.option(
    "--overlap-hours",
    type=click.IntRange(0, 24 * 30),
    default=24,
    show_default=True,
    help="How long the old secret is valid still.",
)
@click.option("--days", type=click.IntRange(1, 3660), help="How long the new one is.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rotate_key(
    key_id: str, overlap_hours: int, days: int | None, *, as_json: bool
) -> None:
    """Give a key a new secret and print it, once; its sessions stay its own."""
    settings = _settings()
    seconds = days * 86_400 if days else settings.key_seconds
    with _database(settings) as database, database.write() as transaction:
        secret = _auth(transaction).rotate(key_id, seconds, overlap_hours * 3600)
    click.echo(json.dumps({"id": key_id, "key": secret}) if as_json else secret)


@key.command("revoke")
@click.argument("key_id", required=False)
@click.option("--session", help="Instead: all tokens of this session's parties.")
def revoke_key(key_id: str | None, session: str | None) -> None:
    """Revoke the key or token of an id; it is refused from the next request on.

    A party whose token is revoked stays out of its session: it cannot join again.
    """
    if (key_id is None) == (session is None):
        raise click.UsageError("Give the id of a key, or --session.")
    from analyst_service.clock import SystemClock
    from analyst_service.members.service import MemberService

    settings = _settings()
    with _database(settings) as database, database.write() as transaction:
        auth = _auth(transaction)
        members = MemberService(transaction, SystemClock(), settings)
        if session is not None:
            click.echo(f"Revoked {members.shut_out(session)} tokens.", err=True)
            return
        auth.revoke(key_id or "")
        if (place := auth.place(key_id or "")) is not None:
            members.shut_out(*place)
    click.echo("Revoked.", err=True)

"""The command `coterie serve`."""

from __future__ import annotations

import os
import socket
import ssl
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyst_service.cli.context import (
    open_current_database,
    open_database_of_any_schema,
    open_installation,
    operator,
    read_settings,
)

if TYPE_CHECKING:
    from analyst_service.settings import Settings


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind.")
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    default=8443,
    show_default=True,
    help="Port to bind.",
)
@click.option("--certificate", type=click.Path(exists=True), help="PEM file for TLS.")
@click.option("--private-key", type=click.Path(exists=True), help="PEM file for TLS.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Lowest level of log lines.",
)
@click.option(
    "--init",
    is_flag=True,
    help="Also create the schema and a first key in an empty PostgreSQL database.",
)
def serve(
    host: str,
    port: int,
    certificate: str | None,
    private_key: str | None,
    log_level: str,
    *,
    init: bool,
) -> None:
    """Run the analyst service.

    If there is no database yet, the command creates a SQLite file and a coordinator's
    key. In a terminal the key is shown once; otherwise it is written to a file whose
    path is printed. Settings come from the environment: COTERIE_DATA_DIR,
    COTERIE_DATABASE_URL and others (see docs/administrator.md). Without --certificate
    the service speaks plain HTTP: put a reverse proxy with TLS in front of it.
    """
    settings = read_settings()
    if init or settings.database.startswith("sqlite"):
        _set_up_empty_database(settings, host, port)
    with open_current_database(settings) as database:
        open_installation(settings, database)
    _check_certificate_files(certificate, private_key)
    ends = _read_certificate_expiry(certificate or settings.certificate_file)
    _check_port_is_free(host, port)

    from analyst_service.app import create_app
    from analyst_service.cli.shutdown import run_server
    from analyst_service.logs import configure_logging
    from clustering_protocols.wire.http_headers import is_this_machine

    if not (is_this_machine(host) or certificate or settings.trusted_proxies):
        click.echo(
            f"Warning: plain HTTP on {host}: keys and tokens can be read by anyone who sees "
            "the network. Give --certificate and --private-key, or listen on 127.0.0.1 "
            "behind a reverse proxy with TLS (then set COTERIE_TRUSTED_PROXIES).",
            err=True,
        )
    configure_logging(log_level)
    _log_startup(host, port, settings, is_tls=certificate is not None)
    run_server(
        create_app(settings, certificate_ends=ends if certificate else None),
        settings.drain_seconds,
        host=host,
        port=port,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
        log_config=None,
        access_log=False,  # the service logs requests itself, without addresses
        # Anybody can send X-Forwarded-For, so it is only accepted from trusted proxies.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_keep_alive=30,
        server_header=False,
    )


_FIRST_KEY = "coordinator.key"


def _set_up_empty_database(settings: Settings, host: str, port: int) -> None:
    """Create the schema and a coordinator's key, unless the database has a schema.

    Both are committed together, after the key was shown: a process that is killed
    before that leaves an empty database, and the next start creates another key.
    """
    from analyst_service import credentials
    from analyst_service.database import (
        Transaction,
        begin_schema_change,
        migrate_schema,
    )

    with open_database_of_any_schema(settings) as database:
        if database.schema_revision() is not None:
            return
        _check_port_is_free(host, port)
        with begin_schema_change(database.engine) as connection:
            if database.schema_revision() is not None:
                return  # another process was first
            migrate_schema(connection)
            db = Transaction(connection, database.clock, autoflush=True)
            role, seconds = credentials.Role.COORDINATOR, 365 * 86_400
            _, secret = credentials.create_key(
                db, role, "first key", seconds, operator()
            )
            _show_first_key(settings, secret)
        db.commit()  # logs the key, which the transaction around it has committed


def _show_first_key(settings: Settings, secret: str) -> None:
    """Print the key in a terminal; otherwise write it to a file and print the path."""
    if sys.stdout.isatty():
        click.echo(f"The key of the coordinator, shown only once: {secret}")
        return
    path = settings.data_dir / _FIRST_KEY
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{secret}\n")
    click.echo(f"The key of the coordinator is in {path}. Set COTERIE_KEY_FILE to it.")


def _log_startup(host: str, port: int, settings: Settings, *, is_tls: bool) -> None:
    """Log the version, address and database of the service, without any password."""
    import logging

    from sqlalchemy import make_url

    from coterie.build import read_build

    build = read_build()
    url = make_url(settings.database)
    place = url.database if url.host is None else f"{url.host}/{url.database}"
    fields = {
        "version": build.version,
        "commit": build.commit,
        "schema": build.schema,
        "address": f"{'https' if is_tls else 'http'}://{host}:{port}",
        "database": f"{url.get_backend_name()} {place}",
        "data_dir": str(settings.data_dir.resolve()),
    }
    logging.getLogger("analyst_service").info("serving", extra={"fields": fields})


def _check_certificate_files(certificate: str | None, private_key: str | None) -> None:
    """Raise UsageError or ClickException if the two files cannot be used for TLS."""
    if (certificate is None) != (private_key is None):
        raise click.UsageError("Give --certificate and --private-key, or neither.")
    if certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            certificate, private_key, password=""
        )
    except (OSError, ValueError):
        raise click.ClickException(
            f"{certificate} and {private_key} cannot be used for TLS. Both have to be "
            "readable PEM files, the key has to belong to the certificate, and it must "
            "have no passphrase."
        ) from None


def _read_certificate_expiry(path: str | Path | None) -> datetime | None:
    """Return when a certificate expires, and warn if it has expired or soon will."""
    from analyst_service.database import SystemClock
    from analyst_service.metrics import expiry_warning, read_expiry

    if path is None:
        return None
    try:
        ends = read_expiry(Path(path))
    except (OSError, ValueError):
        raise click.ClickException(
            f"{path} contains no certificate that can be read. "
            "COTERIE_CERTIFICATE_FILE names the PEM file of the proxy in front."
        ) from None
    if warning := expiry_warning(Path(path), ends, SystemClock().now()):
        click.echo(f"Warning: {warning}", err=True)
    return ends


def _check_port_is_free(host: str, port: int) -> None:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        with socket.create_server(address[:2], family=family):
            pass
    except OSError as error:
        raise click.ClickException(
            f"{host}:{port} cannot be bound: {error.strerror}. Is another service "
            "running there? --host and --port choose another address."
        ) from None

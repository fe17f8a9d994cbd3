"""`coterie key …`: keys of coordinators and administrators."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from analyst_service.cli.context import (
    load_identity,
    open_current_database,
    operator,
    read_settings,
)


@click.group()
def key() -> None:
    """Create, list and revoke keys of administrators and coordinators."""


@key.command("create")
@click.option(
    "--role",
    type=click.Choice(["coordinator", "administrator"]),
    default="coordinator",
    show_default=True,
    help="A coordinator opens sessions; an administrator sees all of them.",
)
@click.option("--label", default="", help="Who the key is for.")
@click.option(
    "--days",
    type=click.IntRange(1, 3660),
    default=365,
    show_default=True,
    help="How long the key is valid.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def create_key(role: str, label: str, days: int, *, as_json: bool) -> None:
    """Create a key and print it once."""
    from analyst_service import credentials

    seconds, kind = days * 86_400, credentials.Role(role)
    with open_current_database(read_settings()) as database, database.write() as db:
        key_id, secret = credentials.create_key(db, kind, label, seconds, operator())
    click.echo(json.dumps({"id": key_id, "key": secret}) if as_json else secret)


@key.command("identity")
def show_identity() -> None:
    """Create the analyst's own key if there is none; print its public half.

    The analyst signs receipts and audits with this key, and terms name its public half.
    All processes of one analyst share the file that COTERIE_IDENTITY_FILE names. An
    existing key is not changed.
    """
    click.echo(load_identity(read_settings()).key)


@key.command("list")
@click.option(
    "--role",
    type=click.Choice(["coordinator", "administrator"]),
    help="Only keys of this role.",
)
@click.option("--tokens", is_flag=True, help="List the tokens of parties instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_keys_or_tokens(role: str | None, *, tokens: bool, as_json: bool) -> None:
    """List the id, role, label and expiry of each key, but never the secrets."""
    from analyst_service.credentials import Role, list_keys, list_tokens

    if tokens and role:
        raise click.UsageError("Tokens have no role: give --role or --tokens.")
    with open_current_database(read_settings()) as database, database.read() as db:
        credentials = (
            list_tokens(db) if tokens else list_keys(db, Role(role) if role else None)
        )
    lines = [
        {
            "id": credential.id,
            "role": credential.role,
            "label": credential.label,
            "session": credential.session_id,
            "created_at": credential.created_at.isoformat(),
            "expires_at": credential.expires_at.isoformat(),
            "last_used_at": credential.last_used_at
            and credential.last_used_at.isoformat(),
            "revoked": credential.revoked_at is not None,
        }
        for credential in credentials
    ]
    if as_json:
        click.echo(json.dumps(lines))
        return
    for line in _format_key_table(lines):
        click.echo(line)


def _format_key_table(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table of keys, with dates instead of timestamps."""
    rows = [["ID", "ROLE", "FOR WHOM", "SESSION", "MADE", "USED", "ENDS", ""]]
    rows += [
        [
            line["id"],
            line["role"],
            line["label"],
            line["session"] or "",
            line["created_at"][:10],
            (line["last_used_at"] or "never")[:10],
            line["expires_at"][:10],
            "revoked" if line["revoked"] else "",
        ]
        for line in lines
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(cell.ljust(width) for cell, width in cells).rstrip()


@contextmanager
def _explain_unknown_key(key_id: str) -> Iterator[None]:
    """Replace NotFound by an error whose remedy explains how to list the ids of keys."""
    from clustering_protocols.common.errors import NotFound, NotReady

    try:
        yield
    except NotFound:
        raise NotReady(
            f"There is no key or token {key_id!r}, or it was revoked.",
            remedy="Use an ID from 'coterie key list', or a token's from 'coterie key "
            "list --tokens'.",
        ) from None


@key.command("rotate")
@click.argument("key_id")
@click.option(
    "--overlap-hours",
    type=click.IntRange(0, 24 * 30),
    default=24,
    show_default=True,
    help="How long the old secret stays valid.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 3660),
    default=365,
    show_default=True,
    help="How long the new secret is valid.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rotate_key(key_id: str, overlap_hours: int, days: int, *, as_json: bool) -> None:
    """Give a key a new secret and print the secret once; its owner keeps all sessions."""
    from analyst_service import credentials

    seconds, overlap = days * 86_400, overlap_hours * 3600
    with (
        _explain_unknown_key(key_id),
        open_current_database(read_settings()) as database,
        database.write() as db,
    ):
        secret = credentials.rotate_key(db, key_id, seconds, overlap, operator())
    click.echo(json.dumps({"id": key_id, "key": secret}) if as_json else secret)


@key.command("revoke")
@click.argument("key_id", required=False)
@click.option("--session", help="Revoke all tokens of this session instead.")
def revoke_key(key_id: str | None, session: str | None) -> None:
    """Revoke the key or token with this id; later requests with it are refused.

    A party whose token is revoked cannot join its session again.
    """
    if (key_id is None) == (session is None):
        raise click.UsageError("Give the id of a key, or --session.")
    from analyst_service import credentials
    from analyst_service.logs import Act, log_when_committed
    from analyst_service.members import revoke_access
    from analyst_service.models import Credential

    with open_current_database(read_settings()) as database, database.write() as db:
        if session is not None:
            revoked = revoke_access(db, session)
            if not revoked:
                raise click.ClickException(
                    f"No party of a session {session!r} has a token."
                )
            by, act = operator(), Act.TOKENS_REVOKED
            log_when_committed(db, act, by, session=session, count=revoked)
            click.echo(f"Revoked {revoked} tokens.", err=True)
            return
        with _explain_unknown_key(key_id or ""):
            credentials.revoke_credential(db, key_id or "", operator())
        token = db.get_one(Credential, key_id)
        if token.session_id is not None:
            revoke_access(db, token.session_id, token.slot)
    click.echo("Revoked.", err=True)

"""Which invitation, or session, a command of a party is about."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from party_sdk.cli.options.completion import invitation_files, invitations_or_sessions

_TYPED = "coterie.invitation"


def typed_invitation() -> str:
    """Return what was typed for the invitation of the command that runs."""
    return str(click.get_current_context().meta[_TYPED])


def read_invitation(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str:
    """Return an invitation as given, from @FILE, or from standard input for -."""
    del parameter
    if value is None:  # an argument that may be left out
        return ""
    if context.resilient_parsing:  # a shell completes: nothing is read from anywhere
        return value
    context.meta[_TYPED] = value
    if value == "-":
        return sys.stdin.readline().strip()
    if not value.startswith("@"):
        if value.endswith(".invitation") and Path(value).is_file():
            raise click.UsageError(f"{value!r} is a file: write @{value}.", context)
        return value
    try:
        return Path(value[1:]).read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise click.BadParameter(f"cannot read the file {value[1:]!r}.") from None


invitation_argument = click.argument(
    "invitation", callback=read_invitation, shell_complete=invitation_files
)
invited_argument = click.argument(
    "session", callback=read_invitation, shell_complete=invitations_or_sessions
)

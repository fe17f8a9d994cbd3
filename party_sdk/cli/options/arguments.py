"""What a shell offers on the tab key: names that this release and this home know.

The analyst is not asked, and no file is read: names of sessions and slots are those of
files and folders.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from party_sdk.home.files import default_home


def protocol_names(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[str]:
    """Return the protocols."""
    del context, parameter
    from clustering_protocols import catalogue

    return _select_by_prefix(begun, catalogue.catalogue())


def own_sessions(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[str]:
    """Return the sessions that were joined from this home."""
    del parameter
    from party_sdk.party.party_index import sessions_in

    return _select_by_prefix(begun, sessions_in(_home(context)))


def invitations_or_sessions(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[str]:
    """Return files that may hold an invitation, and the sessions that were joined."""
    files = invitation_files(context, parameter, begun)
    return [*files, *own_sessions(context, parameter, begun)]


def own_slots(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[str]:
    """Return the slots of the session that was typed before."""
    del parameter
    named = context.params.get("session_id") or context.params.get("session") or ""
    from party_sdk.party.party_index import slots_of

    return _select_by_prefix(begun, slots_of(_home(context), named))


def opened_sessions(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[str]:
    """Return the sessions that were opened from this home."""
    del parameter
    from party_sdk.coordinator.session import opened_in

    return _select_by_prefix(begun, opened_in(_home(context)))


def invitation_files(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[str]:
    """Return files that may hold an invitation, and folders."""
    del context, parameter
    sign = "@" if begun.startswith("@") else ""
    start = Path(begun.removeprefix("@"))
    folder = start if begun.endswith("/") else start.parent
    found = [f"{sign}{folder / name}" for name in _names(folder, "*.invitation")]
    deeper = [f"{sign}{path}/" for path in folder.glob("[!.]*") if path.is_dir()]
    return _select_by_prefix(begun, [*found, *deeper])


def _select_by_prefix(begun: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(begun))


def _names(folder: Path, pattern: str) -> list[str]:
    return [path.name for path in folder.glob(pattern)]


def _home(context: click.Context) -> Path:
    """Return the home that was typed, also before the sub-command."""
    place: click.Context | None = context
    while place is not None:
        if typed := place.params.get("home"):
            return Path(typed)
        place = place.parent
    return default_home()


def _not_empty(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not value.strip():  # as of a variable that is not set
        raise click.UsageError(f"{parameter.human_readable_name} is empty.", context)
    return value


session_argument = click.argument(
    "session_id", shell_complete=own_sessions, callback=_not_empty
)
slot_argument = click.argument("slot", shell_complete=own_slots)
optional_slot_argument = click.argument(
    "slot", required=False, shell_complete=own_slots
)
opened_argument = click.argument(
    "session_id", shell_complete=opened_sessions, callback=_not_empty
)


_TYPED = "coterie.invitation"


def typed_invitation() -> str:
    """Return what was typed for the invitation of the command that runs."""
    return str(click.get_current_context().meta[_TYPED])


def read_invitation(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str:
    """Return an invitation: of a file, of standard input for -, or as it was typed."""
    del parameter
    if value is None:  # an argument that may be left out
        return ""
    if context.resilient_parsing:  # a shell completes: nothing is read from anywhere
        return value
    context.meta[_TYPED] = value
    if value == "-":
        return sys.stdin.readline().strip()
    if not value.startswith("@") and not value.endswith(".invitation"):
        return value
    path = value.removeprefix("@")
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise click.BadParameter(f"cannot read the file {path!r}.") from None


invitation_argument = click.argument(
    "invitation", callback=read_invitation, shell_complete=invitation_files
)
invited_argument = click.argument(
    "session", callback=read_invitation, shell_complete=invitations_or_sessions
)

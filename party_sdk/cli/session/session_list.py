"""`coterie session list` and `coterie session delete`: finding, and forgetting."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from clustering_protocols.wire.states import OVER, SessionState
from party_sdk.cli.options.common import MOMENT, pass_coordinator
from party_sdk.cli.options.completion import opened_sessions
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.cli.terminal.text_tables import align_columns

if TYPE_CHECKING:
    from clustering_protocols.wire.answers import SessionLine
    from party_sdk.coordinator.coordinator import Coordinator

_MOST_NAMES: Final = 3
_HEADER: Final = ("SESSION", "STATE", "ROUND", "METHOD", "OWNER", "WAITING FOR")
_TIMES: Final = ("SINCE (UTC)", "OPENED (UTC)", "TITLE")


@click.command("list")
@click.option(
    "--state",
    type=click.Choice(["open", "over", *(each.value for each in SessionState)]),
    help="In this state; open: not ended, over: ended.",
)
@click.option(
    "--owner", default="", help="Of this owner: the label of a key, or its id."
)
@click.option("--awaited", default="", help="Waiting for this slot.")
@click.option("--since", type=MOMENT, help="Changed since: 2026-11-01, 3d, 12h.")
@click.option("--older", type=MOMENT, help="Not changed since: 2026-11-01, 3d, 12h.")
@click.option("--limit", type=click.IntRange(1), help="So many at most.")
@json_option
@pass_coordinator
def list_sessions(
    coordinator: Coordinator,
    state: str | None,
    owner: str,
    awaited: str,
    since: datetime | None,
    older: datetime | None,
    limit: int | None,
    *,
    as_json: bool,
) -> None:
    """List the sessions of this key, the last to change first.

    With the key of an administrator: of all owners.
    """
    found = coordinator.sessions(
        limit,
        state=state or "",
        owner=owner,
        awaited=awaited,
        since=since,
        before=older,
    )
    if as_json:
        say(json.dumps([line.model_dump(mode="json") for line in found]))
        return
    for text in (
        align_columns([[*_HEADER, *_TIMES], *map(_cells, found)]) if found else ()
    ):
        say(text)
    if not found:
        is_filtered = any((state, owner, awaited, since, older))
        fits = (
            "No session fits." if is_filtered else "There are no sessions of this key."
        )
        say(fits, err=True)


@click.command()
@click.argument("session_id", required=False, shell_complete=opened_sessions)
@click.option(
    "--ended-before",
    type=MOMENT,
    help="Instead: all sessions that ended before a time: 2026-11-01, 90d.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_coordinator
def delete(
    coordinator: Coordinator,
    session_id: str | None,
    ended_before: datetime | None,
    *,
    yes: bool,
) -> None:
    """Remove all of a session but its audit.

    A session that runs is cancelled first. The id is never free again.
    """
    if (session_id is None) == (ended_before is None):
        raise click.UsageError("Give the id of a session, or --ended-before.")
    if ended_before is None:
        ids = [session_id or ""]
        whose = "Delete results and all else but the audit"
    else:
        ids = _find_ended(coordinator, ended_before)
        whose = f"Delete all but the audit of {len(ids)} ended sessions"
    if not ids:
        say("No session ended before then.", err=True)
        return
    if not yes:
        click.confirm(f"{whose}?", abort=True)
    for each in ids:
        coordinator.session(each).delete()
    if ended_before is not None:
        say(f"Deleted {len(ids)} sessions.", err=True)


def _find_ended(coordinator: Coordinator, before: datetime) -> list[str]:
    """Return the ids of sessions that ended before a time."""
    found = coordinator.sessions(state="over", before=before)
    return [
        line.id
        for line in found
        if line.state in OVER and line.waiting_since and line.waiting_since < before
    ]


def _cells(line: SessionLine) -> list[str]:
    return [
        line.id,
        line.state.value,
        str(line.round or ""),
        line.protocol,
        line.owner,
        _describe_waiting(line.state, line.awaited),
        "" if line.waiting_since is None else _minute(line.waiting_since),
        _minute(line.created_at),
        line.title,
    ]


def _describe_waiting(state: SessionState, awaited: Sequence[str]) -> str:
    """Return for whom a session waits."""
    if awaited:
        more = len(awaited) - _MOST_NAMES
        names = ", ".join(awaited[:_MOST_NAMES])
        return f"{names} and {more} more" if more > 0 else names
    return "the choice" if state is SessionState.CHOOSING else ""


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"

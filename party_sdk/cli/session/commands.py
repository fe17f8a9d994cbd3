"""`coterie session …`: what a coordinator does."""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clustering_protocols.wire.states import SessionState
from party_sdk.cli.options.common import (
    home_option,
    key_option,
    pass_coordinator,
    url_option,
)
from party_sdk.cli.options.completion import opened_argument
from party_sdk.cli.options.release import documents, outcome_lines, profile_lines
from party_sdk.cli.session.create import create
from party_sdk.cli.session.letters import invitations_option
from party_sdk.cli.session.notify import notify_coordinator
from party_sdk.cli.session.pages import export, report
from party_sdk.cli.session.progress import result_document, show_status, show_summary
from party_sdk.cli.session.session_list import delete, list_sessions
from party_sdk.cli.terminal.output import (
    audit_line,
    json_option,
    progress_line,
    roster_document,
    roster_lines,
    say,
    show_progress,
)
from party_sdk.cli.terminal.patience import show_outage, show_silence
from party_sdk.coordinator.letters import write_letters
from party_sdk.home.files import read_secret_variable

if TYPE_CHECKING:
    from party_sdk.coordinator.coordinator import Coordinator

_SECONDS = click.IntRange(1, 366 * 86_400)


@click.group()
@url_option
@key_option
@home_option
@click.pass_context
def session(
    ctx: click.Context,
    url: str | None,
    key: str | None,
    home: Path | None,
) -> None:
    """Open, watch and end sessions (for the coordinator)."""

    def open_coordinator() -> Coordinator:
        from party_sdk.analyst_client.http_analyst import connect
        from party_sdk.analyst_client.transport import Listeners
        from party_sdk.coordinator.coordinator import Coordinator

        secret = key or read_secret_variable("COTERIE_KEY")
        if url is None or not secret:
            raise click.UsageError("Missing option '--url' or '--key'.", ctx)
        analyst = connect(
            url,
            patience=30,
            listeners=Listeners(on_outage=show_outage, on_silence=show_silence),
        )
        return ctx.with_resource(Coordinator(url, secret, home=home, analyst=analyst))

    ctx.obj = open_coordinator


session.add_command(create)
session.add_command(report)
session.add_command(export)
session.add_command(notify_coordinator)
session.add_command(list_sessions)
session.add_command(delete)


@session.command()
@opened_argument
@click.option(
    "--slot",
    "slots",
    multiple=True,
    help="Slot to invite; may be given several times. By default every free one.",
)
@invitations_option
@json_option
@pass_coordinator
def invite(
    coordinator: Coordinator,
    session_id: str,
    slots: tuple[str, ...],
    letters: Path | None,
    *,
    as_json: bool,
) -> None:
    """Make new invitations; earlier ones of the same slots end."""
    opened = coordinator.session(session_id)
    invitations = opened.invite(slots or None)
    if letters is not None:
        write_letters(letters, opened.terms, invitations)
    if as_json:
        say(json.dumps(invitations if letters is None else sorted(invitations)))
        return
    if not invitations:
        say("No slot is free: all parties have joined.", err=True)
    for slot, invitation in invitations.items():
        shown = invitation if letters is None else letters / f"{slot}.invitation"
        say(f"{slot}  {shown}")


@session.command()
@opened_argument
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    help="Of several runs: write their figures over the number of clusters (SVG).",
)
@json_option
@pass_coordinator
def show(
    coordinator: Coordinator, session_id: str, picture: Path | None, *, as_json: bool
) -> None:
    """Say where a session stands and for whom it waits."""
    from coterie_pages.views.result_views import outcomes_in

    opened = coordinator.session(session_id)
    status = opened.status()
    if picture is not None:
        from party_sdk.cli.terminal.run_picture import draw

        draw(status.runs, picture)
    roster = opened.roster() if status.all_joined and opened.is_ours else None
    profiles = opened.profiles()
    outcomes = outcomes_in(opened.terms, profiles) if opened.is_ours else ()
    if as_json:
        members = {} if roster is None else roster_document(roster)
        told = documents(profiles, outcomes) | result_document(opened, status)
        say(json.dumps(status.model_dump(mode="json") | members | told))
        return
    show_status(status)
    for line in chain(profile_lines(profiles), outcome_lines(outcomes)):
        say(line)
    for line in () if roster is None else roster_lines(roster):
        say(line)
    if status.all_joined and not opened.is_ours:
        say(
            "Members and result are shown where the session was opened: only there can "
            "they be checked.",
            err=True,
        )
    elif status.state == SessionState.COMPLETED:
        show_summary(opened.summary())


@session.command()
@opened_argument
@click.option(
    "--n-clusters",
    type=click.IntRange(1),
    required=True,
    help="Of the run whose labels parties shall get; 'session show' prints all runs.",
)
@click.option("--yes", is_flag=True, help="Do not ask whether you are sure.")
@json_option
@pass_coordinator
def choose(
    coordinator: Coordinator,
    session_id: str,
    n_clusters: int,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Choose the run whose labels parties get.

    Of a session that was created with --choose later. It cannot be chosen again: at a
    terminal you are asked once more.
    """
    if not yes and sys.stdin.isatty():
        show_status(coordinator.session(session_id).status())
        question = f"{n_clusters} clusters, for good?"
        if not click.confirm(question, err=True):
            raise click.Abort
    status = coordinator.session(session_id).choose(n_clusters)
    say(status.model_dump_json() if as_json else progress_line(status))


@session.command()
@opened_argument
@json_option
@pass_coordinator
def watch(coordinator: Coordinator, session_id: str, *, as_json: bool) -> None:
    """Follow a session to its end."""
    status = coordinator.session(session_id).wait(show_progress)
    if as_json:
        say(status.model_dump_json())


@session.command()
@opened_argument
@click.option(
    "--receipts",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="What a party's 'party audit --json' printed: the audit has to agree with it.",
)
@json_option
@pass_coordinator
def audit(
    coordinator: Coordinator,
    session_id: str,
    receipts: tuple[Path, ...],
    *,
    as_json: bool,
) -> None:
    """Print and check a session's audit.

    It tells who sent or received which digest when; the command fails if a line was
    changed. With --json it is signed by the analyst: a file that somebody else can check
    (coterie verify).
    """
    from clustering_protocols.terms.signed_logs import SignedLog, compare

    log = coordinator.session(session_id).audit()
    for path in receipts:
        compare(log, SignedLog.read(path.read_bytes()))
    if as_json:
        say(log.model_dump_json())
        return
    entries = log.entries()
    for entry in entries:
        say(audit_line(entry))
    say(f"The chain of {len(entries)} lines holds.", err=True)


@session.command()
@opened_argument
@click.option("--days", type=click.FloatRange(0, 366), default=0.0, help="Days more.")
@click.option(
    "--hours", type=click.FloatRange(0, 8784), default=0.0, help="Hours more."
)
@json_option
@pass_coordinator
def extend(
    coordinator: Coordinator,
    session_id: str,
    days: float,
    hours: float,
    *,
    as_json: bool,
) -> None:
    """Wait longer for those that have not answered."""
    seconds = 86_400 * days + 3600 * hours
    if not seconds:
        raise click.UsageError("Give --days or --hours.")
    status = coordinator.session(session_id).extend(seconds)
    say(status.model_dump_json() if as_json else progress_line(status))


@session.command()
@opened_argument
@click.option("--reason", default="", help="What the parties read, in one line.")
@json_option
@pass_coordinator
def cancel(
    coordinator: Coordinator, session_id: str, reason: str, *, as_json: bool
) -> None:
    """End a session; parties read why."""
    status = coordinator.session(session_id).cancel(reason)
    say(status.model_dump_json() if as_json else progress_line(status))

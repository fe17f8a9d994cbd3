"""`coterie session …`: what a coordinator does."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from clustering_protocols.wire.states import (
    OVER,
    SessionState,
    SlotState,
    summarise_stop,
)
from party_sdk.cli.options.arguments import opened_argument, opened_sessions
from party_sdk.cli.options.common import (
    MOMENT,
    home_option,
    key_option,
    pass_coordinator,
    url_option,
)
from party_sdk.cli.options.release import documents, outcome_lines, profile_lines
from party_sdk.cli.session.create import create, invitations_option
from party_sdk.cli.session.notify import (
    address_options,
    change_receivers,
    receiver_lines,
)
from party_sdk.cli.terminal.output import (
    Output,
    align_columns,
    audit_lines,
    json_option,
    json_output,
    progress_line,
    report_lines,
    roster_document,
    roster_lines,
    say,
    show_outage,
    show_progress,
    show_silence,
)
from party_sdk.cli.terminal.output_files import force_option, report_summary, write_page
from party_sdk.cli.terminal.run_table import table_lines
from party_sdk.coordinator.letters import write_letters
from party_sdk.home.files import read_secret_variable
from party_sdk.results.output_files import keep_others, write_whole

if TYPE_CHECKING:
    from clustering_protocols.records.record import Record
    from clustering_protocols.wire.answers import SessionLine, SessionStatus, SlotStatus
    from party_sdk.coordinator.coordinator import Coordinator

_SECONDS = click.IntRange(1, 366 * 86_400)


@click.group()
@url_option
@key_option
@home_option
@click.pass_context
def session(
    ctx: click.Context,
    url: str,
    key: str | None,
    home: Path | None,
) -> None:
    """Open, watch and end sessions (for the coordinator)."""

    def open_coordinator() -> Coordinator:
        from party_sdk.analyst_client.http_analyst import connect
        from party_sdk.analyst_client.transport import Listeners
        from party_sdk.coordinator.coordinator import Coordinator

        secret = key or read_secret_variable("COTERIE_KEY")
        if not secret and sys.stdin.isatty():
            secret = click.prompt("Your key as coordinator", hide_input=True, err=True)
        if not secret:
            raise click.UsageError("Missing option '--key'.", ctx)
        analyst = connect(
            url,
            patience=30,
            listeners=Listeners(on_outage=show_outage, on_silence=show_silence),
        )
        return ctx.with_resource(Coordinator(url, secret, home=home, analyst=analyst))

    ctx.obj = open_coordinator


session.add_command(create)


@session.command()
@opened_argument
@click.option(
    "--party",
    "slots",
    multiple=True,
    help="A party to invite; again for several. By default all that have not joined.",
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
    letters = letters or (None if as_json else Path())
    if letters is not None:
        write_letters(letters, opened.terms, invitations)
    if as_json:
        say(json.dumps(invitations if letters is None else sorted(invitations)))
        return
    if not invitations:
        say("No slot is free: all parties have joined.", err=True)
    for slot in invitations:
        say(f"{slot}  {(letters or Path()) / f'{slot}.invitation'}")


@session.command()
@opened_argument
@click.option("--follow", is_flag=True, help="Wait for the end of the session first.")
@address_options
@json_output
@pass_coordinator
def show(
    coordinator: Coordinator,
    session_id: str,
    *,
    follow: bool,
    **receivers: str | None,
) -> Output:
    """Say where a session stands and for whom it waits.

    The analyst notifies --mail of slow parties, of a choice that waits and of the end, if
    its administrator has set that up; then you read who is notified.
    """
    from coterie_pages.views.result_views import outcomes_in

    opened = coordinator.session(session_id)
    if any(receivers.values()):
        return change_receivers(opened.receivers, receivers)
    status = opened.wait(show_progress) if follow else opened.status()
    roster = opened.roster() if status.all_joined and opened.is_ours else None
    profiles = opened.profiles()
    outcomes = outcomes_in(opened.terms, profiles) if opened.is_ours else ()
    if status.all_joined and not opened.is_ours:
        say(
            "Members and result are shown where the session was opened: only there can "
            "they be checked.",
            err=True,
        )
    is_checked = status.state == SessionState.COMPLETED and opened.is_ours
    summary = opened.summary() if is_checked else None
    members = {} if roster is None else roster_document(roster)
    document = status.model_dump(mode="json") | members
    document |= documents(profiles, outcomes) | result_document(summary)
    notified = opened.receivers.list()
    document["receivers"] = [
        each.model_dump(mode="json") for each in notified.receivers
    ]
    lines = chain(
        status_lines(status),
        profile_lines(profiles),
        outcome_lines(outcomes),
        () if roster is None else roster_lines(roster),
        () if summary is None else summary_lines(summary),
        receiver_lines(notified),
    )
    return Output(document, lines)


@session.command()
@opened_argument
@click.option(
    "--n-clusters",
    type=click.IntRange(1),
    required=True,
    help="Of the run whose labels parties shall get; 'session show' prints all runs.",
)
@click.option("--yes", is_flag=True, help="Do not ask whether you are sure.")
@json_output
@pass_coordinator
def choose(
    coordinator: Coordinator,
    session_id: str,
    n_clusters: int,
    *,
    yes: bool,
) -> Output:
    """Choose the run whose labels parties get.

    Of a session that was created with --choose later. It cannot be chosen again: at a
    terminal you are asked once more.
    """
    if not yes and sys.stdin.isatty():
        for line in status_lines(coordinator.session(session_id).status()):
            say(line)
        question = f"{n_clusters} clusters, for good?"
        if not click.confirm(question, err=True):
            raise click.Abort
    status = coordinator.session(session_id).choose(n_clusters)
    return Output(status, [progress_line(status)])


@session.command()
@opened_argument
@click.option(
    "--receipts",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="What a party's 'party audit --json' printed: the audit has to agree with it.",
)
@json_output
@pass_coordinator
def audit(
    coordinator: Coordinator,
    session_id: str,
    receipts: tuple[Path, ...],
) -> Output:
    """Print and check a session's audit.

    It tells who sent or received which digest when; the command fails if a line was
    changed. With --json it is signed by the analyst: a file that somebody else can check
    (coterie verify).
    """
    from clustering_protocols.terms.signed_logs import SignedLog, compare

    log = coordinator.session(session_id).audit()
    for path in receipts:
        compare(log, SignedLog.read(path.read_bytes()))
    return Output(log, audit_lines(log.entries()))


@session.command()
@opened_argument
@click.option(
    "--days",
    type=click.FloatRange(0, 366, min_open=True),
    required=True,
    help="Days more; .5 is twelve hours.",
)
@json_output
@pass_coordinator
def extend(coordinator: Coordinator, session_id: str, days: float) -> Output:
    """Wait longer for those that have not answered."""
    status = coordinator.session(session_id).extend(86_400 * days)
    return Output(status, [progress_line(status)])


@session.command()
@opened_argument
@click.option("--reason", default="", help="What the parties read, in one line.")
@json_output
@pass_coordinator
def cancel(coordinator: Coordinator, session_id: str, reason: str) -> Output:
    """End a session; parties read why."""
    status = coordinator.session(session_id).cancel(reason)
    return Output(status, [progress_line(status)])


def summary_lines(summary: Record) -> Iterator[str]:
    """Yield what the coordinator may read of the result: numbers and short lists."""
    yield from report_lines(summary.values, between=" ")
    for name, array in summary.arrays.items():
        if array.ndim == 1:
            yield f"{name} {', '.join(map(str, array.tolist()))}"


def result_document(summary: Record | None) -> dict[str, Any]:
    """Return the whole result that the coordinator may read, once it is there.

    Labels are not in it: parties alone have them.
    """
    if summary is None:
        return {}
    arrays = {name: array.tolist() for name, array in summary.arrays.items()}
    return {"result": {**summary.values, **arrays}}


def _absence(slot: SlotStatus) -> str:
    """Return why a party has not joined, as far as it has said."""
    if slot.state is SlotState.INVITED:
        return "has not joined"
    return f"has {slot.state}" + (f": {slot.reason}" if slot.reason else "")


def status_lines(status: SessionStatus) -> Iterator[str]:
    """Yield where a session stands, for whom it waits, and what its runs are like."""
    yield f"{status.title or status.id}: {status.protocol}"
    yield progress_line(status)
    for slot in status.slots:
        joined = f"{slot.n_rows} rows" if slot.joined_at else _absence(slot)
        if slot.stopped is not None:
            joined += f", {summarise_stop(slot.stopped)}"
        waits = slot.awaited and slot.stopped is None
        waiting = f"; waiting since {status.waiting_since:%H:%M:%S} UTC" * waits
        yield f"  {slot.name}: {joined}{waiting}"
    chosen = next((n for n, run in enumerate(status.runs) if run.chosen), None)
    figures = [run.figures for run in status.runs]
    numbers = [run.n_clusters for run in status.runs]
    sizes = [run.sizes for run in status.runs]
    yield from table_lines(numbers, figures, chosen, sizes)
    if status.state is SessionState.CHOOSING and (said := suggestion_line(status)):
        yield said


def suggestion_line(status: SessionStatus) -> str:
    """Return which run is suggested and why; empty where nothing compares runs."""
    from coterie_pages.result_texts import suggest_run

    found = suggest_run(status.runs)
    if found is None:
        return ""
    doubts = "".join(f" {doubt}" for doubt in found.doubts)
    return f"suggested: {found.n_clusters} clusters, {found.reason}.{doubts}"


_MOST_NAMES: Final = 3
_HEADER: Final = ("SESSION", "STATE", "ROUND", "METHOD", "OWNER", "WAITING FOR")
_TIMES: Final = ("SINCE (UTC)", "OPENED (UTC)", "TITLE")


@session.command("list")
@click.option(
    "--state",
    type=click.Choice(["open", "over", *(each.value for each in SessionState)]),
    help="In this state; open: not ended, over: ended.",
)
@click.option(
    "--owner", default="", help="Of this owner: the label of a key, or its id."
)
@click.option("--since", type=MOMENT, help="Changed since: 2026-11-01, 3d, 12h.")
@click.option("--limit", type=click.IntRange(1), help="So many at most.")
@json_output
@pass_coordinator
def list_sessions(
    coordinator: Coordinator,
    state: str | None,
    owner: str,
    since: datetime | None,
    limit: int | None,
) -> Output:
    """List the sessions of this key, the last to change first.

    With the key of an administrator: of all owners.
    """
    found = coordinator.sessions(
        limit,
        state=state or "",
        owner=owner,
        since=since,
    )
    if not found:
        is_filtered = any((state, owner, since))
        fits = (
            "No session fits." if is_filtered else "There are no sessions of this key."
        )
        say(fits, err=True)
    rows = [[*_HEADER, *_TIMES], *map(_cells, found)] if found else []
    document = [line.model_dump(mode="json") for line in found]
    return Output(document, align_columns(rows) if rows else ())


@session.command()
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


@session.command()
@opened_argument
@click.option(
    "--out",
    "outs",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a file. .html: the report as a page. .zip: all that you may read of the "
    "session: the exact texts of terms and agreement, its state, the result, the signed "
    "audit and the report; no secret. Again for both.",
)
@force_option
@json_output
@pass_coordinator
def report(
    coordinator: Coordinator, session_id: str, outs: tuple[Path, ...], *, force: bool
) -> Output:
    """Report what came of a session, on a page to file.

    It has terms, members, figures, sizes and the audit, all checked. Terms, members and
    result are in it where the session was opened: only there can they be checked.
    """
    from party_sdk.reports.session_reports import archive, audited_report

    keep_others(outs, None, force=force)
    opened = coordinator.session(session_id)
    status = opened.status()
    made, log = audited_report(coordinator, opened, status)
    for path in outs:
        if path.suffix.lower() == ".zip":
            from coterie_pages.pages import page

            write_whole(archive(opened, status, made, page(made), log), path)
        else:
            write_page(made, path)
    state = ": ".join(filter(None, (made.state, made.reason)))
    audited = f"{len(made.audit)} lines in the audit"
    written = [f"{path} is written" for path in outs]
    return Output(made, chain(report_summary(made, state), [audited], written))

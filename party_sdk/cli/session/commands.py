"""`coterie session …`: watch, change and end sessions."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import click

from clustering_protocols.wire.states import (
    OVER,
    SessionState,
    SlotState,
    summarise_stop,
)
from party_sdk.cli.options import (
    OUT,
    Force,
    Mail,
    MaybeSessionName,
    Remove,
    SessionName,
    Yes,
    home_option,
    key_option,
    read_moment_option,
    url_option,
)
from party_sdk.cli.parameters import command, option
from party_sdk.cli.session.create import Invitations, create
from party_sdk.cli.terminal.output import (
    Output,
    align_columns,
    audit_lines,
    change_receivers,
    print_outage,
    print_silence,
    progress_line,
    receiver_lines,
    report_lines,
    roster_document,
    roster_lines,
    say,
    show_progress,
)
from party_sdk.cli.terminal.result_lines import (
    outcome_lines,
    profile_lines,
    profiles_as_json,
    report_summary_lines,
    run_table_lines,
    write_page,
)
from party_sdk.coordinator.letters import prepare_letter_folder, write_letters
from party_sdk.home.files import read_secret_variable
from party_sdk.results.output_files import refuse_overwriting, write_atomically

if TYPE_CHECKING:
    from clustering_protocols.records.record import Record
    from clustering_protocols.wire.answers import SessionLine, SessionStatus
    from party_sdk.coordinator.coordinator import Coordinator


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

    def open_coordinator() -> "Coordinator":
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
            listeners=Listeners(on_outage=print_outage, on_silence=print_silence),
        )
        return ctx.with_resource(Coordinator(url, secret, home=home, analyst=analyst))

    ctx.obj = open_coordinator


session.add_command(create)


@command(session)
def invite(
    coordinator: "Coordinator",
    session: SessionName,
    *,
    slots: Annotated[
        tuple[str, ...],
        option(
            "A party to invite; may be repeated. By default all that have not joined yet.",
            "--party",
        ),
    ] = (),
    letters: Invitations = None,
    as_json: bool,
) -> Output:
    """Write new invitations; earlier invitations for the same slots become invalid."""
    opened = coordinator.session(session)
    folder, letters = letters, letters or Path()
    writes_letters = folder is not None or not as_json
    if writes_letters:  # before the earlier invitations become invalid
        invited = slots or [
            slot.name
            for slot in opened.status().slots
            if slot.state is not SlotState.JOINED
        ]
        prepare_letter_folder(letters, invited, opened.url, opened.terms)
    invitations = opened.invite(slots or None)
    if writes_letters:
        write_letters(letters, opened.terms, invitations)
    if not (invitations or as_json):
        say("No slot is free: all parties have joined.", err=True)
    lines = [f"{slot}  {letters / f'{slot}.invitation'}" for slot in invitations]
    return Output(invitations if folder is None else sorted(invitations), lines)


@command(session)
def show(
    coordinator: "Coordinator",
    session: SessionName,
    *,
    follow: Annotated[bool, option("Wait for the end of the session first.")] = False,
    mail: Mail = None,
    remove: Remove = None,
) -> Output:
    """Show the state of a session, and the parties it is waiting for.

    The analyst notifies --mail of slow parties, a pending choice and the end, if its
    administrator has set up mail. With --mail the notified addresses are printed.
    """
    from coterie_pages.views.session_views import outcomes_in
    from party_sdk.reports.session_reports import summary_document

    opened = coordinator.session(session)
    if mail or remove:
        return change_receivers(opened.receivers, mail, remove)
    status = opened.wait(show_progress) if follow else opened.status()
    roster = opened.roster() if status.all_joined and opened.is_ours else None
    profiles = opened.profiles()
    outcomes = outcomes_in(opened.terms, profiles) if opened.is_ours else ()
    if status.all_joined and not opened.is_ours:
        say(
            "Members and result are shown only where the session was opened, because "
            "only that machine can verify them.",
            err=True,
        )
    is_checked = status.state == SessionState.COMPLETED and opened.is_ours
    summary = opened.summary() if is_checked else None
    members = {} if roster is None else roster_document(roster)
    document = status.model_dump(mode="json") | members
    document |= profiles_as_json(profiles, outcomes)
    if summary is not None:
        document["result"] = summary_document(summary)
    notified = opened.receivers.list()
    document["receivers"] = [
        receiver.model_dump(mode="json") for receiver in notified.receivers
    ]
    lines = chain(
        status_lines(status),
        profile_lines(profiles),
        outcome_lines(outcomes),
        () if roster is None else roster_lines(roster),
        () if summary is None else result_summary_lines(summary),
        receiver_lines(notified),
    )
    return Output(document, lines)


@command(session)
def choose(
    coordinator: "Coordinator",
    session: SessionName,
    *,
    n_clusters: Annotated[
        int,
        option(
            "Number of clusters of the run that gives labels; 'session show' prints all runs.",
            low=1,
        ),
    ],
    yes: Yes = False,
) -> Output:
    """Choose the run whose labels the parties get.

    This is only possible if the session was created with --choose later. The choice is
    final, so you are asked to confirm it at a terminal.
    """
    if not yes and sys.stdin.isatty():
        for line in status_lines(coordinator.session(session).status()):
            say(line)
        question = f"{n_clusters} clusters, for good?"
        if not click.confirm(question, err=True):
            raise click.Abort
    status = coordinator.session(session).choose(n_clusters)
    return Output(status, [progress_line(status)])


@command(session)
def audit(
    coordinator: "Coordinator",
    session: SessionName,
) -> Output:
    """Print and check a session's audit.

    The audit records who sent or received which digest, and when. The command fails if
    a line was changed. With --json the audit is signed by the analyst, so that somebody
    else can check the file. 'coterie verify' does so, and compares it with the receipts
    of parties.
    """
    log = coordinator.session(session).audit()
    return Output(log, audit_lines(log.verified_entries()))


@command(session)
def extend(
    coordinator: "Coordinator",
    session: SessionName,
    *,
    days: Annotated[
        float,
        option(
            "Additional days; .5 is twelve hours.",
            type=click.FloatRange(0, 366, min_open=True),
        ),
    ],
) -> Output:
    """Extend the deadline of the parties that have not answered yet."""
    status = coordinator.session(session).extend(86_400 * days)
    return Output(status, [progress_line(status)])


@command(session)
def cancel(
    coordinator: "Coordinator",
    session: SessionName,
    *,
    reason: Annotated[str, option("The reason, in one line.")] = "",
) -> Output:
    """End a session. The parties can read the reason."""
    status = coordinator.session(session).cancel(reason)
    return Output(status, [progress_line(status)])


def result_summary_lines(summary: "Record") -> Iterator[str]:
    """Yield the coordinator's part of the result: scalars and one-dimensional arrays."""
    yield from report_lines(summary.values, separator=" ")
    for name, array in summary.arrays.items():
        if array.ndim == 1:
            yield f"{name} {', '.join(map(str, array.tolist()))}"


def status_lines(status: "SessionStatus") -> Iterator[str]:
    """Yield the state of a session, the state of each slot, and the runs."""
    yield f"{status.title or status.id}: {status.protocol}"
    yield progress_line(status)
    for slot in status.slots:
        if slot.joined_at:
            seat = f"{slot.n_rows} rows"
        elif slot.state is SlotState.INVITED:
            seat = "has not joined"
        else:
            seat = f"has {slot.state}" + (f": {slot.reason}" if slot.reason else "")
        if slot.stopped is not None:
            seat += f", {summarise_stop(slot.stopped)}"
        waits = slot.awaited and slot.stopped is None
        wait = f"; waiting since {status.waiting_since:%H:%M:%S} UTC" * waits
        yield f"  {slot.name}: {seat}{wait}"
    yield from run_table_lines(status.runs)
    if status.state is SessionState.CHOOSING:
        from coterie_pages.result_texts import suggest_run

        if (run := suggest_run(status.runs)) is not None:
            reasons = " ".join([f"{run.reason}.", *run.doubts])
            yield f"suggested: {run.n_clusters} clusters, {reasons}"


_MAX_NAMES: Final = 3
_HEADER: Final = ("SESSION", "STATE", "ROUND", "METHOD", "OWNER", "WAITING FOR")
_TIMES: Final = ("SINCE (UTC)", "OPENED (UTC)", "TITLE")


@command(session, "list")
def list_sessions(
    coordinator: "Coordinator",
    *,
    state: Annotated[
        str | None,
        option(
            "Only sessions in this state; open: not ended, over: ended.",
            type=click.Choice(
                [
                    "open",
                    "over",
                    *(session_state.value for session_state in SessionState),
                ]
            ),
        ),
    ] = None,
    owner: Annotated[str, option("Only of this owner: the label or id of a key.")] = "",
    since: Annotated[
        datetime | None,
        option("Only changed since: 2026-11-01, 3d, 12h.", callback=read_moment_option),
    ] = None,
    limit: Annotated[int | None, option("At most this many.", low=1)] = None,
) -> Output:
    """List the sessions of this key, most recently changed first.

    With an administrator's key, the sessions of all owners are listed.
    """
    sessions = coordinator.sessions(limit, state=state or "", owner=owner, since=since)
    if not sessions:
        is_filtered = any((state, owner, since))
        message = (
            "No session found." if is_filtered else "There are no sessions of this key."
        )
        say(message, err=True)
    rows = [[*_HEADER, *_TIMES], *map(_session_cells, sessions)] if sessions else []
    document = [line.model_dump(mode="json") for line in sessions]
    return Output(document, align_columns(rows) if rows else ())


@command(session)
def delete(
    coordinator: "Coordinator",
    session: MaybeSessionName = None,
    *,
    ended_before: Annotated[
        datetime | None,
        option(
            "All sessions that ended before a time, instead of one: 2026-11-01, 90d.",
            callback=read_moment_option,
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Delete a session, except for its audit.

    A session that is still open is cancelled first. Its id cannot be used again.
    """
    if (session is None) == (ended_before is None):
        raise click.UsageError("Give the id of a session, or --ended-before.")
    if ended_before is None:
        ids = [session or ""]
        question = "Delete the results and everything else except the audit"
    else:
        ids = [
            line.id
            for line in coordinator.sessions(state="over", before=ended_before)
            if line.state in OVER
            and line.waiting_since
            and line.waiting_since < ended_before
        ]
        question = f"Delete everything except the audit of {len(ids)} ended sessions"
    if not ids:
        say("No session ended before then.", err=True)
        return
    if not yes:
        click.confirm(f"{question}?", abort=True)
    for session_id in ids:
        coordinator.session(session_id).delete()
    if ended_before is not None:
        say(f"Deleted {len(ids)} sessions.", err=True)


def _session_cells(line: "SessionLine") -> list[str]:
    waiting_for = ", ".join(line.awaited[:_MAX_NAMES])
    if (more := len(line.awaited) - _MAX_NAMES) > 0:
        waiting_for += f" and {more} more"
    elif not line.awaited and line.state is SessionState.CHOOSING:
        waiting_for = "the choice"
    return [
        line.id,
        line.state.value,
        str(line.round or ""),
        line.protocol,
        line.owner,
        waiting_for,
        "" if line.waiting_since is None else _format_minute(line.waiting_since),
        _format_minute(line.created_at),
        line.title,
    ]


def _format_minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


@command(session)
def report(
    coordinator: "Coordinator",
    session: SessionName,
    *,
    out: Annotated[
        tuple[Path, ...],
        option(
            "Write a file. .html: the report as a page. .zip: all that you may read "
            "about the session: the exact texts of terms and agreement, its state, the "
            "result, the signed audit and the report; no secret. May be repeated.",
            type=OUT,
        ),
    ] = (),
    force: Force = False,
) -> Output:
    """Write a report on the result of a session, as a page or an archive.

    The report contains the terms, members, figures, sizes and the audit, all verified.
    Terms, members and result are included only on the machine that opened the session,
    because no other machine can verify them.
    """
    from party_sdk.reports.session_reports import archive, audited_report

    refuse_overwriting(out, None, force=force)
    opened = coordinator.session(session)
    status = opened.status()
    session_report, log = audited_report(coordinator, opened, status)
    for path in out:
        if path.suffix.lower() == ".zip":
            from coterie_pages.pages import render_html

            write_atomically(
                archive(
                    opened, status, session_report, render_html(session_report), log
                ),
                path,
            )
        else:
            write_page(session_report, path)
    state = ": ".join(filter(None, (session_report.state, session_report.reason)))
    audit_line = f"{len(session_report.audit)} lines in the audit"
    file_lines = [f"{path} is written" for path in out]
    return Output(
        session_report,
        chain(report_summary_lines(session_report, state), [audit_line], file_lines),
    )

"""`coterie session …`: what a coordinator does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from clustering_protocols.wire.states import SessionState
from party_sdk.cli.connecting import pass_coordinator
from party_sdk.cli.evaluating import choose_option, choose_within_option
from party_sdk.cli.options import (
    SEED,
    ca_option,
    column_groups_option,
    entropy_option,
    home_option,
    http_option,
    key_option,
    param_option,
    read_entropy,
    read_values,
    row_groups_option,
    url_option,
)
from party_sdk.cli.output import (
    audit_line,
    json_option,
    progress_line,
    roster_document,
    roster_lines,
    say,
    show_progress,
)
from party_sdk.cli.preparing import missing_option, preparation_option
from party_sdk.cli.releasing import (
    Readers,
    documents,
    profile_lines,
    profile_rows_option,
    profiles_option,
    read_release,
)
from party_sdk.cli.runs import rounds_line
from party_sdk.cli.session_pages import export, report
from party_sdk.cli.session_values import (
    read_about,
    read_deadlines,
    read_dictionary,
    read_expected,
    read_layout,
    read_preparation,
)
from party_sdk.cli.standing import result_document, show_status, show_summary
from party_sdk.trials.runs import read_runs

if TYPE_CHECKING:
    from party_sdk.coordinator import Coordinator

_SECONDS = click.IntRange(1, 366 * 86_400)


@click.group()
@url_option
@key_option
@home_option
@ca_option
@http_option
@click.pass_context
def session(
    ctx: click.Context,
    url: str | None,
    key: str | None,
    home: Path | None,
    ca_file: Path | None,
    *,
    allow_http: bool,
) -> None:
    """Open, watch and end sessions (for the coordinator)."""

    def connect() -> Coordinator:
        from party_sdk._transport import Transport
        from party_sdk.coordinator import Coordinator

        if url is None or key is None:
            raise click.UsageError("Missing option '--url' or '--key'.", ctx)
        transport = Transport(url, ca_file=ca_file, allow_http=allow_http, patience=30)
        return ctx.with_resource(Coordinator(url, key, home=home, transport=transport))

    ctx.obj = connect


session.add_command(report)
session.add_command(export)


@session.command()
@click.argument("title")
@click.option(
    "--protocol",
    default="dc",
    show_default=True,
    help="Name of a protocol, e.g. llf; see 'coterie advise'.",
)
@param_option
@row_groups_option(default=1)
@column_groups_option
@click.option(
    "--slot",
    "slots",
    multiple=True,
    metavar="NAME=ROW,COLUMN[,TITLE]",
    help="A named party and its place, counted from 1; instead of the two above. "
    "Places may stay empty. The title says who it is, for people.",
)
@click.option(
    "--expect",
    "expected",
    multiple=True,
    metavar="SLOT=CARD",
    help="Who alone may sit at a slot: the file of a card, or the name of an institution "
    "that you know. Slots without one are open to whoever holds their invitation.",
)
@click.option("--purpose", default="", help="What the labels are for, for people.")
@click.option(
    "--legal-basis", default="", help="What allows the session, e.g. a contract."
)
@click.option("--contact", default="", help="Whom parties may ask.")
@click.option(
    "--id", "session_id", help="Id of the session; made from the title by default."
)
@click.option(
    "--seed", type=SEED, help="Seed of the analyst's random starts; drawn by default."
)
@click.option(
    "--join-within",
    type=_SECONDS,
    help="Seconds that parties have to join; a week by default.",
)
@click.option(
    "--answer-within",
    type=_SECONDS,
    help="Seconds that parties have to answer in each round; a day by default.",
)
@click.option(
    "--minimum-rows",
    type=click.IntRange(1),
    help="Fewest rows that each party must have; 10 by default.",
)
@click.option(
    "--schema",
    "schema_files",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The data dictionary of the columns, which parties then find by name; once for "
    "each column group, in their order.",
)
@preparation_option(several=True)
@missing_option
@choose_option
@choose_within_option
@profiles_option
@profile_rows_option
@click.option(
    "--new-analyst",
    is_flag=True,
    help="The analyst at this address was set up anew and has another key.",
)
@entropy_option
@json_option
@pass_coordinator
def create(
    coordinator: Coordinator,
    title: str,
    protocol: str,
    params: tuple[str, ...],
    row_groups: int,
    column_groups: int,
    slots: tuple[str, ...],
    expected: tuple[str, ...],
    purpose: str,
    legal_basis: str,
    contact: str,
    session_id: str | None,
    seed: int | None,
    join_within: int | None,
    answer_within: int | None,
    minimum_rows: int | None,
    schema_files: tuple[Path, ...],
    preparation_files: tuple[Path, ...],
    missing: Literal["drop", "mean", "median"] | None,
    choose: str | None,
    choose_within: int | None,
    profiles: Readers | None,
    profile_rows: int | None,
    entropy_file: Path | None,
    *,
    new_analyst: bool,
    as_json: bool,
) -> None:
    """Open a session and print its id and one invitation per party.

    Hand each invitation to its party on a channel that the analyst cannot read.
    """
    from clustering_protocols import registry
    from clustering_protocols.terms import Guards, Layout

    words = {"purpose": purpose, "legal_basis": legal_basis, "contact": contact}
    coordinator.entropy = read_entropy(entropy_file)
    dictionary = read_dictionary(schema_files)
    values, runs = read_runs(read_values(params), choose, choose_within)
    agreed = registry.parse_params(protocol, values)
    layout = read_layout(slots) if slots else Layout.lattice(row_groups, column_groups)
    if runs is not None and not as_json:
        known = registry.protocol(protocol)
        say(rounds_line(known, agreed, layout, runs), err=True)
    opened = coordinator.create_session(
        read_about({"title": title, **words}),
        agreed,
        layout,
        session_id=session_id,
        seed=seed,
        deadlines=read_deadlines(join_within, answer_within),
        guards=None if minimum_rows is None else Guards(minimum_rows=minimum_rows),
        expected=read_expected(expected, coordinator.acquaintances),
        dictionary=dictionary,
        preparation=read_preparation(preparation_files, missing, dictionary),
        evaluation=runs,
        release=read_release(profiles, profile_rows),
        new_analyst=new_analyst,
    )
    invitations = opened.invite()
    risks = opened.status().risks
    if as_json:
        document = {"id": opened.id, "invitations": invitations, "risks": risks}
        say(json.dumps(document))
        return
    say(f"session {opened.id}")
    for slot, invitation in invitations.items():
        say(f"{slot}  {invitation}")
    for code in risks:
        say(f"Each party has to accept the risk {code}.", err=True)


@session.command()
@click.argument("session_id")
@click.option(
    "--slot",
    "slots",
    multiple=True,
    help="Slot to invite; may be given several times. By default every free one.",
)
@json_option
@pass_coordinator
def invite(
    coordinator: Coordinator, session_id: str, slots: tuple[str, ...], *, as_json: bool
) -> None:
    """Make new invitations; earlier ones of the same slots end."""
    invitations = coordinator.session(session_id).invite(slots or None)
    if as_json:
        say(json.dumps(invitations))
        return
    if not invitations:
        say("No slot is free: all parties have joined.", err=True)
    for slot, invitation in invitations.items():
        say(f"{slot}  {invitation}")


@session.command("list")
@json_option
@pass_coordinator
def list_sessions(coordinator: Coordinator, *, as_json: bool) -> None:
    """List the sessions of this key."""
    found = coordinator.sessions()
    if as_json:
        say(json.dumps([line.model_dump(mode="json") for line in found]))
        return
    for line in found:
        say(f"{line.id}  {line.state}  {line.title}")


@session.command()
@click.argument("session_id")
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    help="Of several runs: write their figures over the number of clusters (png, svg or "
    "pdf).",
)
@json_option
@pass_coordinator
def show(
    coordinator: Coordinator, session_id: str, picture: Path | None, *, as_json: bool
) -> None:
    """Say where a session stands and who is awaited."""
    opened = coordinator.session(session_id)
    status = opened.status()
    if picture is not None:
        from party_sdk.cli.runs_picture import draw

        draw(status.runs, picture)
    roster = opened.roster() if status.all_joined and opened.is_ours else None
    if as_json:
        members = {} if roster is None else roster_document(roster)
        told = {"profiles": documents(opened.profiles())}
        told |= result_document(opened, status)
        say(json.dumps(status.model_dump(mode="json") | members | told))
        return
    show_status(status)
    for line in profile_lines(opened.profiles()):
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
@click.argument("session_id")
@click.option(
    "--n-clusters",
    type=click.IntRange(1),
    required=True,
    help="Of the run whose labels parties shall get; 'session show' prints all runs.",
)
@json_option
@pass_coordinator
def choose(
    coordinator: Coordinator, session_id: str, n_clusters: int, *, as_json: bool
) -> None:
    """Choose the run whose labels parties get.

    Of a session that was created with --choose later.
    """
    status = coordinator.session(session_id).choose(n_clusters)
    say(status.model_dump_json() if as_json else progress_line(status))


@session.command()
@click.argument("session_id")
@json_option
@pass_coordinator
def watch(coordinator: Coordinator, session_id: str, *, as_json: bool) -> None:
    """Follow a session to its end."""
    status = coordinator.session(session_id).wait(show_progress)
    if as_json:
        say(status.model_dump_json())


@session.command()
@click.argument("session_id")
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
    from clustering_protocols.proofs import SignedLog, compare

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
@click.argument("session_id")
@json_option
@pass_coordinator
def cancel(coordinator: Coordinator, session_id: str, *, as_json: bool) -> None:
    """End a session; parties learn it at their next request."""
    status = coordinator.session(session_id).cancel()
    say(status.model_dump_json() if as_json else progress_line(status))


@session.command()
@click.argument("session_id")
@click.confirmation_option(prompt="Delete results and all else but the audit?")
@pass_coordinator
def delete(coordinator: Coordinator, session_id: str) -> None:
    """Remove all of a session but its audit.

    A session that runs is cancelled first. The id is never free again.
    """
    coordinator.session(session_id).delete()

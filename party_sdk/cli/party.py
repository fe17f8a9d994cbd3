"""`coterie party …`: what a party operator does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.completing import session_argument, slot_argument
from party_sdk.cli.consent import consent, next_command, remember_consent, sheet_for
from party_sdk.cli.invited import invitation_argument, typed_invitation
from party_sdk.cli.notify import notify_option
from party_sdk.cli.output import (
    json_option,
    report_lines,
    say,
    show_notes,
    show_progress,
)
from party_sdk.cli.outputs import labels_option, picture_option
from party_sdk.cli.party_home import audit, forget, list_parties, status
from party_sdk.cli.party_notify import notify_party
from party_sdk.cli.party_options import PartyOptions, here_options
from party_sdk.cli.party_pages import report, terms
from party_sdk.cli.policy_options import choice_option, policy_options, remember_option
from party_sdk.cli.previewing import show_quota, show_risks
from party_sdk.cli.rehearse import rehearse
from party_sdk.cli.releasing import documents, profile_lines
from party_sdk.cli.stepping import step
from party_sdk.cli.supervising import answer, order, serve, withdraw
from party_sdk.cli.table import INPUT_UNUSABLE, show_report
from party_sdk.cli.table_options import data_options
from party_sdk.outputs import keep_others, remembered
from party_sdk.own_share import oddities
from party_sdk.policy import Policy

if TYPE_CHECKING:
    from party_sdk.cli.table_options import GivenTable
    from party_sdk.participant import Party
    from party_sdk.results import Result


_INTERRUPTED = 130  # as shells say it

_notify_option = notify_option("when it is your turn, and how it ends")
confirm_option = click.option(
    "--confirm",
    is_flag=True,
    help="Show each contribution and ask before it is sent. A no stands until you are "
    "asked again.",
)


@click.group()
def party() -> None:
    """Join with an invitation and run to the labels (for a party)."""


@party.command()
@invitation_argument
@policy_options
@remember_option
@_notify_option
@here_options(invited=True)
@json_option
def join(
    invitation: str,
    policy: Policy,
    here: PartyOptions,
    *,
    addresses: tuple[str, ...],
    remember: bool,
    as_json: bool,
) -> None:
    """Read what an invitation is for, and accept its risks.

    Shows the terms sheet ('party terms'), then asks for each risk by its name; without a
    terminal it prints the command that accepts them. What is accepted here holds for
    'run' and 'resume'. Nothing of your data is read or sent.
    """
    from clustering_protocols.secrecy.identities import fingerprint
    from coterie_pages.text import sheet_lines

    sheet = sheet_for(invitation, here)
    if not as_json:
        for line in sheet_lines(sheet):
            say(line)
    with here.join(invitation, consent(invitation, policy, here)) as member:
        if addresses:
            member.notify(addresses)
        agreed, slot = member.terms, member.invitation.slot
        own = member.identity
    if remember:
        remember_consent(member, here.home)
    if as_json:
        say(agreed.model_dump_json())
        return
    say(f"you are {own.name or 'without a name'}: {fingerprint(own.key)}")
    for address in addresses:
        say(f"{address} is told once you run with your data.", err=True)
    show_quota(member, policy)
    typed = typed_invitation()
    say(f"Next: {next_command(typed, agreed.session, slot, here.words)}", err=True)


for _command in (terms, report, list_parties, status, audit, notify_party, forget):
    party.add_command(_command)
for _command in (rehearse, order, serve, answer, withdraw, step):
    party.add_command(_command)


@party.command()
@invitation_argument
@data_options
@labels_option
@picture_option
@policy_options
@remember_option
@choice_option
@confirm_option
@_notify_option
@here_options(invited=True, sends=True)
@json_option
def run(
    invitation: str,
    rows: GivenTable,
    labels: Path,
    picture: Path | None,
    policy: Policy,
    choices: Mapping[str, Any],
    here: PartyOptions,
    *,
    addresses: tuple[str, ...],
    force: bool,
    confirm: bool,
    remember: bool,
    as_json: bool,
) -> None:
    """Take part until there are labels. Interrupted, run it again: it goes on.

    INVITATION may be @FILE, or - for standard input: command lines can be read by other
    users of this machine.
    """
    policy = consent(invitation, policy, here)
    asked = here.asking(invitation, everything=confirm)
    with here.join(invitation, policy, choices, asked) as member:
        if addresses:
            member.notify(addresses)
        if remember:
            remember_consent(member, here.home)
        _run(member, rows, labels, picture, force=force, as_json=as_json)


@party.command()
@invitation_argument
@data_options
@here_options(invited=True)
@json_option
@click.pass_context
def check(
    context: click.Context,
    invitation: str,
    rows: GivenTable,
    here: PartyOptions,
    *,
    as_json: bool,
) -> None:
    """Check your table against the terms of a session, without joining.

    Nothing is sent but the question what the invitation is for. Ends with 5 if there are
    problems, each with its line.
    """
    report = rows.checked(*here.offered(invitation))
    show_report(report, as_json=as_json)
    if report.problems:
        context.exit(INPUT_UNUSABLE)


@party.command()
@invitation_argument
@click.option("--check", metavar="NAME", help="A check refused: its name.")
@click.option("--reason", default="", help="A line for the coordinator to read.")
@here_options()
def decline(
    invitation: str, check: str | None, reason: str, here: PartyOptions
) -> None:
    """Tell the coordinator that you do not join.

    With the same invitation you may still join later. Nothing of your data is read.
    """
    if check and reason:
        raise click.UsageError("Give --check or --reason.")
    here.decline(invitation, check, reason)


@party.command()
@session_argument
@slot_argument
@click.option("--reason", default="", help="A line for the coordinator to read.")
@here_options()
def leave(session_id: str, slot: str, reason: str, here: PartyOptions) -> None:
    """Stop taking part, for good: nothing more is sent.

    Before you have run with your data the coordinator is told that you decline, and why.
    Afterwards the others wait for you: ask the coordinator to cancel the session.
    """
    if here.leave(session_id, slot, reason):
        say("You left. The coordinator reads that you decline.", err=True)
        return
    say("You left: nothing more is sent from here. What was sent stays sent.", err=True)
    say(
        "The others wait for you until the deadline: ask the coordinator to cancel the "
        f"session (coterie session cancel {session_id}).",
        err=True,
    )


@party.command()
@session_argument
@slot_argument
@data_options
@labels_option
@picture_option
@policy_options
@remember_option
@choice_option
@confirm_option
@here_options(sends=True)
@json_option
def resume(
    session_id: str,
    slot: str,
    rows: GivenTable,
    labels: Path,
    picture: Path | None,
    policy: Policy,
    choices: Mapping[str, Any],
    here: PartyOptions,
    *,
    force: bool,
    confirm: bool,
    remember: bool,
    as_json: bool,
) -> None:
    """Go on from what is kept on this disk, without the invitation.

    If you refused a contribution (--confirm), it is sent only once you say yes to it.
    """
    invitation = here.folder(session_id, slot).load_identity().invitation
    policy = consent(invitation, policy, here)
    asked = here.asking(invitation, everything=confirm)
    with here.rejoin(session_id, slot, policy, choices, asked) as member:
        if remember:
            remember_consent(member, here.home)
        _run(member, rows, labels, picture, force=force, as_json=as_json)


@party.command()
@session_argument
@slot_argument
@data_options
@here_options()
@json_option
def inspect(
    session_id: str, slot: str, rows: GivenTable, here: PartyOptions, *, as_json: bool
) -> None:
    """Show what the answer to the open task would hold. Nothing is sent."""
    with here.rejoin(session_id, slot, Policy()) as member:
        found = member.inspect(rows.open(member.agreed))
    if as_json:
        say(json.dumps(asdict(found)))
        return
    from party_sdk.cli.confirming import inspection_lines

    for line in inspection_lines(found, member.terms):
        say(line)
    show_notes(found.notes)
    show_risks(member)


@party.command()
@session_argument
@slot_argument
@data_options
@labels_option
@choice_option
@here_options()
@json_option
def predict(
    session_id: str,
    slot: str,
    rows: GivenTable,
    labels: Path,
    choices: Mapping[str, Any],
    here: PartyOptions,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Label new rows at home, where the terms let out what that takes.

    You are asked first where they look like other units than those of the session.
    """
    from clustering_protocols.registry import check_choices
    from party_sdk.cli.confirming import agreeing
    from party_sdk.results import naming_of, write_labels

    keep_others([labels], None, force=force)
    with here.rejoin(session_id, slot, Policy()) as member:
        check_choices(member.terms.protocol.name, choices)
        result = member.result()
        data = rows.open(member.agreed, result.columns)
        found = result.predict(data, agree=agreeing(choices))
    path = write_labels(labels, found, data.ids, naming_of(data), {})
    if as_json:
        say(json.dumps({"labels": str(path), "n_rows": len(found)}))
        return
    say(f"{len(found)} labels in {path}")


def _run(
    member: Party,
    rows: GivenTable,
    labels: Path,
    picture: Path | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    from party_sdk.id_patterns import id_warnings
    from party_sdk.result_cautions import result_cautions

    keep_others([labels, picture], member.folder.path, force=force)
    with member.arriving():
        data = rows.open(member.agreed)
    for sentence in id_warnings(member.terms, member.invitation.slot, data):
        say(f"warning: {sentence}", err=True)
    try:
        result = member.run(data, on_progress=show_progress)
    except KeyboardInterrupt:
        say("Stopped. The same command goes on where it was.", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    with remembered([labels, picture], member.folder.path):
        path = result.save(labels)
        if picture is not None:
            from party_sdk.plots import draw

            shown, found = member.clustered(data, result.labels)
            given = replace(result, labels=found)
            blocks = result.item_memberships is not None
            units = None if blocks else member.units(shown)
            draw(shown, given, picture, units=units)
            say(f"a picture in {picture}", err=True)
    if as_json:
        say(json.dumps(_document(member, result, path)))
        return
    from party_sdk.run_reports import linked_rows

    if linked := linked_rows(member.terms, member.invitation.slot, result):
        say(f"linked rows: {linked}")
    say(f"{len(result.labels)} labels in {path}")
    if result.cluster_sizes is not None:
        own, sizes = result.own_sizes.tolist(), result.cluster_sizes.tolist()
        all_, yours = (", ".join(map(str, each)) for each in (sizes, own))
        say(f"rows of all parties per cluster: {all_}; yours: {yours}")
        for sentence in oddities(own, sizes):
            say(f"warning: {sentence}", err=True)
    for sentence in result_cautions(member.terms, result):
        say(f"warning: {sentence}", err=True)
    told = {k: v for k, v in result.report.items() if k != "n_coinciding"}
    for line in report_lines(told):
        say(line)
    for line in chain(_runs_of(member, result), profile_lines(result.profiles)):
        say(line)
    for cluster, items in enumerate(result.top_items(data.columns)):
        say(f"cluster {cluster}: {', '.join(items)}")


def _runs_of(member: Party, result: Result) -> Iterator[str]:
    from party_sdk.cli.runs import table_lines
    from party_sdk.run_reports import numbers_of

    figures = [each.values for each in result.figures]
    return table_lines(numbers_of(member.terms, result), figures, result.chosen)


def _document(member: Party, result: Result, path: Path) -> dict[str, Any]:
    """Return the whole result but the labels, which stay in their file."""
    from party_sdk.run_reports import runs_of

    sizes, centroids = result.cluster_sizes, result.centroids
    return {
        "session": member.terms.session,
        "slot": member.invitation.slot,
        "labels": str(path),
        "n_rows": len(result.labels),
        "columns": list(result.columns),
        "cluster_sizes": None if sizes is None else sizes.tolist(),
        "own_sizes": result.own_sizes.tolist(),
        "centroids": None if centroids is None else centroids.tolist(),
        "runs": [
            {**run.figures, "n_clusters": run.n_clusters, "chosen": run.chosen}
            for run in runs_of(member.terms, result)
        ],
        "profiles": documents(result.profiles),
        "report": dict(result.report),
        "safety_number": member.safety_number,
    }

"""`coterie party …`: what a party operator does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.wire.states import StopReason
from party_sdk.cli.options.completion import (
    optional_slot_argument,
    session_argument,
    slot_argument,
)
from party_sdk.cli.options.invitation import (
    invitation_argument,
    invited_argument,
    typed_invitation,
)
from party_sdk.cli.options.policy import choice_option, policy_options, remember_option
from party_sdk.cli.options.tables import data_options, mapping_option
from party_sdk.cli.party.consent import asks_of, next_command, remember_consent
from party_sdk.cli.party.exports import export, name
from party_sdk.cli.party.home import audit, consent, forget, list_parties, status
from party_sdk.cli.party.new_rows import predict
from party_sdk.cli.party.notify import notify_party
from party_sdk.cli.party.pages import report, terms
from party_sdk.cli.party.party_options import here_options, option_words
from party_sdk.cli.party.preview import show_quota, show_risks
from party_sdk.cli.party.rehearse import rehearse
from party_sdk.cli.party.run_results import take_part
from party_sdk.cli.party.runs import runs
from party_sdk.cli.session.notify import notify_option
from party_sdk.cli.table import INPUT_UNUSABLE, show_report
from party_sdk.cli.terminal.output import json_option, say, show_notes
from party_sdk.cli.terminal.output_files import labels_option, picture_option
from party_sdk.home.policy import Policy

if TYPE_CHECKING:
    from party_sdk.application.home import Home
    from party_sdk.cli.options.tables import GivenTable
    from party_sdk.tables.mapping import TableMapping


_INTERRUPTED = 130  # as shells say it

_notify_option = notify_option("your turn")
confirm_option = click.option(
    "--confirm",
    is_flag=True,
    help="Ask once for each kind of contribution, also for what nobody can read alone. "
    "By default a terminal asks for what somebody can read. A no stands until you are "
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
@mapping_option
@here_options(joins=True, maps=True)
@json_option
def join(
    invitation: str,
    policy: Policy,
    here: Home,
    *,
    addresses: tuple[str, ...],
    mapping: TableMapping | None,
    remember: bool,
    as_json: bool,
) -> None:
    """Read what an invitation is for, and accept its risks.

    Shows the terms sheet ('party terms'), then asks for each risk by its name; without a
    terminal it prints the command that accepts them. What is accepted here holds for
    'run'. Nothing of your data is read or sent.
    """
    from clustering_protocols.secrecy.identities import fingerprint
    from coterie_pages.terminal_text import sheet_lines
    from party_sdk.cli.terminal.asker import TerminalAsker

    sheet = here.sheet(here.offer(invitation))
    if not as_json:
        for line in sheet_lines(sheet):
            say(line)
    here = replace(here, asker=TerminalAsker(has_shown_terms=not as_json))
    with here.join(invitation, here.accept(invitation, policy)) as member:
        if addresses:
            member.notify(addresses)
        if mapping is not None:
            here.keep_mapping(member, mapping)
            say("The mapping is kept: later commands read your table by it.", err=True)
        agreed, own = member.terms, member.identity
    if remember:
        remember_consent(member, here.path)
    if as_json:
        say(agreed.model_dump_json())
        return
    say(f"you are {own.name or 'without a name'}: {fingerprint(own.key)}")
    for address in addresses:
        say(f"{address} is notified once you have run with your data.", err=True)
    show_quota(member, policy)
    following = next_command(typed_invitation(), member, policy, option_words(here))
    say(f"Next: {following}", err=True)


for _command in (
    name,
    runs,
    terms,
    report,
    list_parties,
    status,
    audit,
    consent,
    notify_party,
    forget,
):
    party.add_command(_command)
for _command in (rehearse, predict, export):
    party.add_command(_command)


@party.command()
@invited_argument
@optional_slot_argument
@data_options
@labels_option
@picture_option
@policy_options
@remember_option
@choice_option
@confirm_option
@_notify_option
@here_options(joins=True, sends=True, maps=True)
@json_option
def run(
    session: str,
    slot: str | None,
    rows: GivenTable,
    labels: Path,
    picture: Path | None,
    policy: Policy,
    choices: Mapping[str, Any],
    here: Home,
    *,
    addresses: tuple[str, ...],
    force: bool,
    confirm: bool,
    remember: bool,
    as_json: bool,
) -> None:
    """Take part until there are labels. Interrupted, run it again: it continues.

    SESSION is your invitation: @FILE, or - for standard input, because other users of
    this machine can read command lines. Once you have joined, the names of session and
    SLOT continue without it. What you refused is sent only once you say yes to it.
    """
    folder = None if slot is None else here.folder(session, slot)
    invitation = session if folder is None else folder.load_identity().invitation
    policy = here.accept(invitation, policy)
    with here.join(
        invitation, policy, choices, asks=asks_of(confirm=confirm)
    ) as member:
        if addresses:
            member.notify(addresses)
        if remember:
            remember_consent(member, here.path)
        take_part(here, member, rows, labels, picture, force=force, as_json=as_json)


@party.command()
@invitation_argument
@data_options
@here_options()
@json_option
@click.pass_context
def check(
    context: click.Context,
    invitation: str,
    rows: GivenTable,
    here: Home,
    *,
    as_json: bool,
) -> None:
    """Check your table against terms, without joining.

    Nothing is sent but the question what the invitation is for. Ends with 5 if there are
    problems, each with its line.
    """
    offer = here.offer(invitation)
    folder = here.folder(offer.terms.session, offer.invitation.slot)
    rows = here.map_rows(folder, rows)
    report = rows.check_table(offer.terms, offer.invitation.slot)
    show_report(report, as_json=as_json)
    if report.problems:
        context.exit(INPUT_UNUSABLE)


@party.command()
@invitation_argument
@click.option("--check", metavar="NAME", help="A check refused: its name.")
@click.option("--reason", default="", help="A line for the coordinator to read.")
@here_options()
def decline(invitation: str, check: str | None, reason: str, here: Home) -> None:
    """Tell the coordinator that you do not join.

    With the same invitation you may still join later. Nothing of your data is read.
    """
    if check and reason:
        raise click.UsageError("Give --check or --reason.")
    here.decline(invitation, reason, check)
    said = reason or (f"the check {check} refuses" if check else "you give no reason")
    say(f"You declined. The coordinator reads: {said}.", err=True)


@party.command()
@session_argument
@slot_argument
@click.option("--reason", default="", help="A line for the coordinator to read.")
@click.option(
    "--because",
    type=click.Choice([each.value for each in StopReason]),
    default=StopReason.LEFT.value,
    show_default=True,
    help="The one word that all others read, once you have run with your data.",
)
@here_options()
def leave(session_id: str, slot: str, reason: str, because: str, here: Home) -> None:
    """Stop taking part, for good: nothing more is sent.

    Before you have run with your data, the coordinator reads that you decline, and why.
    Afterwards all read that you stopped, and one word why. The session ends, or
    continues without you where its terms allow that.
    """
    had_joined = here.folder(session_id, slot).has_joined
    is_told = here.leave(session_id, slot, reason, StopReason(because))
    if is_told and not had_joined:
        say("You left. The coordinator reads that you decline.", err=True)
        return
    say("You left: nothing more is sent from here. What was sent stays sent.", err=True)
    if is_told:
        say(f"The others read that you stopped for good ({because}).", err=True)
        return
    say(
        "The others wait for you until the deadline: ask the coordinator to cancel the "
        f"session (coterie session cancel {session_id}).",
        err=True,
    )


@party.command()
@session_argument
@slot_argument
@data_options
@here_options()
@json_option
def inspect(
    session_id: str, slot: str, rows: GivenTable, here: Home, *, as_json: bool
) -> None:
    """Show what the answer to the open task would hold. Nothing is sent."""
    with here.resume(session_id, slot, Policy()) as member:
        rows = here.map_rows(member.folder, rows)
        found = member.inspect(rows.open(member.slot_fields))
    if as_json:
        say(json.dumps(asdict(found)))
        return
    from party_sdk.cli.terminal.confirmation import inspection_lines

    for line in inspection_lines(found, member.terms):
        say(line)
    show_notes(found.notes)
    show_risks(member)

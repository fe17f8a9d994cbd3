"""`coterie party list, status, audit, forget`: what this home keeps of its sessions."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from party_sdk.cli.options.arguments import session_argument, slot_argument
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.terminal.output import (
    audit_line,
    json_option,
    roster_document,
    roster_lines,
    say,
)

if TYPE_CHECKING:
    from party_sdk.application.home import Home


@click.command("list")
@here_options()
@json_option
def list_parties(here: Home, *, as_json: bool) -> None:
    """List the sessions of this home, and what is next.

    Where each stands is what this disk tells; the analyst is not asked. Parties of the
    desk (coterie ui) are among them.
    """
    from party_sdk.cli.terminal.output import align_columns
    from party_sdk.supervisor.orders import all_parties

    found = list(all_parties(here.path))
    if as_json:
        say(json.dumps([asdict(each) for each in found]))
        return
    if not found:
        say(f"No session has been joined from {here.path}.", err=True)
        return
    heads = ("SESSION", "SLOT", "STATE", "NEXT")
    rows = [(each.session, each.slot, each.state, each.following) for each in found]
    for line in align_columns([heads, *rows]):
        say(line)


@click.command()
@session_argument
@slot_argument
@here_options()
@json_option
def status(session_id: str, slot: str, here: Home, *, as_json: bool) -> None:
    """Print who takes part, and the safety number to compare.

    Both come from what is kept on this disk, not from the analyst.
    """
    from clustering_protocols.common.errors import NotReady

    roster = here.roster(session_id, slot)
    if roster is None:
        raise NotReady("Not all have joined yet, or this party has not run since.")
    if as_json:
        agreement = here.find(session_id, slot).agreement or b""
        document = roster_document(roster) | {"agreement": agreement.decode()}
        say(json.dumps(document))
        return
    for line in roster_lines(roster):
        say(line)


@click.command()
@session_argument
@slot_argument
@click.option(
    "--withdraw",
    "withdraws",
    is_flag=True,
    help="Take your yes back. You are asked again before anything more is sent; the "
    "others wait until the deadline of the round.",
)
@here_options()
@json_option
def consent(
    session_id: str, slot: str, here: Home, *, withdraws: bool, as_json: bool
) -> None:
    """Print which sheet you accepted, and when."""
    from party_sdk.party.party_session import WITHDRAWN

    if withdraws:
        here.withdraw_consent(session_id, slot)
        say(WITHDRAWN, err=True)
    given = here.find(session_id, slot).consents.given
    if as_json:
        say("null" if given is None else given.model_dump_json())
        return
    if given is None:
        say("You accept nothing now.", err=True)
        return
    say(f"{given.at:%Y-%m-%d %H:%M}  the sheet with SHA-256 {given.sheet}")


@click.command()
@session_argument
@slot_argument
@here_options(signs=True)
@json_option
def audit(session_id: str, slot: str, here: Home, *, as_json: bool) -> None:
    """Print and check what this party sent.

    Each line is an upload or the analyst's receipt for one; the command fails if a line
    was changed. With --json it is signed by your institution: a file that somebody else
    can check (coterie verify).
    """
    folder = here.find(session_id, slot)
    entries = folder.ledger.read()
    if as_json:
        say(here.sign_log(folder).model_dump_json())
        return
    for entry in entries:
        say(audit_line(entry))
    say(f"The chain of {len(entries)} lines holds.", err=True)


@click.command()
@session_argument
@slot_argument
@here_options()
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="The log of what was sent and the report too.",
)
@click.confirmation_option(prompt="Delete memory, keys and token of this party?")
def forget(session_id: str, slot: str, here: Home, *, everything: bool) -> None:
    """Delete what is kept of a session here, secrets included.

    The log of what was sent and your report stay (party audit, party report).
    """
    from party_sdk.supervisor import PartyOrder

    folder = here.stored(session_id, slot)
    if not folder.exists and PartyOrder(here.path, session_id, slot).exists:
        folder.forget(everything=True)  # an order that never joined: nothing has left
        return
    here.forget(session_id, slot, everything=everything)

"""`coterie party status, audit, leave, forget`: what this home keeps of its sessions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.wire.states import StopReason
from party_sdk.cli.options.arguments import (
    invited_argument,
    optional_slot_argument,
    own_sessions,
    session_argument,
    slot_argument,
)
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.session.notify import address_options, change_receivers
from party_sdk.cli.terminal.output import (
    Output,
    align_columns,
    audit_lines,
    json_output,
    roster_document,
    roster_lines,
    say,
)

if TYPE_CHECKING:
    from party_sdk.application.home import Home
    from party_sdk.party.party_session import PartySession


@click.command()
@click.argument("session", required=False, shell_complete=own_sessions)
@optional_slot_argument
@click.option(
    "--withdraw",
    "withdraws",
    is_flag=True,
    help="Take your yes back. You are asked again before anything more is sent; the "
    "others wait until the deadline of the round.",
)
@address_options
@here_options()
@json_output
def status(
    session: str | None,
    slot: str | None,
    here: Home,
    *,
    withdraws: bool,
    **receivers: str | None,
) -> Output:
    """List the sessions of this home; of SESSION, who takes part and what you accepted.

    All of it comes from this disk, parties of the desk (coterie ui) too; the analyst is
    asked only where --mail or --remove says so. The safety number is for you to compare
    with the other members.
    """
    if session is None:
        return _list(here)
    folder = here.one_of(session, slot)
    if withdraws:
        from party_sdk.party.party_session import WITHDRAWN

        here.withdraw_consent(folder.session, folder.slot)
        say(WITHDRAWN, err=True)
    changes = {name: value for name, value in receivers.items() if value}
    if changes:
        with here.receivers(folder.session, folder.slot) as own:
            return change_receivers(own, changes)
    return _show(here, folder)


def _list(here: Home) -> Output:
    from party_sdk.supervisor.orders import all_parties

    found = list(all_parties(here.path))
    if not found:
        say(f"No session has been joined from {here.path}.", err=True)
        return Output([])
    heads = ("SESSION", "SLOT", "STATE", "NEXT")
    rows = [(each.session, each.slot, each.state, each.following) for each in found]
    return Output([asdict(each) for each in found], align_columns([heads, *rows]))


def _show(here: Home, folder: PartySession) -> Output:
    from party_sdk.party.notifications import read_told

    roster, given = here.roster(folder.session, folder.slot), folder.consents.given
    told = read_told(folder) if folder.exists else ()
    document: dict[str, Any] = {} if roster is None else roster_document(roster)
    document["agreement"] = (folder.agreement or b"").decode()
    document["accepted"] = None if given is None else given.model_dump(mode="json")
    document["notified"] = [each.model_dump() for each in told]

    def lines() -> Iterator[str]:
        if roster is None:
            yield "Not all have joined yet, or this party has not run since."
        else:
            yield from roster_lines(roster)
        if given is None:
            yield "You accept nothing now."
        else:
            yield f"accepted {given.at:%Y-%m-%d %H:%M}: the sheet {given.sheet}"
        yield from (each.line for each in told)

    return Output(document, lines())


@click.command()
@session_argument
@slot_argument
@here_options(signs=True)
@json_output
def audit(session_id: str, slot: str, here: Home) -> Output:
    """Print and check what this party sent.

    Each line is an upload or the analyst's receipt for one; the command fails if a line
    was changed. With --json it is signed by your institution: a file that somebody else
    can check (coterie verify).
    """
    folder = here.find(session_id, slot)
    entries = folder.ledger.read()
    return Output(lambda: here.sign_log(folder), audit_lines(entries))


@click.command()
@invited_argument
@optional_slot_argument
@click.option("--reason", default="", help="A line for the coordinator to read.")
@click.option(
    "--because",
    type=click.Choice([word.value for word in StopReason if word != StopReason.HELD]),
    default=StopReason.LEFT.value,
    show_default=True,
    help="The one word that all others read, once you have run with your data.",
)
@here_options()
def leave(
    session: str, slot: str | None, reason: str, because: str, here: Home
) -> None:
    """Do not take part, or stop for good: nothing more is sent.

    With your invitation, before you have run with your data, the coordinator reads that
    you decline, and why; with the same invitation you may still join later. Afterwards,
    by SESSION and SLOT too, all read that you stopped, and one word why. The session
    ends, or continues without you where its terms allow that.
    """
    if "#" in session:
        from party_sdk.analyst_client.invitations import Invitation

        parsed = Invitation.parse(session)
        if not here.stored(parsed.session, parsed.slot).has_joined:
            here.decline(session, reason)
            read = reason or "you give no reason"
            say(f"You declined. The coordinator reads: {read}.", err=True)
            return
    folder = here.one_of(session, slot)
    had_joined = folder.has_joined
    is_told = here.leave(folder.session, folder.slot, reason, StopReason(because))
    if is_told and not had_joined:
        say("You left. The coordinator reads that you decline.", err=True)
        return
    say("You left: nothing more is sent from here. What was sent stays sent.", err=True)
    if is_told:
        say(f"The others read that you stopped for good ({because}).", err=True)
        return
    say(
        "The others wait for you until the deadline: ask the coordinator to cancel the "
        f"session (coterie session cancel {folder.session}).",
        err=True,
    )


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

"""`coterie party status, audit, leave, forget`: manage the sessions of this home."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import click

from clustering_protocols.wire.states import StopReason
from party_sdk.cli.options import (
    Entropy,
    HomeOptions,
    InvitationArgument,
    Mail,
    MaybeSessionName,
    MaybeSlot,
    Remove,
    SessionName,
    Slot,
    Yes,
)
from party_sdk.cli.parameters import command, option
from party_sdk.cli.terminal.output import (
    Output,
    align_columns,
    audit_lines,
    change_receivers,
    roster_document,
    roster_lines,
    say,
)

if TYPE_CHECKING:
    from party_sdk.application.home import Home
    from party_sdk.party.party_session import PartySession


@command()
def status(
    session: MaybeSessionName = None,
    slot: MaybeSlot = None,
    *,
    withdraw: Annotated[
        bool,
        option(
            "Withdraw consent. You are asked again before anything more is sent; the "
            "others wait until the deadline of the round."
        ),
    ] = False,
    mail: Mail = None,
    remove: Remove = None,
    home: HomeOptions,
) -> Output:
    """List the sessions of this home, or show SESSION: members and what you accepted.

    Everything is read from this disk, including parties of the desk (coterie ui); only
    --mail and --remove contact the analyst. Compare the safety number with that of the
    other members.
    """
    if session is None:
        from party_sdk.party.party_index import all_parties

        parties = list(all_parties(home.folder))
        if not parties:
            say(f"No session has been joined from {home.folder}.", err=True)
            return Output([])
        heads = ("SESSION", "SLOT", "STATE", "NEXT")
        rows = [
            (party.session, party.slot, party.state, party.following)
            for party in parties
        ]
        return Output(
            [
                {**asdict(party), "since": party.since and party.since.isoformat()}
                for party in parties
            ],
            align_columns([heads, *rows]),
        )
    own_home = home.open()
    stored = own_home.find_named(session, slot)
    if withdraw:
        from party_sdk.party.party_session import WITHDRAWN

        own_home.withdraw_consent(stored.session, stored.slot)
        say(WITHDRAWN, err=True)
    if mail or remove:
        with own_home.open_receivers(stored.session, stored.slot) as receivers:
            return change_receivers(receivers, mail, remove)
    return _show_session(own_home, stored)


def _show_session(home: "Home", stored: "PartySession") -> Output:
    roster, consent = home.roster(stored.session, stored.slot), stored.consent
    requests = stored.load_identity().told if stored.exists else ()
    document: dict[str, Any] = {} if roster is None else roster_document(roster)
    document["agreement"] = (stored.agreement or b"").decode()
    document["accepted"] = None if consent is None else consent.model_dump(mode="json")
    document["notified"] = [request.model_dump() for request in requests]

    def lines() -> Iterator[str]:
        if roster is None:
            yield "Not all have joined yet, or this party has not run since."
        else:
            yield from roster_lines(roster)
        if consent is None or consent.withdrawn_at:
            yield "You currently accept nothing."
        else:
            yield f"accepted {consent.at:%Y-%m-%d %H:%M}: the sheet {consent.sheet}"
        yield from (request.line for request in requests)

    return Output(document, lines())


@command()
def audit(
    session: SessionName, slot: Slot, *, home: HomeOptions, entropy: Entropy = None
) -> Output:
    """Print and check the log of what this party sent.

    Each line is an upload, or the analyst's receipt for one. The command fails if a
    line was changed. With --json the log is signed by your institution, so that
    somebody else can check the file (coterie verify).
    """
    own_home = home.open(entropy=entropy)
    stored = own_home.find_session(session, slot)
    entries = stored.ledger.verified_entries()
    return Output(lambda: own_home.sign_log(stored), audit_lines(entries))


@command()
def leave(
    session: InvitationArgument,
    slot: MaybeSlot = None,
    *,
    reason: Annotated[str, option("A line of text for the coordinator.")] = "",
    because: Annotated[
        str,
        option(
            "The reason that all others read if you have already run with your data.",
            type=click.Choice(
                [word.value for word in StopReason if word != StopReason.HELD]
            ),
        ),
    ] = StopReason.LEFT.value,
    home: HomeOptions,
) -> None:
    """Decline to take part, or stop for good. Only the reason is sent.

    Before you have run with your data, pass your invitation: the coordinator reads that
    you decline, and why, and you may still join later. Afterwards pass SESSION and
    SLOT, or the invitation: all members read that you stopped, and the reason in one
    word. The session ends, or continues without you if its terms allow that.
    """
    own_home = home.open()
    if "#" in session:
        from party_sdk.analyst_client.invitations import Invitation

        parsed = Invitation.parse(session)
        if not own_home.stored_session(parsed.session, parsed.slot).has_joined:
            own_home.decline_invitation(session, reason)
            text = reason or "you give no reason"
            say(f"You declined. The coordinator reads: {text}.", err=True)
            return
    stored = own_home.find_named(session, slot)
    had_joined = stored.has_joined
    invitation = stored.load_identity().invitation
    is_told = own_home.withdraw(invitation, reason, StopReason(because))
    if is_told and not had_joined:
        say("You left. The coordinator reads that you decline.", err=True)
        return
    say("You left: nothing more is sent from here. What was sent stays sent.", err=True)
    if is_told:
        say(f"The others read that you stopped for good ({because}).", err=True)
        return
    say(
        "The others wait for you until the deadline: ask the coordinator to cancel the "
        f"session (coterie session cancel {stored.session}).",
        err=True,
    )


@command()
def forget(
    session: SessionName,
    slot: Slot,
    *,
    home: HomeOptions,
    erase_all: Annotated[
        bool, option("Also delete the ledger and the report.", "--all")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete the stored data of a session, including its secrets.

    The ledger and your report remain (party audit, party report).
    """
    from party_sdk.supervisor.orders import PartyOrder

    if not yes:
        click.confirm("Delete memory, keys and token of this party?", abort=True)
    own_home = home.open()
    stored = own_home.stored_session(session, slot)
    if not stored.exists and PartyOrder(own_home.path, session, slot).exists:
        stored.forget(everything=True)  # the order never joined, so nothing was sent
        return
    own_home.forget(session, slot, everything=erase_all)

"""`coterie session notify`, and what it shares with that of a party and with `--notify`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.common.errors import CoterieError, InvalidParameters
from party_sdk.cli.options.arguments import opened_argument
from party_sdk.cli.options.common import pass_coordinator
from party_sdk.cli.terminal.output import json_option, say

if TYPE_CHECKING:
    from clustering_protocols.wire.answers import ReceiverAdded, ReceiverLine
    from party_sdk.coordinator.coordinator import Coordinator
    from party_sdk.party.notifications import NotificationRequest, OwnReceivers

_OPTIONS = (
    click.option("--mail", metavar="ADDRESS", help="Notify this mail address."),
    click.option(
        "--remove", metavar="ID", help="Stop notifying this id; see the list."
    ),
)


def address_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what both commands take."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)


def notify_option(event: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return `--notify` of a command that opens or joins: it notifies of ``event``."""
    return click.option(
        "--notify",
        "addresses",
        multiple=True,
        metavar="ADDRESS",
        callback=_read_addresses,
        help=f"Have the analyst notify you of {event}, and of the end. ADDRESS is a mail "
        "address; may be given several times.",
    )


def _read_addresses(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    del context, parameter
    from party_sdk.party.notifications import check_address

    for value in values:
        try:
            check_address(value)
        except InvalidParameters as error:
            raise click.BadParameter(error.detail) from None
    return values


def be_told(
    receivers: OwnReceivers, addresses: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Leave a coordinator's addresses; return what came of each.

    The session is open by then: what the analyst does not take is said, and stops
    nothing.
    """
    return [_add_receiver(receivers, address) for address in addresses]


def _add_receiver(receivers: OwnReceivers, address: str) -> dict[str, Any]:
    try:
        added = receivers.add(address)
    except CoterieError as error:
        say(f"{address} is not told: {error}", err=True)
        return {"address": address, "problem": str(error)}
    say(f"{address} is told, id {added.id}", err=True)
    return {"address": address, **added.model_dump()}


@click.command("notify")
@opened_argument
@address_options
@json_option
@pass_coordinator
def notify_coordinator(
    coordinator: Coordinator, session_id: str, *, as_json: bool, **asked: str | None
) -> None:
    """Have the analyst notify you of slow parties, and of the end.

    It also notifies you when you have to choose a run. It sends mail, if its
    administrator has set that up. Without an option, the command lists who is notified
    and which notices failed.
    """
    answer(coordinator.session(session_id).receivers, asked, as_json=as_json)


def answer(
    receivers: OwnReceivers,
    asked: dict[str, str | None],
    *,
    as_json: bool,
    named: Sequence[NotificationRequest] = (),
) -> None:
    """Add, remove or list, as was asked; ``named`` are those given with `--notify`."""
    given = {name: value for name, value in asked.items() if value is not None}
    if len(given) > 1:
        raise click.UsageError("Give --mail or --remove.")
    if removed := given.pop("remove", None):
        receivers.remove(removed)
        return
    if given:
        [address] = given.values()
        _show_added(receivers.add(address), as_json=as_json)
        return
    found = receivers.list()
    if as_json:
        told = [each.model_dump() for each in named]
        say(json.dumps(found.model_dump(mode="json") | {"named": told}))
        return
    if not found.offered:
        say("This analyst sends no mail.", err=True)
    for line in found.receivers:
        say(_line(line))
    for each in named:
        say(_named_line(each))


def _named_line(named: NotificationRequest) -> str:
    if named.waits:
        return f"{named.address} waits until this party runs with its data."
    if named.problem:
        return f"{named.address} is not told: {named.problem}"
    return f"{named.id}  named when joining"


def _show_added(added: ReceiverAdded, *, as_json: bool) -> None:
    if as_json:
        say(added.model_dump_json())
        return
    say(f"id: {added.id}")


def _line(line: ReceiverLine) -> str:
    from clustering_protocols.wire.answers import SENTENCES

    told = f"{line.sent} sent"
    if line.retrying:
        told += f", {line.retrying} tried again"
    if line.given_up:
        told += f", {line.given_up} given up"
    if line.failure is not None:
        told += f". {SENTENCES.get(line.failure, line.failure)}"
    return f"{line.id}  {line.address}  {told}"

"""Options that say whom the analyst notifies by mail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.common.errors import CoterieError, InvalidParameters
from party_sdk.cli.terminal.output import Output, say

if TYPE_CHECKING:
    from clustering_protocols.wire.answers import Receivers
    from party_sdk.party.notifications import OwnReceivers

_OPTIONS = (
    click.option("--mail", metavar="ADDRESS", help="Notify this mail address."),
    click.option(
        "--remove", metavar="ID", help="Stop notifying this id, which the list shows."
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


def change_receivers(
    receivers: OwnReceivers, changes: Mapping[str, str | None]
) -> Output:
    """Add or remove an address; print who is notified, and which notices failed."""
    if removed := changes.get("remove"):
        receivers.remove(removed)
    if address := changes.get("mail"):
        receivers.add(address)
    found = receivers.list()
    return Output(found, receiver_lines(found))


def receiver_lines(found: Receivers) -> Iterator[str]:
    """Yield who is notified, and which notices failed."""
    from clustering_protocols.wire.answers import SENTENCES

    for each in found.receivers:
        told = f"{each.sent} sent"
        if each.retrying:
            told += f", {each.retrying} tried again"
        if each.given_up:
            told += f", {each.given_up} given up"
        if each.failure is not None:
            told += f". {SENTENCES.get(each.failure, each.failure)}"
        yield f"{each.id}  {each.address}  {told}"

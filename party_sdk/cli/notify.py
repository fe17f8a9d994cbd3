"""`coterie session notify`, and what it shares with that of a party: addresses to be told at."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.connecting import pass_coordinator
from party_sdk.cli.output import json_option, say

if TYPE_CHECKING:
    from clustering_protocols.wire.notices import ReceiverAdded, ReceiverLine
    from party_sdk.coordinator import Coordinator
    from party_sdk.receivers import OwnReceivers

_OPTIONS = (
    click.option("--webhook", metavar="URL", help="Tell this address: https://…"),
    click.option("--mail", metavar="ADDRESS", help="Tell this address of mail."),
    click.option("--remove", metavar="ID", help="Tell this one no more; see the list."),
)


def address_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what both commands take."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)


@click.command("notify")
@click.argument("session_id")
@address_options
@json_option
@pass_coordinator
def notify_coordinator(
    coordinator: Coordinator, session_id: str, *, as_json: bool, **asked: str | None
) -> None:
    """Be told who is awaited for long, and how it ends.

    Also when a run is to be chosen. By webhook or by mail, as the analyst's administrator has set it up; without an
    option, list who is told and what failed.
    """
    answer(coordinator.session(session_id).receivers, asked, as_json=as_json)


def answer(
    receivers: OwnReceivers, asked: dict[str, str | None], *, as_json: bool
) -> None:
    """Add, remove or list, as was asked."""
    given = {name: value for name, value in asked.items() if value is not None}
    if len(given) > 1:
        raise click.UsageError("Give one of --webhook, --mail and --remove.")
    if removed := given.pop("remove", None):
        receivers.remove(removed)
        return
    if given:
        [address] = given.values()
        _show_added(receivers.add(address), as_json=as_json)
        return
    found = receivers.list()
    if as_json:
        say(found.model_dump_json())
        return
    if not found.ways:
        say("This analyst sends neither webhooks nor mail.", err=True)
    for line in found.receivers:
        say(_line(line))


def _show_added(added: ReceiverAdded, *, as_json: bool) -> None:
    if as_json:
        say(added.model_dump_json())
        return
    say(f"id: {added.id}")
    if added.secret is not None:
        say(f"secret: {added.secret}")
        say(
            "Check each webhook's signature with the secret (standardwebhooks.com); it "
            "is not shown again.",
            err=True,
        )


def _line(line: ReceiverLine) -> str:
    from clustering_protocols.wire.notices import SENTENCES

    told = f"{line.sent} sent"
    if line.retrying:
        told += f", {line.retrying} tried again"
    if line.given_up:
        told += f", {line.given_up} given up"
    if line.failure is not None:
        told += f". {SENTENCES.get(line.failure, line.failure)}"
    return f"{line.id}  {line.way}  {line.address}  {told}"

"""`coterie party notify`: addresses at which a party is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from party_sdk.cli.options.completion import session_argument, slot_argument
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.session.notify import address_options, answer
from party_sdk.cli.terminal.output import json_option

if TYPE_CHECKING:
    from party_sdk.application.home import Home


@click.command("notify")
@session_argument
@slot_argument
@address_options
@here_options()
@json_option
def notify_party(
    session_id: str,
    slot: str,
    here: Home,
    *,
    as_json: bool,
    **asked: str | None,
) -> None:
    """Have the analyst notify you of your turn, and of the end.

    It also notifies you when half of a deadline has passed. It sends mail, if its
    administrator has set that up. Without an option, the command lists who is notified
    and which notices failed. The list includes the addresses given at
    'party join --notify'. You need to have run with your data once.
    """
    from party_sdk.party.notifications import read_told

    named = read_told(here.folder(session_id, slot))
    with here.receivers(session_id, slot) as receivers:
        answer(receivers, asked, as_json=as_json, named=named)

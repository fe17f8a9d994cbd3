"""`coterie party notify`: addresses at which a party is told."""

from __future__ import annotations

import click

from party_sdk.cli.completing import session_argument, slot_argument
from party_sdk.cli.notify import address_options, answer
from party_sdk.cli.output import json_option
from party_sdk.cli.party_options import PartyOptions, here_options


@click.command("notify")
@session_argument
@slot_argument
@address_options
@here_options()
@json_option
def notify_party(
    session_id: str,
    slot: str,
    here: PartyOptions,
    *,
    as_json: bool,
    **asked: str | None,
) -> None:
    """Be told when it is your turn, and how it ends.

    Also when half of a deadline has passed. By webhook or by mail, as the analyst's
    administrator has set it up; without an option, list who is told and what failed, with
    what was named at 'party join --notify'. For a party that has run with its data once.
    """
    from party_sdk.told import read_told

    named = read_told(here.folder(session_id, slot))
    with here.receivers(session_id, slot) as receivers:
        answer(receivers, asked, as_json=as_json, named=named)

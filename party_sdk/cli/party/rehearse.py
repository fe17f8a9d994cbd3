"""`coterie party rehearse`: what would be sent, before anybody joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.admission.table_files import TableSpec
from party_sdk.cli.options.arguments import read_invitation
from party_sdk.cli.options.policy import choice_option
from party_sdk.cli.options.tables import data_options
from party_sdk.cli.options.terms import read_terms_file
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.terminal.output import json_option, say, show_notes

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import Rehearsal
    from clustering_protocols.terms.terms import Terms
    from party_sdk.application.home import Home


@click.command()
@click.argument("invitation", required=False, default="", callback=read_invitation)
@data_options
@click.option(
    "--terms",
    "terms_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The terms as a JSON file (party join --json) instead of an invitation: then "
    "nothing at all is sent.",
)
@click.option("--slot", help="With --terms: the slot at which you would sit.")
@choice_option
@here_options()
@json_option
def rehearse(
    invitation: str,
    rows: TableSpec,
    terms_file: Path | None,
    slot: str | None,
    choices: Mapping[str, Any],
    here: Home,
    *,
    as_json: bool,
) -> None:
    """Play a session at home, with your table and made-up others.

    Shows what would be sent, array by array, and for whom. Nothing is sent but the
    question what the invitation is for. Figures and labels of a rehearsal mean nothing:
    the others' rows are drawn from yours, and stay here.
    """
    from clustering_protocols.terms.session_risks import SUMS_LIMIT
    from party_sdk.admission.table_admission import agreed_in
    from party_sdk.home.policy_files import read_policy
    from party_sdk.lab import rehearse as play

    agreed, own = _read_terms_and_slot(invitation, terms_file, slot, here)
    rows = here.map_rows(here.stored(agreed.session, own), rows)
    data = rows.open(agreed_in(agreed, own))
    limit = read_policy(here.path).sums_limit
    found = play(agreed, own, data, {SUMS_LIMIT: limit, **choices})
    if as_json:
        say(found.model_dump_json())
        return
    for line in rehearsal_lines(found, agreed):
        say(line)
    show_notes(found.notes)


def rehearsal_lines(found: Rehearsal, terms: Terms) -> Iterator[str]:
    """Yield what would be sent, in the words of the terms sheet."""
    from party_sdk.cli.terminal.asker import inspection_lines

    for each in found.left:
        yield from inspection_lines(each.example, terms)
        if each.n > 1:
            yield (
                f"  and {each.n - 1} more of this form, until round {each.last}: "
                f"{each.n_bytes:,} bytes in all"
            )
    for asks in found.asks:
        yield f"You would be asked: {asks}"
    yield (
        f"{found.n_rows} rows; {found.rounds} rounds; {found.n_bytes:,} bytes would be sent; "
        f"{found.seconds:.1f} s of work here. Nothing was sent."
    )


def _read_terms_and_slot(
    invitation: str, terms_file: Path | None, slot: str | None, here: Home
) -> tuple[Terms, str]:
    if bool(invitation) == (terms_file is not None):
        raise click.UsageError("Give an invitation, or --terms FILE.")
    if terms_file is None:
        offer = here.offer(invitation)
        return offer.terms, offer.invitation.slot
    return read_terms_file(terms_file, slot)

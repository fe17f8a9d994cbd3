"""`coterie party rehearse`: what would leave, before anybody joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.invited import read_invitation
from party_sdk.cli.output import json_option, say, show_notes
from party_sdk.cli.party_options import PartyOptions, here_options
from party_sdk.cli.policy_options import choice_option
from party_sdk.cli.table_options import GivenTable, data_options

if TYPE_CHECKING:
    from clustering_protocols.terms import Terms
    from party_sdk.rehearsing import Rehearsal


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
@here_options(invited=True)
@json_option
def rehearse(
    invitation: str,
    rows: GivenTable,
    terms_file: Path | None,
    slot: str | None,
    choices: Mapping[str, Any],
    here: PartyOptions,
    *,
    as_json: bool,
) -> None:
    """Play a session at home, with your table and made-up others.

    Shows what would leave, array by array, and for whom. Nothing is sent but the
    question what the invitation is for. Figures and labels of a rehearsal mean nothing:
    the others' rows are drawn from yours, and stay here.
    """
    from clustering_protocols.house import SUMS_LIMIT
    from party_sdk.arriving import agreed_in
    from party_sdk.policy_files import read_policy
    from party_sdk.rehearsing import rehearse as play

    agreed, own = _offered(invitation, terms_file, slot, here)
    data = rows.open(agreed_in(agreed, own))
    limit = read_policy(here.home).sums_limit
    found = play(agreed, own, data, {SUMS_LIMIT: limit, **choices})
    if as_json:
        say(found.model_dump_json())
        return
    for line in rehearsal_lines(found, agreed):
        say(line)
    show_notes(found.notes)


def rehearsal_lines(found: Rehearsal, terms: Terms) -> Iterator[str]:
    """Yield what would leave, in the words of the terms sheet."""
    from party_sdk.cli.confirming import inspection_lines

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
        f"{found.n_rows} rows; {found.rounds} rounds; {found.n_bytes:,} bytes would leave; "
        f"{found.seconds:.1f} s of work here. Nothing was sent."
    )


def _offered(
    invitation: str, terms_file: Path | None, slot: str | None, here: PartyOptions
) -> tuple[Terms, str]:
    from clustering_protocols.errors import InvalidParameters
    from clustering_protocols.terms import read_terms

    if bool(invitation) == (terms_file is not None):
        raise click.UsageError("Give an invitation, or --terms FILE.")
    if terms_file is None:
        return here.offered(invitation)
    try:
        terms = read_terms(terms_file.read_bytes())
    except OSError:
        raise InvalidParameters(f"{terms_file.name!r} cannot be read.") from None
    names = terms.layout.names
    if slot is None and len(names) == 1:
        return terms, names[0]
    if slot not in names:
        raise InvalidParameters(f"Name your slot (--slot): {', '.join(names)}.")
    return terms, slot

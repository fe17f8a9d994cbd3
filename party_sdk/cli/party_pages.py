"""`coterie party terms` and `party report`: what a party reads, prints and signs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from party_sdk.cli.completing import optional_slot_argument
from party_sdk.cli.consent import sheet_for
from party_sdk.cli.invited import invitation_argument, invited_argument
from party_sdk.cli.output import json_option, say
from party_sdk.cli.paging import html_option, show_report, write_page
from party_sdk.cli.party_options import PartyOptions, here_options
from party_sdk.cli.table_options import own_rows_options
from party_sdk.outputs import keep_others, remembered, try_outputs

if TYPE_CHECKING:
    from coterie_pages.models import RunReport
    from party_sdk.cli.table_options import GivenTable
    from party_sdk.memory import PartyFolder


@click.command()
@invitation_argument
@html_option
@here_options(invited=True)
@json_option
def terms(
    invitation: str,
    html: Path | None,
    here: PartyOptions,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Read the terms in words, on a sheet to sign.

    Before you join: it says who invites and what for, who takes part, who learns what,
    every risk, and what will be sent in which form. Nothing is sent but the question
    what the invitation is for.
    """
    keep_others([html], None, force=force)
    sheet = sheet_for(invitation, here)
    if html is not None:
        write_page(sheet, html)
    if as_json:
        say(sheet.model_dump_json())
        return
    if html is None:
        from coterie_pages.text import sheet_lines

        for line in sheet_lines(sheet):
            say(line)


@click.command()
@invited_argument
@optional_slot_argument
@own_rows_options
@html_option
@here_options()
@json_option
def report(
    session: str,
    slot: str | None,
    rows: GivenTable | None,
    html: Path | None,
    here: PartyOptions,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Report your run of a session, from what is kept on this disk.

    SESSION is its id, or your invitation; SLOT is needed where you sat at several. With
    --data your rows are drawn on two axes. Afterwards 'party forget' keeps the report.
    """
    folder = here.one_of(session, slot)
    keep_others([html], folder.path, force=force)
    if html is not None:
        try_outputs([html], folder.path, force=True)
    made = _report(folder, rows, here)
    if html is not None:
        with remembered([html], folder.path):
            write_page(made, html)
    if as_json:
        say(made.model_dump_json())
        return
    ended = f"{made.ended}, without a result" if made.ended else "no result yet"
    show_report(made, "complete" if made.complete else ended)
    say(f"{len(made.left)} lines in the log of what left")


def _report(
    folder: PartyFolder, rows: GivenTable | None, here: PartyOptions
) -> RunReport:
    from clustering_protocols.errors import NotReady
    from coterie_pages.models import RunReport

    written = folder.load_report()
    if written is not None:
        if rows is not None:
            raise NotReady("Labels were forgotten: rows can no longer be drawn.")
        return RunReport.model_validate_json(written)
    return here.report(folder, rows)

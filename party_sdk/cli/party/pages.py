"""`coterie party terms` and `party report`: what a party reads, prints and signs."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from party_sdk.cli.options.arguments import (
    invitation_argument,
    invited_argument,
    optional_slot_argument,
)
from party_sdk.cli.options.tables import own_rows_options
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.cli.terminal.output_files import (
    html_option,
    show_report,
    write_assessment,
    write_page,
)
from party_sdk.results.output_files import (
    keep_others,
    remember_outputs,
    try_outputs,
    write_whole,
)

if TYPE_CHECKING:
    from party_sdk.admission.table_files import TableSpec
    from party_sdk.application.home import Home


@click.command()
@invitation_argument
@html_option
@click.option(
    "--dpia",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a data protection impact assessment (Markdown), filled from the terms. "
    "What only you can say stands in brackets.",
)
@click.option("--annex", is_flag=True, help="Print the annex too.")
@here_options()
@json_option
def terms(
    invitation: str,
    html: Path | None,
    dpia: Path | None,
    here: Home,
    *,
    annex: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Read the terms in words: one page to accept or sign, and an annex.

    The page says who invites and what for, what is sent, who reads what, and every risk.
    Its last line is the SHA-256 that 'coterie party run --accept' takes. The annex names
    what will be sent in which form, and what would remove each risk. The command sends
    only the question what the invitation is for.
    """
    keep_others([html, dpia], None, force=force)
    sheet = here.sheet(here.offer(invitation))
    if html is not None:
        write_page(sheet, html)
    if dpia is not None:
        write_assessment(sheet, dpia)
    if as_json:
        say(sheet.model_dump_json())
        return
    if html is None and dpia is None:
        from coterie_pages import terminal_text

        annexed = terminal_text.annex_lines(sheet) if annex else ()
        signed = terminal_text.signature_lines(sheet)
        for line in chain(terminal_text.page_lines(sheet), signed, annexed):
            say(line)


@click.command()
@invited_argument
@optional_slot_argument
@own_rows_options
@click.option(
    "--manifest",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for a paper (JSON): terms, public seed, digests and versions.",
)
@html_option
@here_options()
@json_option
def report(
    session: str,
    slot: str | None,
    rows: TableSpec | None,
    manifest: Path | None,
    html: Path | None,
    here: Home,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Report your run of a session, from what is kept on this disk.

    SESSION is its id, or your invitation; SLOT is needed where you sat at several. With
    --data your rows are drawn on two axes. Afterwards 'party forget' keeps the report.
    """
    folder = here.one_of(session, slot)
    outputs = [path for path in (html, manifest) if path is not None]
    keep_others(outputs, folder, force=force)
    try_outputs(outputs, here.path, force=True)
    if manifest is not None:
        text = json.dumps(here.manifest(folder), indent=1)
        with remember_outputs([manifest], folder):
            write_whole(text.encode(), manifest)
    made = here.report(folder, rows)
    if html is not None:
        with remember_outputs([html], folder):
            write_page(made, html)
    if as_json:
        say(made.model_dump_json())
        return
    ended = f"{made.ended}, without a result" if made.ended else "no result yet"
    show_report(made, "complete" if made.complete else ended)
    say(f"{len(made.left)} lines in the log of what was sent")

"""`coterie session report` and `export`: what a coordinator reads, prints and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from party_sdk.cli.options.common import pass_coordinator
from party_sdk.cli.options.completion import opened_argument
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.cli.terminal.output_files import force_option
from party_sdk.cli.terminal.page_files import html_option, show_report, write_page
from party_sdk.results.output_files import keep_others, write_whole

if TYPE_CHECKING:
    from party_sdk.coordinator.coordinator import Coordinator


@click.command()
@opened_argument
@html_option
@json_option
@pass_coordinator
def report(
    coordinator: Coordinator,
    session_id: str,
    html: Path | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Report what came of a session, on a page to file.

    It has terms, members, figures, sizes and the audit, all checked. Terms, members and
    result are in it where the session was opened: only there can they be checked.
    """
    from party_sdk.reports.session_reports import audited_report

    keep_others([html], None, force=force)
    opened = coordinator.session(session_id)
    made, _ = audited_report(coordinator, opened, opened.status())
    if html is not None:
        write_page(made, html)
    if as_json:
        say(made.model_dump_json())
        return
    show_report(made, ": ".join(filter(None, (made.state, made.reason))))
    say(f"{len(made.audit)} lines in the audit")


@click.command()
@opened_argument
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The zip file to write.",
)
@force_option
@json_option
@pass_coordinator
def export(
    coordinator: Coordinator,
    session_id: str,
    output: Path,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Write all that you may read of a session into one zip file.

    It holds the exact texts of terms and agreement, the state of the session, the result
    and the signed audit. It also holds the report as JSON and as a page. It holds no
    secret.
    """
    from coterie_pages.pages import page
    from party_sdk.reports.session_reports import archive, audited_report

    keep_others([output], None, force=force)
    opened = coordinator.session(session_id)
    status = opened.status()
    made, log = audited_report(coordinator, opened, status)
    content = archive(opened, status, made, page(made), log)
    write_whole(content, output)
    if as_json:
        say(json.dumps({"output": str(output), "n_bytes": len(content)}))
        return
    say(f"{len(content):,} bytes in {output}")

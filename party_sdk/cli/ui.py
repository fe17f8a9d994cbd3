"""`coterie ui`: serve the desk, the pages of parties and coordinators, on this machine."""

import json
import webbrowser
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from clustering_protocols.common.extras import require_extra
from party_sdk.cli.options import HomeOptions
from party_sdk.cli.parameters import command, option
from party_sdk.cli.terminal.output import say

if TYPE_CHECKING:
    from party_sdk.desk.server import DeskAddress


@command()
def ui(
    *,
    port: Annotated[
        int,
        option(
            "Port on 127.0.0.1; by default any free port.",
            low=0,
            high=65_535,
        ),
    ] = 0,
    tables: Annotated[
        Path,
        option(
            "A folder whose files are offered as tables; by default the current one.",
            type=click.Path(path_type=Path, exists=True, file_okay=False),
        ),
    ] = Path(),
    no_browser: Annotated[bool, option("Print the link, but do not open it.")] = False,
    idle_minutes: Annotated[
        int,
        option(
            "Minutes without a click after which the pages need a new link.",
            low=1,
            high=24 * 60,
        ),
    ] = 60,
    home: HomeOptions,
    as_json: Annotated[
        bool, option("Print JSON on standard output.", "--json")
    ] = False,
) -> None:
    """Open the desk: pages on which you take part in sessions and coordinate them.

    Only this machine can reach the desk. The command prints a link that opens it once,
    and opens a browser. Sessions continue without the browser until this command is
    stopped; 'coterie party' can continue them. Run this command again for another link.
    """
    why = "The desk is served by Starlette and uvicorn"
    require_extra("ui", why, "starlette", "uvicorn")
    from party_sdk.desk.server import serve, write_link_page

    def show_link(where: "DeskAddress") -> None:
        if as_json:
            click.echo(json.dumps(asdict(where)))
        else:
            say(where.link)
            say(
                f"The desk is process {where.process}. The link opens it once, within "
                "five minutes; Ctrl-C there closes it without losing anything.",
                err=True,
            )
        if not no_browser:
            webbrowser.open(write_link_page(home.folder, where.link).as_uri())

    served = serve(
        home.folder,
        tables,
        port=port,
        idle=timedelta(minutes=idle_minutes),
        on_open=show_link,
        say=lambda line: say(line, err=True),
    )
    if served:
        say("The desk is closed. Its orders continue when it runs again.", err=True)

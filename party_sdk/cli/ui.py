"""`coterie ui`: the desk at home, pages on this machine alone."""

from __future__ import annotations

import json
import webbrowser
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clustering_protocols.common.extras import require_extra
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.terminal.output import json_option, say

if TYPE_CHECKING:
    from party_sdk.application.home import Home
    from party_sdk.desk.server import DeskAddress


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    help="Where to listen, on 127.0.0.1; any port that is free by default.",
)
@click.option(
    "--tables",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    help="A folder whose files are offered as tables; this one by default.",
)
@click.option("--no-browser", is_flag=True, help="Print the link, and open nothing.")
@click.option(
    "--idle-minutes",
    type=click.IntRange(1, 24 * 60),
    default=60,
    show_default=True,
    help="After how long without anybody the pages ask for a new link.",
)
@here_options()
@json_option
def ui(
    port: int,
    tables: Path,
    here: Home,
    *,
    no_browser: bool,
    idle_minutes: int,
    as_json: bool,
) -> None:
    """Open the desk: pages to take part and coordinate.

    It is served on this machine alone. Prints a link that opens it once, and opens a
    browser. What runs continues without the browser, until this command is stopped; orders
    of 'coterie party' are the same ones. Run it again for another link.
    """
    why = "The desk is served by Starlette and uvicorn"
    require_extra("ui", why, "starlette", "uvicorn")
    from party_sdk.desk.server import serve, write_link_page

    def show_link(where: DeskAddress) -> None:
        _tell(where, as_json=as_json)
        if not no_browser:
            webbrowser.open(write_link_page(here.path, where.link).as_uri())

    served = serve(
        here.path,
        tables,
        port=port,
        idle=timedelta(minutes=idle_minutes),
        opened=show_link,
        say=lambda line: say(line, err=True),
    )
    if served:
        say("The desk is closed. What was under way continues when it runs.", err=True)


def _tell(where: DeskAddress, *, as_json: bool) -> None:
    if as_json:
        document = {"process": where.process, "port": where.port, "link": where.link}
        click.echo(json.dumps(document))
        return
    say(where.link)
    say(
        f"The desk is process {where.process}. The link opens it once, within five "
        "minutes; Ctrl-C there closes it, and nothing is lost by that.",
        err=True,
    )

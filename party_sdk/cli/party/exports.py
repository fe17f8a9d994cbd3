"""`coterie party export` and `party name`: a result for other programs, and its names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from party_sdk.cli.options.arguments import invited_argument, optional_slot_argument
from party_sdk.cli.options.tables import data_options
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.cli.terminal.output_files import force_option
from party_sdk.results.output_files import keep_others, try_outputs, write_whole

if TYPE_CHECKING:
    from party_sdk.admission.table_files import TableSpec
    from party_sdk.application.home import Home


@click.command()
@invited_argument
@optional_slot_argument
@data_options
@click.option(
    "--out",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The file: .csv, .xlsx, .parquet, .sav (SPSS) or .dta (Stata).",
)
@force_option
@here_options(maps=True)
def export(
    session: str,
    slot: str | None,
    rows: TableSpec,
    file: Path,
    here: Home,
    *,
    force: bool,
) -> None:
    """Write your table with the cluster of each row.

    SESSION is its id, or your invitation; SLOT is needed where you sat at several. Levels
    and clusters get value labels in .sav and .dta. Nothing is sent.
    """
    from party_sdk.application.exports import export_table
    from party_sdk.results.exports import write_export

    try_outputs([file], Path(rows.path), force=force)
    keep_others([file], None, force=force)
    write_export(file, export_table(here, here.one_of(session, slot), rows))
    say(f"{file}")


@click.command()
@invited_argument
@optional_slot_argument
@click.option(
    "--name",
    "named",
    multiple=True,
    metavar="NUMBER=NAME",
    help="What you call a cluster: 3=SIDD; 3= takes it back. Again for several.",
)
@click.option(
    "--names",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help='JSON file of all names, {"3": "SIDD"}: read if it is there, else written.',
)
@here_options()
@json_option
def name(
    session: str,
    slot: str | None,
    named: tuple[str, ...],
    file: Path | None,
    here: Home,
    *,
    as_json: bool,
) -> None:
    """Name clusters, for your reports and exports.

    SESSION is its id, or your invitation. A name has 1 to 40 characters. Names stay on
    this disk; hand the file of --names to whom you like.
    """
    from party_sdk.application.exports import name_clusters, read_names

    folder = here.one_of(session, slot)
    given = read_names(file) if file is not None and file.exists() else {}
    names = name_clusters(here, folder, given | dict(map(_parse, named)))
    document = dict(enumerate(names))
    if file is not None and not file.exists():
        write_whole(json.dumps(document).encode(), file)
    if as_json:
        say(json.dumps({"names": document}))
        return
    for cluster, called in document.items():
        say(f"cluster {cluster}: {called or '–'}")


def _parse(given: str) -> tuple[int, str]:
    number, equals, called = given.partition("=")
    if not equals or not number.strip().isdigit():
        raise click.BadParameter(
            f"{given!r} is not NUMBER=NAME, such as 3=SIDD.", param_hint="--name"
        )
    return int(number), called.strip()

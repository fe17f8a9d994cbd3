"""`coterie party export` and `party name`: a result for other programs, and its names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from party_sdk.cli.options.completion import optional_slot_argument
from party_sdk.cli.options.invitation import invited_argument
from party_sdk.cli.options.tables import own_rows_options
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.cli.terminal.output_files import force_option
from party_sdk.results.output_files import write_whole

if TYPE_CHECKING:
    from party_sdk.application.home import Home
    from party_sdk.cli.options.tables import GivenTable


@click.command()
@invited_argument
@optional_slot_argument
@own_rows_options
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    default=Path(),
    help="The folder to write into; the current one by default.",
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    default=("csv",),
    show_default=True,
    metavar="NAME",
    help="csv, xlsx, parquet, sav (SPSS) or dta (Stata); again for several.",
)
@force_option
@here_options(maps=True)
@json_option
def export(
    session: str,
    slot: str | None,
    rows: GivenTable | None,
    folder: Path,
    formats: tuple[str, ...],
    here: Home,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Write your table with the cluster of each row, and the profile.

    SESSION is its id, or your invitation; SLOT is needed where you sat at several. Name
    your table with --data. Levels and clusters get value labels. With csv an R script
    reads both files. Nothing is sent.
    """
    from party_sdk.application.exports import export_result

    made = export_result(here, here.archive.one_of(session, slot), rows)
    written = made.write(folder, formats, force=force)
    if as_json:
        say(json.dumps({"files": [str(path) for path in written]}))
        return
    for path in written:
        say(f"{path}")


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

    folder = here.archive.one_of(session, slot)
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

"""`coterie party export` and `party name`: a result for other programs, and its names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.options.completion import optional_slot_argument
from party_sdk.cli.options.invitation import invited_argument
from party_sdk.cli.options.tables import own_rows_options
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.cli.terminal.output_files import force_option

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
    "--letters",
    "place",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for sealed letters, one to each party that reads the profile.",
)
@click.option(
    "--read",
    "received",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Letter of another party. Again for several.",
)
@here_options()
@json_option
def name(
    session: str,
    slot: str | None,
    named: tuple[str, ...],
    place: Path | None,
    received: tuple[Path, ...],
    here: Home,
    *,
    as_json: bool,
) -> None:
    """Name clusters, in your reports and exports or by letters.

    SESSION is its id, or your invitation. A name has 1 to 40 characters. Names stay on
    this disk. With --letters they go to files, sealed to each party that reads the
    profile, and signed. Hand these over as you like; --read takes in those of others.
    """
    from party_sdk.application.exports import name_clusters, receive_names, send_names

    folder = here.archive.one_of(session, slot)
    kept = name_clusters(here, folder, dict(map(_parse, named)))
    if received:
        receive_names(here, folder, map(_read_letter, received))
    written = [] if place is None else send_names(here, folder, place)
    others = folder.cluster_names.read_received()
    if as_json:
        said: dict[str, Any] = {"names": dict(enumerate(kept))}
        said["of_others"] = {
            each: dict(enumerate(names)) for each, names in others.items()
        }
        said["letters"] = [str(path) for path in written]
        say(json.dumps(said))
        return
    for cluster, called in enumerate(kept):
        say(f"cluster {cluster}: {called or '–'}")
    for each, names in others.items():
        for cluster, called in enumerate(names):
            if called:
                say(f"{each} calls cluster {cluster}: {called}")
    for path in written:
        say(f"{path}")


def _read_letter(path: Path) -> bytes:
    """Return a letter; of a file that is too large for one, enough to be refused."""
    from party_sdk.party.cluster_names import LARGEST

    with path.open("rb") as file:
        return file.read(LARGEST + 1)


def _parse(given: str) -> tuple[int, str]:
    number, equals, called = given.partition("=")
    if not equals or not number.strip().isdigit():
        raise click.BadParameter(
            f"{given!r} is not NUMBER=NAME, such as 3=SIDD.", param_hint="--name"
        )
    return int(number), called.strip()

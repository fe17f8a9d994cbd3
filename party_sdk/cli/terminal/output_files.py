"""Options that say which files a command writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from party_sdk.cli.terminal.output import say

Command = Callable[..., Any]

force_option = click.option(
    "--force", is_flag=True, help="Overwrite the files that are written."
)


def tell_labels(path: Path, n_rows: int) -> None:
    """Say how many labels are in a file, and what a spreadsheet may do to their ids."""
    from party_sdk.results.formula_cells import formula_note

    say(f"{n_rows} labels in {path}")
    if note := formula_note(path):
        say(f"note: {note}", err=True)


def labels_option(command: Command) -> Command:
    """Add the options that say where labels go: ``labels``, and whether to ``force``."""
    return force_option(
        click.option(
            "--labels",
            type=click.Path(path_type=Path),
            default=Path("labels.csv"),
            show_default=True,
            help="Where to write the labels (CSV, Parquet or Excel, by its ending). Ids "
            "stay as they are, also where a spreadsheet takes one for a formula.",
        )(command)
    )


def picture_option(command: Command) -> Command:
    """Add the option that says where a picture goes; the command takes ``picture``."""
    return click.option(
        "--picture",
        type=click.Path(path_type=Path),
        help="Write a picture of your rows by cluster (SVG).",
    )(command)

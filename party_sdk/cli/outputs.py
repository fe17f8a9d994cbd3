"""Options that say which files a command writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]

force_option = click.option(
    "--force", is_flag=True, help="Overwrite the files that are written."
)


def labels_option(command: Command) -> Command:
    """Add the options that say where labels go: ``labels``, and whether to ``force``."""
    return force_option(
        click.option(
            "--labels",
            type=click.Path(path_type=Path),
            default=Path("labels.csv"),
            show_default=True,
            help="Where to write the labels (CSV, Parquet or Excel, by its ending).",
        )(command)
    )


def picture_option(command: Command) -> Command:
    """Add the option that says where a picture goes; the command takes ``picture``."""
    return click.option(
        "--picture",
        type=click.Path(path_type=Path),
        help="Write a picture of your rows by cluster (png, svg or pdf).",
    )(command)

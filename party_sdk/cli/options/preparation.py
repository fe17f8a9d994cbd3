"""Options that say what becomes of the fields of a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]


def preparation_option(*, several: bool) -> Callable[[Command], Command]:
    """Return the option that names files; of each column group, where there are several."""
    more = "; once for each column group" if several else ""
    return click.option(
        "--preparation",
        "preparation_files",
        multiple=True,
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="With --schema: what becomes of each variable (JSON): missing values, weights, "
        f"logarithms{more}.",
    )

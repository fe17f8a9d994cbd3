"""Terms in a file, and whose place in them is meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.terms.captions import (
    CHOOSE,
    PROFILES,
    Caption,
    Group,
    find_captions,
)

if TYPE_CHECKING:
    from clustering_protocols.terms.terms import Terms


def read_terms_file(path: Path, slot: str | None) -> tuple[Terms, str]:
    """Return the terms in a file, and the slot that is named, or the only one.

    Raises InvalidParameters if the file cannot be read, or has other slots.
    """
    from clustering_protocols.common.errors import InvalidParameters
    from clustering_protocols.terms.terms import read_terms

    try:
        terms = read_terms(path.read_bytes())
    except OSError:
        raise InvalidParameters(f"{path.name!r} cannot be read.") from None
    names = terms.layout.names
    if slot is None and len(names) == 1:
        return terms, names[0]
    if slot not in names:
        raise InvalidParameters(f"Name your slot (--slot): {', '.join(names)}.")
    return terms, slot


Command = Callable[..., Any]


def section_options(group: Group) -> Callable[[Command], Command]:
    """Return the options of a group of fields."""

    def add_options(command: Command) -> Command:
        for caption in reversed(find_captions(group)):
            command = _build_option(caption)(command)
        return command

    return add_options


def _build_option(caption: Caption) -> Callable[[Command], Command]:
    """Return an option; it takes a number, one of several choices, or a text."""
    kind: click.ParamType[Any] = click.STRING
    if caption.least is not None:
        kind = click.IntRange(caption.least, caption.most)
    elif caption.choices and caption.metavar is None:
        kind = click.Choice(list(caption.choices))
    return click.option(
        caption.flag, type=kind, metavar=caption.metavar, help=caption.help
    )


choose_option = _build_option(CHOOSE)
profile_option = _build_option(PROFILES)
missing_option = section_options("gaps")


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

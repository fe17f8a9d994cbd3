"""Options that ask for fields of a session request, made from their captions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from clustering_protocols.terms.captions import (
    CHOOSE,
    PROFILES,
    Caption,
    Group,
    find_captions,
)

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

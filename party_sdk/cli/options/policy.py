"""Options that say what a party decides alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from party_sdk.coordinator.option_parsing import read_values
from party_sdk.home.files import default_home

Command = Callable[..., Any]


def policy_options(command: Command) -> Command:
    """Add the options of a :class:`Policy`; the command takes ``policy``.

    It is that of the home (``policy.toml``) with what the options add or say instead.
    The command has the option ``--home``.
    """

    @click.option(
        "--guard",
        "guards",
        multiple=True,
        metavar="NAME=VALUE",
        help="A guard of policy.toml with another value for this command, e.g. "
        "least_known=0; may be given several times.",
    )
    @functools.wraps(command)
    def run_with_policy(
        *args: Any,
        home: Path | None,
        guards: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        from party_sdk.home.policy_files import check_guards, read_policy

        values = check_guards(read_values(guards))
        policy = replace(read_policy(home or default_home()), **values)
        return command(*args, policy=policy, home=home, **rest)

    return run_with_policy


def choice_option(command: Command) -> Command:
    """Add what a party decides alone; the command takes ``choices``."""

    @click.option(
        "--choice",
        "given",
        multiple=True,
        metavar="NAME=VALUE",
        help="What this party decides alone, e.g. rebuild_limit=0.05 for dc.",
    )
    @functools.wraps(command)
    def run_with_choices(*args: Any, given: tuple[str, ...], **rest: Any) -> Any:
        return command(*args, choices=read_values(given), **rest)

    return run_with_choices

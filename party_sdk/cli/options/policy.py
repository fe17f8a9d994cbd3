"""Options that say what a party accepts, and what it decides alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from clustering_protocols.common.validation_messages import did_you_mean
from party_sdk.cli.options.arguments import risk_codes
from party_sdk.coordinator.option_parsing import read_values
from party_sdk.home.files import default_home

Command = Callable[..., Any]

remember_option = click.option(
    "--remember",
    is_flag=True,
    help="Write the risks that you accept into policy.toml of the home: they hold for "
    "later sessions too.",
)


def policy_options(command: Command) -> Command:
    """Add the options of a :class:`Policy`; the command takes ``policy``.

    It is that of the home (``policy.toml``) with what the options add or say instead.
    The command has the option ``--home``.
    """

    @click.option(
        "--accept-risk",
        "accepted",
        multiple=True,
        shell_complete=risk_codes,
        metavar="CODE",
        help="A risk code that you have read and accept; may be given several times.",
    )
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
        accepted: tuple[str, ...],
        guards: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        from party_sdk.home.policy_files import check_guards, read_policy

        _check_codes(accepted)
        values = check_guards(read_values(guards))
        policy = replace(read_policy(home or default_home()), **values)
        return command(*args, policy=policy.accept_risks(accepted), home=home, **rest)

    return run_with_policy


def _check_codes(accepted: Sequence[str]) -> None:
    """Refuse a code that no protocol has: it would accept nothing, and not say so."""
    from clustering_protocols import catalogue

    known = list(catalogue.house_risks())
    for name in catalogue.catalogue() if accepted else ():
        known += catalogue.known_risks(name)
    for code in accepted:
        if code not in known:
            raise click.BadParameter(
                f"{code!r} is no risk code.{did_you_mean(code, known)}",
                param_hint="'--accept-risk'",
            )


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

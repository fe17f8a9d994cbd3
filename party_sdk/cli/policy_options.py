"""Options that say what a party accepts, and what it decides alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from party_sdk.cli.options import read_values
from party_sdk.policy import Policy

Command = Callable[..., Any]


def policy_options(command: Command) -> Command:
    """Add the options of a :class:`Policy`; the command takes ``policy``."""

    @click.option(
        "--accept-risk",
        "accepted",
        multiple=True,
        metavar="CODE",
        help="A risk code that you have read and accept; may be given several times.",
    )
    @click.option(
        "--protocol",
        "protocols",
        multiple=True,
        help="Guard: a protocol to take part in; may be given several times. All by "
        "default.",
    )
    @click.option(
        "--minimum-rows",
        default=Policy().minimum_rows,
        show_default=True,
        help="Guard: fewest rows of this party.",
    )
    @click.option(
        "--ids-per-row",
        type=click.FloatRange(min=0),
        default=Policy().ids_per_row,
        show_default=True,
        help="Guard: most ids that another party of your row group may bring, for each "
        "of your rows.",
    )
    @click.option(
        "--least-known",
        type=click.IntRange(0),
        help="Guard: fewest other members whose cards you trusted, unless you compare the "
        "safety number. By default two, or all where there are fewer; none where you "
        "accepted house.open-slot.",
    )
    @click.option(
        "--epsilon-limit",
        type=click.FloatRange(min=0),
        help="Guard: largest ε that a session may cost each person; answers without "
        "noise cost an infinite one.",
    )
    @click.option(
        "--epsilon-total",
        type=click.FloatRange(min=0),
        help="Guard: largest ε over all sessions on the same table.",
    )
    @functools.wraps(command)
    def gathered(
        *args: Any,
        accepted: tuple[str, ...],
        protocols: tuple[str, ...],
        minimum_rows: int,
        ids_per_row: float,
        least_known: int | None,
        epsilon_limit: float | None,
        epsilon_total: float | None,
        **rest: Any,
    ) -> Any:
        policy = Policy(
            accepted_risks=frozenset(accepted),
            protocols=frozenset(protocols) or None,
            minimum_rows=minimum_rows,
            ids_per_row=ids_per_row,
            least_known=least_known,
            epsilon_limit=epsilon_limit,
            epsilon_total=epsilon_total,
        )
        return command(*args, policy=policy, **rest)

    return gathered


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
    def gathered(*args: Any, given: tuple[str, ...], **rest: Any) -> Any:
        return command(*args, choices=read_values(given), **rest)

    return gathered

"""Options that say what a party accepts, and what it decides alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from clustering_protocols.common.validation_messages import did_you_mean
from party_sdk.cli.options.completion import protocol_names, risk_codes
from party_sdk.coordinator.option_parsing import read_values
from party_sdk.home.files import default_home
from party_sdk.home.policy import Policy

Command = Callable[..., Any]

_NUMBERS: Final = (
    "minimum_rows",
    "ids_per_row",
    "intersections_limit",
    "least_known",
    "epsilon_limit",
    "epsilon_total",
    "sums_limit",
)

remember_option = click.option(
    "--remember",
    is_flag=True,
    help="Write the risks that you accept into policy.toml of the home: they hold for "
    "later sessions too.",
)


def _usual(name: str) -> str:
    return f"By default as in policy.toml, or {getattr(Policy(), name):g}."


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
        "--protocol",
        "protocols",
        multiple=True,
        shell_complete=protocol_names,
        help="Guard: a protocol to take part in; may be given several times. All by "
        "default.",
    )
    @click.option(
        "--minimum-rows",
        type=click.IntRange(0),
        help=f"Guard: fewest rows of this party. {_usual('minimum_rows')}",
    )
    @click.option(
        "--ids-per-row",
        type=click.FloatRange(min=0),
        help="Guard: most ids that another party of your row group may send, for each "
        f"of your rows. {_usual('ids_per_row')}",
    )
    @click.option(
        "--intersections-limit",
        type=click.IntRange(0),
        help="Guard: most sessions of one coordinator that intersect the ids of one "
        f"table. {_usual('intersections_limit')}",
    )
    @click.option(
        "--least-known",
        type=click.IntRange(0),
        help="Guard: fewest other members whose cards you trusted, or who read the safety "
        "number to you. By default two, or all where there are fewer.",
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
    @click.option(
        "--sums-limit",
        type=click.FloatRange(0, 1),
        help="Guard: largest share of your rows that may follow from the sums that you "
        f"answer, if all others collude. {_usual('sums_limit')}",
    )
    @functools.wraps(command)
    def run_with_policy(
        *args: Any,
        home: Path | None,
        accepted: tuple[str, ...],
        protocols: tuple[str, ...],
        **given: Any,
    ) -> Any:
        said = {name: given.pop(name) for name in _NUMBERS}
        policy = _policy(home or default_home(), accepted, protocols, said)
        return command(*args, policy=policy, home=home, **given)

    return run_with_policy


def _policy(
    home: Path,
    accepted: Sequence[str],
    protocols: Sequence[str],
    said: Mapping[str, Any],
) -> Policy:
    """Return a home's policy with further risks and protocols, and numbers instead."""
    from party_sdk.home.policy_files import read_policy

    _check_codes(accepted)
    kept = read_policy(home)
    if protocols:
        said = {**said, "protocols": (kept.protocols or frozenset()).union(protocols)}
    changed = {name: value for name, value in said.items() if value is not None}
    return replace(kept, **changed).accept_risks(accepted)


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

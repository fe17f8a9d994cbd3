"""`coterie wire`: does a party program, in whichever language, speak the published wire."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from party_sdk.cli.options.common import SEED, param_option
from party_sdk.cli.options.sections import choose_option, profile_option
from party_sdk.cli.terminal.output import json_option, say

if TYPE_CHECKING:
    from clustering_protocols.terms.preparation import Missing
    from party_sdk.conformance.checker import CheckedCase

_ROWS: Final = 12  # of each slot's made table
_COLUMNS: Final = 3
_DIFFERS: Final = 5  # the input cannot be used: the program is the input
command_argument = click.argument("command", nargs=-1, required=True)


@click.group()
def wire() -> None:
    """Check a party program against the specification of the wire.

    A program reads calls from its standard input, one a line, and answers each on a
    line. Calls are those of spec/conformance.md.
    """


@wire.command()
@click.argument(
    "vectors", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@command_argument
@click.option(
    "--level",
    type=click.Choice(["A", "B", "C", "D", "E"]),
    default="E",
    show_default=True,
    help="The highest level of conformance that is asked of the program.",
)
@json_option
@click.pass_context
def check(
    context: click.Context,
    vectors: Path,
    command: tuple[str, ...],
    level: str,
    *,
    as_json: bool,
) -> None:
    """Drive the program COMMAND through all VECTORS.

    VECTORS is the folder spec/vectors. Put '--' before a COMMAND with options. Exit code
    5: an answer differs. Calls that the program does not know count as left out.
    """
    from party_sdk.conformance.checker import Checker
    from party_sdk.conformance.programs import ProgramProcess
    from party_sdk.conformance.vectors import read_layers, read_sessions

    with ProgramProcess(command) as program:
        checker = Checker(program=program, level=level)
        found = [
            *checker.check_layers(read_layers(vectors)),
            *checker.check_sessions(read_sessions(vectors)),
        ]
    if as_json:
        say(json.dumps([each.model_dump() for each in found]))
    else:
        _tell_cases(found)
    if any(each.wrong for each in found):
        context.exit(_DIFFERS)


def _tell_cases(found: list[CheckedCase]) -> None:
    for each in found:
        if each.wrong:
            say(each.sentence)
    left = Counter(each.call for each in found if each.left_out)
    wrong = sum(bool(each.wrong) for each in found)
    good = len(found) - wrong - left.total()
    say(f"{good} of {len(found)} cases are as they should be, {wrong} are not.")
    if left:
        named = ", ".join(f"{call} ({n})" for call, n in sorted(left.items()))
        say(f"{left.total()} cases of unknown calls were left out: {named}.")


@wire.command()
@click.argument("protocol")
@command_argument
@click.option(
    "--slot",
    default="west",
    show_default=True,
    help="The slot of the program.",
)
@click.option(
    "--place",
    "slots",
    multiple=True,
    metavar="NAME=ROW,COLUMN",
    help="A slot of the session; may be given several times. The default is north, south "
    "and west, with other rows each.",
)
@param_option
@choose_option
@profile_option
@click.option(
    "--range",
    "ranges",
    type=float,
    nargs=2,
    metavar="LOW HIGH",
    help="Between which values all columns lie: the terms have a dictionary that says so. "
    "Made tables lie between -8 and 16.",
)
@click.option(
    "--away",
    "absent",
    multiple=True,
    metavar="NAME=ROUND",
    help="A slot that does not come in a round; may be given several times. The terms need "
    "a quorum for it.",
)
@click.option(
    "--missing",
    type=click.Choice(["drop", "mean", "median"]),
    help="With --range: each column lacks a value in each table. Its row is left out, or "
    "this fills it.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of all chance.")
@json_option
@click.pass_context
def rehearse(
    context: click.Context,
    protocol: str,
    command: tuple[str, ...],
    slot: str,
    slots: tuple[str, ...],
    params: tuple[str, ...],
    choose: str | None,
    profiles: str | None,
    ranges: tuple[float, float] | None,
    absent: tuple[str, ...],
    missing: Missing | None,
    seed: int,
    *,
    as_json: bool,
) -> None:
    """Play a session of PROTOCOL with the program COMMAND at one slot.

    All other slots, and the analyst, are played here with known chance. Each line says
    what the program was sent, and whether what came was what is due. Put '--' before a
    COMMAND with options. Exit code 5: an answer differs.
    """
    from clustering_protocols import catalogue
    from clustering_protocols.common.values import validate_values
    from clustering_protocols.terms.release import Release
    from party_sdk.conformance.programs import ProgramProcess
    from party_sdk.coordinator.option_parsing import read_layout, read_runs, read_values
    from party_sdk.lab import WireRehearsal, describe_tables, draw_tables

    layout = read_layout(slots or ("north=1,1", "south=2,1", "west=3,1"))
    if slot not in layout.names:
        raise click.UsageError(f"--slot is none of {', '.join(layout.names)}.")
    methods = catalogue.protocol(protocol).methods
    kind = methods[0].data if methods else "numeric"
    given, evaluation = read_runs(read_values(params), choose)
    agreed = catalogue.parse_params(protocol, given)
    described = profiles is not None
    tables = draw_tables(
        *(layout, _ROWS, _COLUMNS, seed, agreed, kind), described=described
    )
    sections: dict[str, object] = {"evaluation": evaluation}
    if described:
        sections["release"] = validate_values(Release, {"profiles": profiles})
    if ranges or described:
        sections["dictionary"] = describe_tables(layout, tables, ranges)
    elif missing:
        raise click.UsageError("--missing goes with --range.")
    rehearsal = WireRehearsal(
        params=agreed,
        layout=layout,
        tables=tables,
        slot=slot,
        seed=seed,
        sections=sections,
        absences=_read_absences(absent, layout.names),
    )
    if missing:
        rehearsal = rehearsal.leave_gaps(missing)
    differs = False
    with ProgramProcess(command) as program:
        for message in rehearsal.play(program):
            differs |= bool(message.wrong)
            say(message.model_dump_json() if as_json else message.sentence)
    if differs:
        context.exit(_DIFFERS)


def _read_absences(said: tuple[str, ...], names: Sequence[str]) -> dict[int, list[str]]:
    """Return who does not come in which round."""
    found: dict[int, list[str]] = {}
    for each in said:
        name, _, number = each.partition("=")
        if name not in names or not number.isdecimal():
            raise click.UsageError(f"--away {each}: not one of the slots, and a round.")
        found.setdefault(int(number), []).append(name)
    return found

"""`coterie advise`: recommend the methods that fit a situation."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from clustering_protocols.common.limits import MAX_GROUP_SLOTS
from party_sdk.cli.options import Rows
from party_sdk.cli.parameters import command, option
from party_sdk.cli.terminal.output import Output, align_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from party_sdk.advice import Advice, Fit, Situation

_WIDTH = 88
_MAX_COMMANDS = 3  # --json returns the commands of all fits


@command()
def advise(
    *,
    partitioning: Annotated[
        Literal["horizontal", "vertical", "mixed"],
        option(
            "horizontal: different people at each party. vertical: different variables "
            "of the same people. mixed: both."
        ),
    ],
    parties: Annotated[
        int, option("Number of parties.", low=2, high=MAX_GROUP_SLOTS - 1)
    ],
    distances: Annotated[
        Literal["no", "yes"],
        option("Whether the analyst may work out distances between rows."),
    ] = "no",
    data: Annotated[
        Literal["numeric", "counts", "categories"],
        option("Measurements, or counts of objects and items."),
    ] = "numeric",
    rows: Rows = None,
) -> Output:
    """List the methods that fit your situation, and explain why the others do not.

    Methods are ordered by privacy, then accuracy, then number of rounds.
    docs/choosing.md has the whole table.
    """
    from party_sdk.advice import Situation, advise as find_methods

    situation = Situation(
        partitioning=partitioning,
        parties=parties,
        distances=distances == "yes",
        data=data,
        rows=rows,
    )
    advice = find_methods(situation)
    text = "\n".join(_advice_lines(situation, advice))
    return Output(_advice_document(advice), text.split("\n"))


def _advice_document(advice: "Advice") -> dict[str, Any]:
    return {
        "fits": [
            {
                "protocol": fit.protocol,
                "algorithm": fit.method.name,
                "params": dict(fit.params),
                "risks": list(fit.risks),
                "analyst": fit.exposures[0].word,
                "with_a_party": fit.exposures[1].word,
                "rounds": fit.method.rounds.word,
                "warnings": list(fit.warnings),
                "command": fit.command,
            }
            for fit in advice.fits
        ],
        "with_distances": [fit.name for fit in advice.with_distances],
        "others": dict(advice.unsuitable),
    }


def _advice_lines(situation: "Situation", advice: "Advice") -> "Iterator[str]":
    if advice.fits:
        yield from _fit_lines(situation, advice.fits)
    else:
        yield "No method fits all of these answers."
    if advice.with_distances:
        names = "; ".join(fit.name for fit in advice.with_distances)
        also = " also" if advice.fits else ""
        yield _wrap_line(f"With --distances yes these would{also} fit: {names}.")
    if advice.unsuitable:
        yield "\nNot these:"
    for name, reason in advice.unsuitable.items():
        begin = f"   {name:8}"
        yield click.wrap_text(reason, _WIDTH, begin, " " * len(begin))


def _fit_lines(situation: "Situation", fits: "Sequence[Fit]") -> "Iterator[str]":
    from party_sdk.advice import COLUMNS, comparison_row

    rows: list[tuple[str, ...]] = [COLUMNS]
    for number, fit in enumerate(fits, start=1):
        name, *texts = comparison_row(fit.protocol, fit.method, situation.partitioning)
        rows.append((f"{number}. {name}", *texts))
    yield from align_columns(rows)
    yield _wrap_line(f"\n{situation.legend}")
    for fit in fits:
        for warning in fit.warnings:
            yield _wrap_line(f"{fit.name}: warning: {warning}")
    yield "\nBegin with one of these:"
    for fit in fits[:_MAX_COMMANDS]:
        yield f"   {fit.command}"
    if situation.partitioning != "horizontal":
        yield _wrap_line(
            "If the parties have only some people in common, add --param "
            "alignment.method=ecdh."
        )
    yield _wrap_line("'coterie protocols NAME' says who learns what, and the risks.")


def _wrap_line(text: str) -> str:
    return click.wrap_text(text, _WIDTH)

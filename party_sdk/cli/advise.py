"""`coterie advise`: which protocol fits data, network and trust."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.common.limits import MAX_GROUP_SLOTS
from party_sdk.advice.advice_form import QUESTIONS
from party_sdk.cli.options.common import columns_option, rows_option, schema_option
from party_sdk.cli.terminal.output import json_option

if TYPE_CHECKING:
    from party_sdk.advice.advice import Advice, Fit
    from party_sdk.advice.relaxed_answers import RelaxedAnswers

_WIDTH = 88
_PARTIES = click.IntRange(2, MAX_GROUP_SLOTS - 1)
_CHOICES: Mapping[str, Any] = {
    name: click.Choice(question.choices) if question.choices else _PARTIES
    for name, question in QUESTIONS.items()
}


@click.command()
@click.option(
    "--partitioning",
    type=_CHOICES["partitioning"],
    help="How the data is split: horizontal, other people at each party; vertical, other "
    "features of the same people; mixed, both.",
)
@click.option("--parties", type=_CHOICES["parties"], help="Number of parties.")
@click.option(
    "--overlap",
    type=_CHOICES["overlap"],
    help="Whether all parties hold exactly the same patients.",
)
@click.option(
    "--rounds",
    type=_CHOICES["rounds"],
    help="How often all parties can answer, at most.",
)
@click.option(
    "--analyst-sees",
    type=_CHOICES["analyst_sees"],
    help="The most that the analyst may work out, beside the result.",
)
@click.option(
    "--collusion",
    type=_CHOICES["collusion"],
    help="Whether the analyst may collude with one of the parties.",
)
@click.option("--data", type=_CHOICES["data"], help="The kind of data.")
@click.option("--shape", type=_CHOICES["shape"], help="The clusters that are wanted.")
@click.option(
    "--clusters",
    type=click.IntRange(2, 1000),
    default=3,
    show_default=True,
    help="Number of clusters, for the command to begin with.",
)
@rows_option
@columns_option
@schema_option
@click.option(
    "--all",
    "whole",
    is_flag=True,
    help="All methods that fit, not the best three alone.",
)
@json_option
@click.pass_context
def advise(
    ctx: click.Context,
    /,
    *,
    clusters: int,
    rows: int | None,
    columns: int | None,
    schema_files: tuple[Path, ...],
    whole: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Say which protocols fit, and why the others do not.

    Asks for what is missing where it runs in a terminal; elsewhere --partitioning and
    --parties are needed. Without your answer the analyst may work out nothing, and might
    collude with a party. Fits are listed best first: what shows least, then what loses
    least against pooled clustering, then what needs the fewest rounds. Three are printed
    whole. Where nothing fits, you read which answers would have to change. With
    --schema, a warning names the fields that the analyst may find in rows.
    docs/choosing.md explains the answers.
    """
    from party_sdk.advice.advice import (
        BEST,
        USUAL_COLUMNS,
        advise as find,
        situation_of,
    )
    from party_sdk.advice.relaxed_answers import find_relaxed_answers
    from party_sdk.coordinator.option_parsing import read_dictionary

    dictionary = read_dictionary(schema_files) or ()
    answers = _answers(ctx, given)
    width = columns or sum(len(each.fields) for each in dictionary) or USUAL_COLUMNS
    situation = situation_of(answers, clusters, rows, width, dictionary)
    found = find(situation)
    relaxed = [] if found.fits else find_relaxed_answers(situation)
    if as_json:
        click.echo(json.dumps(_document(answers, found, relaxed)))
        return
    _print(found, relaxed, len(found.fits) if whole else BEST)


def _answers(ctx: click.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer to every question: given, asked for, or the default."""
    asked = sys.stdin.isatty()
    answers: dict[str, Any] = {}
    for name, question in QUESTIONS.items():
        default = question.default
        known = given[name]
        skipped = name == "overlap" and answers["partitioning"] == "horizontal"
        if known is None and asked and not skipped:
            known = click.prompt(
                question.text, type=_CHOICES[name], default=default, err=True
            )
        if known is None and default is None:
            raise click.UsageError(f"Missing option '--{name}'.", ctx)
        answers[name] = default if known is None else known
    return answers


def _document(
    answers: Mapping[str, Any], found: Advice, relaxed: Sequence[RelaxedAnswers]
) -> dict[str, Any]:
    return {
        "answers": dict(answers),
        "fits": [_fit_document(fit, reason) for fit, reason in found.with_reasons()],
        "others": {name: list(reasons) for name, reasons in found.others.items()},
        "relaxed_answers": [
            {
                "answers": dict(each.answers),
                "methods": [
                    {"protocol": protocol, "algorithm": algorithm}
                    for protocol, algorithm in each.methods
                ],
            }
            for each in relaxed
        ],
    }


def _fit_document(fit: Fit, reason: str) -> dict[str, Any]:
    from clustering_protocols.terms.risks import sentences_of

    return {
        "protocol": fit.protocol,
        "algorithm": fit.way.name,
        "reason": reason,
        "params": dict(fit.params),
        "risks": sentences_of(fit.risks),
        "stages": list(fit.stages),
        "rounds": fit.way.rounds.word,
        "analyst_sees": fit.way.analyst_sees.word,
        "with_a_party": fit.way.exposure_with_one_party.word,
        "learns": dict(fit.learns),
        "fidelity": [
            {
                "set": each.set,
                "mean": each.mean,
                "least": each.least,
                "seeds": each.seeds,
                "rounds": each.rounds,
            }
            for each in fit.figures
        ],
        "dial": fit.way.dial,
        "large": list(fit.large),
        "cautions": list(fit.cautions),
        "command": fit.command,
    }


def _print(found: Advice, relaxed: Sequence[RelaxedAnswers], n_whole: int) -> None:
    if not found.fits:
        click.echo("No protocol fits all of this.")
    for each in relaxed:
        options = " ".join(
            f"--{question.replace('_', '-')} {answer}"
            for question, answer in each.answers.items()
        )
        fitting = "; ".join(map(", ".join, each.methods[:n_whole]))
        click.echo(f"With {options} these would fit: {fitting}.")
    for number, (fit, reason) in enumerate(found.with_reasons(), start=1):
        if number == n_whole + 1:
            click.echo("More that fits (--all prints it whole):")
        click.echo(f"{number}. {fit.protocol}, {fit.way.name}")
        _print_fact("why here", reason)
        if number <= n_whole:
            for name, text in _facts(fit):
                _print_fact(name, text)
            click.echo(f"   begin with\n     {fit.command}\n")
    if found.others:
        click.echo("Not these:")
    for name, reasons in found.others.items():
        _print_fact(name, " ".join(reasons))


def _print_fact(name: str, text: str) -> None:
    begin = f"   {name:13}"
    click.echo(click.wrap_text(text, _WIDTH, begin, " " * len(begin)))


def _facts(fit: Fit) -> list[tuple[str, str]]:
    """Return names and texts of what is printed of a fit."""
    from clustering_protocols.terms.risks import worst_first
    from party_sdk.advice.evidence import in_words

    way = fit.way
    facts = [
        ("for", f"{way.data} data, {' or '.join(way.shapes)} clusters"),
        ("analyst", f"can work out {way.analyst_sees.sentence}"),
        ("with a party", f"can work out {way.exposure_with_one_party.sentence}"),
        ("rounds", f"{way.rounds.word}: {way.rounds.sentence}{_format_rounds(fit)}"),
        ("stages", ", ".join(fit.stages)),
    ]
    facts += [("dial", way.dial)] if way.dial else []
    facts += [("learns", f"{who}: {sentence}") for who, sentence in fit.learns.items()]
    facts += [
        ("risk", f"{code}: {risk.sentence}")
        for code, risk in worst_first(fit.risks).items()
    ]
    facts += [("size", sentence) for sentence in fit.large]
    facts += [("warning", sentence) for sentence in fit.cautions]
    told = in_words(fit.figures)
    return [*facts, *([("fidelity", told)] if told else [])]


def _format_rounds(fit: Fit) -> str:
    counts = [each.rounds for each in fit.figures]
    if not counts:
        return ""
    least, most = min(counts), max(counts)
    seen = str(least) if least == most else f"{least} to {most}"
    return f"; {seen} in all where it was measured"

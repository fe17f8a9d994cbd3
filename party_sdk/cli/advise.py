"""`coterie advise`: which protocol fits data, network and trust."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.limits import MAX_GROUP_SLOTS
from clustering_protocols.suitability import Exposure, RoundBudget
from party_sdk.cli.output import json_option

if TYPE_CHECKING:
    from party_sdk.advice import Advice, Fit

_ANY = "any"
_WIDTH = 88
# What is asked where an option is missing, and what counts where nobody can be asked.
_QUESTIONS: Mapping[str, tuple[str, Any]] = {
    "partitioning": (
        (
            "How is the data split (horizontal: other people at each party; vertical: "
            "other features of the same people; mixed: both)"
        ),
        None,
    ),
    "parties": ("How many parties", None),
    "overlap": (
        "Do parties with different features hold the very same people",
        "full",
    ),
    "rounds": (
        "How often can all parties answer",
        "many",
    ),
    "analyst_sees": (
        (
            "What may the analyst work out, beside the result (totals: sums over all "
            "parties; geometry: distances between rows)"
        ),
        "geometry",
    ),
    "collusion": (
        "Is it to be feared that the analyst works together with a party",
        "no",
    ),
    "data": ("What is the data (counts: co-occurrences of objects and items)", _ANY),
    "shape": ("Which clusters", _ANY),
}
_SEEN = tuple(sees.word for sees in Exposure if sees is not Exposure.ROWS)
_CHOICES: Mapping[str, Any] = {
    "partitioning": click.Choice(["horizontal", "vertical", "mixed"]),
    "parties": click.IntRange(2, MAX_GROUP_SLOTS - 1),
    "overlap": click.Choice(["full", "partial"]),
    "rounds": click.Choice([rounds.word for rounds in RoundBudget]),
    "analyst_sees": click.Choice(_SEEN),
    "collusion": click.Choice(["no", "yes"]),
    "data": click.Choice([_ANY, "numeric", "counts"]),
    "shape": click.Choice([_ANY, "spherical", "arbitrary", "fuzzy", "co-clusters"]),
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
    help="Whether parties with different features hold the very same people.",
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
    help="Whether the analyst may work together with a party.",
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
@json_option
@click.pass_context
def advise(
    ctx: click.Context, /, *, clusters: int, as_json: bool, **given: Any
) -> None:
    """Say which protocols fit, and why the others do not.

    Asks for what is missing where it runs in a terminal; elsewhere --partitioning and
    --parties are needed and what is missing sets no limit. Fits are listed best first:
    what shows least, then what loses least against pooled clustering, then what needs
    the fewest rounds. docs/choosing.md explains the answers.
    """
    from party_sdk.advice import Situation, advise as find

    answers = _answers(ctx, given)
    found = find(
        Situation(
            partitioning=answers["partitioning"],
            parties=answers["parties"],
            overlap=answers["overlap"] == "full",
            rounds=RoundBudget[answers["rounds"].upper()],
            analyst_sees=Exposure[answers["analyst_sees"].upper()],
            collusion=answers["collusion"] == "yes",
            data=None if answers["data"] == _ANY else answers["data"],
            shape=None if answers["shape"] == _ANY else answers["shape"],
            n_clusters=clusters,
        )
    )
    if as_json:
        click.echo(json.dumps(_document(answers, found)))
        return
    _print(found)


def _answers(ctx: click.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer to every question: given, asked for, or the default."""
    asked = _in_terminal()
    answers: dict[str, Any] = {}
    for name, (question, default) in _QUESTIONS.items():
        known = given[name]
        skipped = name == "overlap" and answers["partitioning"] == "horizontal"
        if known is None and asked and not skipped:
            known = click.prompt(
                question, type=_CHOICES[name], default=default, err=True
            )
        if known is None and default is None:
            raise click.UsageError(f"Missing option '--{name}'.", ctx)
        answers[name] = default if known is None else known
    return answers


def _in_terminal() -> bool:
    return sys.stdin.isatty()


def _document(answers: Mapping[str, Any], found: Advice) -> dict[str, Any]:
    return {
        "answers": dict(answers),
        "fits": [_fit_document(fit) for fit in found.fits],
        "others": {name: list(reasons) for name, reasons in found.others.items()},
    }


def _fit_document(fit: Fit) -> dict[str, Any]:
    return {
        "protocol": fit.protocol,
        "algorithm": fit.way.name,
        "params": dict(fit.params),
        "risks": dict(fit.risks),
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
        "command": fit.command,
    }


def _print(found: Advice) -> None:
    if not found.fits:
        click.echo("No protocol fits all of this.")
    for number, fit in enumerate(found.fits, start=1):
        click.echo(f"{number}. {fit.protocol}, {fit.way.name}")
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
    way = fit.way
    facts = [
        ("for", f"{way.data} data, {' or '.join(way.shapes)} clusters"),
        ("analyst", f"can work out {way.analyst_sees.sentence}"),
        ("with a party", f"can work out {way.exposure_with_one_party.sentence}"),
        ("rounds", f"{way.rounds.word}: {way.rounds.sentence}{_seen(fit)}"),
        ("stages", ", ".join(fit.stages)),
    ]
    facts += [("dial", way.dial)] if way.dial else []
    facts += [("learns", f"{who}: {sentence}") for who, sentence in fit.learns.items()]
    facts += [("risk", f"{code}: {sentence}") for code, sentence in fit.risks.items()]
    return [*facts, *_measured(fit)]


def _measured(fit: Fit) -> list[tuple[str, str]]:
    """Return how fidelity is told, where it was measured."""
    if not fit.figures:
        return []
    worst = min(fit.figures, key=lambda each: each.mean)
    best = max(fit.figures, key=lambda each: each.mean)
    n_sets = len(fit.figures)
    found = f"{worst.mean:.3f} on each of {n_sets} sets"
    if worst.mean < best.mean:
        found = (
            f"{worst.mean:.3f} ({worst.set}) to {best.mean:.3f} ({best.set}) on "
            f"{n_sets} sets"
        )
    return [("fidelity", f"{found}; 1: equal to pooled clustering")]


def _seen(fit: Fit) -> str:
    counts = [each.rounds for each in fit.figures]
    if not counts:
        return ""
    least, most = min(counts), max(counts)
    seen = str(least) if least == most else f"{least} to {most}"
    return f"; {seen} in all where it was measured"

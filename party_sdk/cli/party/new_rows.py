"""`coterie party predict`: new rows labelled at home, and what is printed of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from party_sdk.cli.options.arguments import session_argument, slot_argument
from party_sdk.cli.options.policy import choice_option
from party_sdk.cli.options.tables import data_options
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.terminal.output import align_columns, json_option, say
from party_sdk.cli.terminal.output_files import labels_option, tell_labels
from party_sdk.results.output_files import keep_others

if TYPE_CHECKING:
    from coterie_pages.models import NewRowsSummary, VariableDrift
    from party_sdk.admission.table_files import TableSpec
    from party_sdk.application.home import Home

_MOST_VARIABLES: Final = 12


@click.command()
@session_argument
@slot_argument
@data_options
@labels_option
@choice_option
@here_options(maps=True)
@json_option
def predict(
    session_id: str,
    slot: str,
    rows: TableSpec,
    labels: Path,
    choices: Mapping[str, Any],
    here: Home,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Label new rows at home, where the terms release what that takes.

    Each row gets its label, the distance to the centre of its cluster, and the share of
    its columns outside the trained range. Prints how far the rows lie from the session's.
    Nothing is sent. You are asked first where they look like other units.
    """
    from party_sdk.cli.terminal.asker import confirm_units

    keep_others([labels], None, force=force)
    found = here.label(session_id, slot, rows, choices=choices, agree=confirm_units)
    path, summary = found.save(labels), found.summary
    if as_json:
        said = {} if summary is None else summary.model_dump(mode="json")
        say(json.dumps({"labels": str(path), **said}))
        return
    tell_labels(path, len(found.labels))
    for line in () if summary is None else summary_lines(summary):
        say(line)


def summary_lines(summary: NewRowsSummary) -> Iterator[str]:
    """Yield what is said of new rows as a whole."""
    from coterie_pages.formatting import percent

    if left := summary.n_rows - summary.n_labelled:
        yield f"without a label, for want of a value: {left} rows"
    usual = f"the same distribution has at most {percent(summary.by_chance)} on average"
    yield f"outside the range of your trained rows: {percent(summary.outside)} ({usual})"
    shares = [
        [
            f"cluster {each.cluster}",
            f"{each.n_rows}",
            percent(each.then),
            percent(each.now),
        ]
        for each in summary.clusters
    ]
    yield from align_columns([["", "new rows", "share then", "now"], *shares])
    yield from _variable_lines(summary)


def _variable_lines(summary: NewRowsSummary) -> Iterator[str]:
    """Yield the columns that moved most."""
    shown = summary.variables[:_MOST_VARIABLES]
    heads = ["", "mean then", "now", "shift", "outside", "missing then", "now"]
    rows = [heads, *map(_variable, shown)]
    if all(each.missing_now is None for each in shown):
        rows = [row[:-2] for row in rows]
    yield from align_columns(rows)
    if left := len(summary.variables) - len(shown) + summary.more_variables:
        yield f"and {left} columns that moved less"


def _variable(each: VariableDrift) -> list[str]:
    from coterie_pages.formatting import drift_value, percent

    return [
        each.name,
        drift_value(each, each.then),
        drift_value(each, each.now),
        "–" if each.shift is None else f"{each.shift:+.2f}",
        *map(percent, (each.outside, each.missing_then, each.missing_now)),
    ]

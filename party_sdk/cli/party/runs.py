"""`coterie party runs`: each number of clusters over the own rows, before the choice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.options.arguments import invited_argument, optional_slot_argument
from party_sdk.cli.options.tables import data_options
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.terminal.output import json_option, say

if TYPE_CHECKING:
    from coterie_pages.models import OwnRun, RunOverlap
    from party_sdk.admission.table_files import TableSpec
    from party_sdk.application.home import Home


@click.command()
@invited_argument
@optional_slot_argument
@data_options
@here_options(maps=True)
@json_option
def runs(
    session: str,
    slot: str | None,
    rows: TableSpec,
    here: Home,
    *,
    as_json: bool,
) -> None:
    """See your own rows for each number of clusters.

    SESSION is its id, or your invitation; SLOT is needed where you sat at several. For
    each number you read sizes and the profile of your rows, and how the next number
    shares them out. Nothing is sent. Methods whose analyst labels the rows (dc, omnifc,
    pqmds) have nothing to show before the result.
    """
    from party_sdk.application.exports import look_at_runs

    found, overlaps = look_at_runs(here, here.one_of(session, slot), rows)
    if as_json:
        say(json.dumps(_document(found, overlaps)))
        return
    for run in found:
        _show(run)
    for overlap in overlaps:
        _show_overlap(overlap)


def _document(found: list[OwnRun], overlaps: list[RunOverlap]) -> dict[str, Any]:
    return {
        "runs": [run.model_dump(mode="json", exclude={"sizes"}) for run in found],
        "overlaps": [each.model_dump(mode="json") for each in overlaps],
    }


def _show(run: OwnRun) -> None:
    from party_sdk.cli.options.release import profile_lines

    say(f"{run.n_clusters} clusters; your rows: {', '.join(map(str, run.own_sizes))}")
    for line in () if run.profile is None else profile_lines([run.profile]):
        say(f"  {line}")


def _show_overlap(overlap: RunOverlap) -> None:
    from party_sdk.cli.terminal.output import align_columns

    say(f"your rows, from {overlap.first} to {overlap.second} clusters:")
    heads = ["", *(f"cluster {k}" for k in range(overlap.second))]
    lines = [
        [f"cluster {number}", *map(str, counts)]
        for number, counts in enumerate(overlap.counts)
    ]
    for line in align_columns([heads, *lines]):
        say(f"  {line}")

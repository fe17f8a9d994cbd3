"""A run at a terminal: its warnings, and what is printed of its result."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.options.release import documents, outcome_lines, profile_lines
from party_sdk.cli.terminal.output import report_lines, say, show_progress
from party_sdk.cli.terminal.output_files import tell_labels
from party_sdk.results.unit_check import oddities

if TYPE_CHECKING:
    from pathlib import Path

    from party_sdk.application.home import Home
    from party_sdk.cli.options.tables import GivenTable
    from party_sdk.party.participant import Party
    from party_sdk.results.results import Result

_INTERRUPTED = 130  # as shells say it


def take_part(
    here: Home,
    member: Party,
    rows: GivenTable,
    labels: Path,
    picture: Path | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Run a party, and print its result."""
    from party_sdk.application.outputs import Outputs
    from party_sdk.tables.linkage import tell_unlinked

    outputs = Outputs(labels=labels, picture=picture, force=force)
    try:
        result = here.run(
            member, rows, outputs, on_warning=_warn, on_progress=show_progress
        )
    except KeyboardInterrupt:
        say("Stopped. The same command continues where it was.", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    if picture is not None:
        say(f"a picture in {picture}", err=True)
    unlinked = here.find_unlinked(member, rows, result)
    if as_json:
        rows_told = {"unlinked": [each._asdict() for each in unlinked]}
        told = rows_told if unlinked else {}
        say(json.dumps(_document(member, result, labels) | told))
        return
    _show(member, result, labels, tell_unlinked(unlinked))


def _show(member: Party, result: Result, labels: Path, unlinked: Sequence[str]) -> None:
    from coterie_pages.result_texts.result_doubts import rows_without_cluster
    from coterie_pages.views.result_views import outcomes_in
    from party_sdk.reports.run_reports import linked_rows
    from party_sdk.results.warnings import result_cautions

    if linked := linked_rows(member.terms, member.invitation.slot, result):
        say(f"linked rows: {linked}")
    for line in unlinked:
        say(line)
    tell_labels(labels, len(result.labels))
    if result.cluster_sizes is not None:
        own, sizes = result.own_sizes.tolist(), result.cluster_sizes.tolist()
        all_, yours = (", ".join(map(str, each)) for each in (sizes, own))
        say(f"rows of all parties per cluster: {all_}; yours: {yours}")
        if without := len(result.labels) - sum(own):
            say(f"label -1: {rows_without_cluster(without)}")
        for sentence in oddities(own, sizes):
            _warn(sentence)
    for sentence in result_cautions(member.terms, result):
        _warn(sentence)
    told = {k: v for k, v in result.report.items() if k != "n_coinciding"}
    for line in report_lines(told):
        say(line)
    profiles = profile_lines(result.profiles)
    outcomes = outcome_lines(outcomes_in(member.terms, result.profiles))
    for line in chain(_runs_of(member, result), profiles, outcomes):
        say(line)
    for cluster, items in enumerate(result.top_items(result.columns)):
        say(f"cluster {cluster}: {', '.join(items)}")


def _warn(sentence: str) -> None:
    say(f"warning: {sentence}", err=True)


def _runs_of(member: Party, result: Result) -> Iterator[str]:
    from party_sdk.cli.terminal.run_table import table_lines
    from party_sdk.reports.run_reports import numbers_of

    figures = [each.values for each in result.figures]
    return table_lines(numbers_of(member.terms, result), figures, result.chosen)


def _document(member: Party, result: Result, path: Path) -> dict[str, Any]:
    """Return the whole result but the labels, which stay in their file."""
    from coterie_pages.views.result_views import outcomes_in
    from party_sdk.reports.run_reports import runs_of

    sizes, centroids = result.cluster_sizes, result.centroids
    return {
        "session": member.terms.session,
        "slot": member.invitation.slot,
        "labels": str(path),
        "n_rows": len(result.labels),
        "columns": list(result.columns),
        "cluster_sizes": None if sizes is None else sizes.tolist(),
        "own_sizes": result.own_sizes.tolist(),
        "centroids": None if centroids is None else centroids.tolist(),
        "runs": [
            {**run.figures, "n_clusters": run.n_clusters, "chosen": run.chosen}
            for run in runs_of(member.terms, result)
        ],
        **documents(result.profiles, outcomes_in(member.terms, result.profiles)),
        "report": dict(result.report),
        "safety_number": member.safety_number,
    }

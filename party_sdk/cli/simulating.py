"""What `coterie simulate` runs: one case, told at length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clustering_protocols import metrics, simulation
from clustering_protocols.arrays import IntArray
from party_sdk.cli.cases import case_of
from party_sdk.cli.comparing import Tried, document, tried
from party_sdk.cli.comparing_table import lines, notes
from party_sdk.cli.runs import table_lines
from party_sdk.cli.trial import evaluate, read
from party_sdk.results import write_labels
from party_sdk.tables import How
from party_sdk.trials.layouts import Lattice


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of a simulated session.

    Attributes
    ----------
    report : mapping
        JSON values.
    runs : sequence of str
        What each run is like, as far as it is known: lines of a table.
    """

    report: Mapping[str, Any]
    runs: Sequence[str]


def simulate(
    protocol: str,
    data: Path,
    how: How,
    params: Mapping[str, Any],
    lattice: Lattice,
    seed: int,
    *,
    choose: str | None,
    truth: str | None,
    labels: Path | None,
) -> Trial:
    """Simulate a session over a table; write the labels if a file is named."""
    table = read(data, how, truth)
    case = case_of(
        data.name, table, protocol, params, lattice, choose=choose, seed=seed
    )
    evaluated = evaluate(table, case.params, case.evaluation, lattice, seed)
    if labels is not None:
        source = table.source
        write_labels(labels, evaluated.labels, source.ids, source.naming, {})
    report = _report(evaluated, table.classes)
    result = tried(case, evaluated)
    report["warnings"] = [*table.source.report.warnings, *result.warnings]
    return Trial(report={**document(result), **report}, runs=_runs(result))


def _runs(result: Tried) -> list[str]:
    """Return lines of a table: of one run its figures, as its parties would see them."""
    if result.case.evaluation is not None:
        return [*lines([result]), *notes([result], []), ""]
    figures = [lane.figures for lane in result.lanes if lane.figures]
    numbers = [each.n_clusters for each in figures]
    shown = list(table_lines(numbers, [each.values for each in figures], None))
    return [*shown, ""] if shown else []


def _report(
    evaluated: simulation.Evaluated, classes: IntArray | None
) -> dict[str, Any]:
    run = evaluated.simulated
    clustered = evaluated.labels >= 0  # a label of -1 is of no cluster: noise
    report: dict[str, Any] = {
        "fidelity": evaluated.fidelity,
        "rounds": run.rounds,
        "cluster_sizes": np.bincount(evaluated.labels[clustered]).tolist(),
        "noise_rows": int(np.count_nonzero(~clustered)),
        "roles": {
            role: {"seconds": round(cost.seconds, 6), "sent_bytes": cost.sent_bytes}
            for role, cost in run.costs.items()
        },
    }
    if classes is not None:
        report["truth"] = metrics.agreement_with(classes, evaluated.labels)
        report["pooled_truth"] = metrics.agreement_with(classes, evaluated.pooled)
    return report

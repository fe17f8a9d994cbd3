"""What `coterie simulate` runs: one case, told at length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from party_sdk.cli.lab.case_results import CaseResult, document
from party_sdk.cli.lab.case_table import lines, notes
from party_sdk.cli.lab.cases import case_of
from party_sdk.cli.lab.trial import read
from party_sdk.cli.terminal.run_table import table_lines
from party_sdk.lab import Lattice, SimulatedSession
from party_sdk.results.label_files import write_labels
from party_sdk.tables import How


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of a simulated session.

    report: JSON values.
    runs: what each run is like, as far as it is known: lines of a table.
    manifest: JSON values; see :attr:`SimulatedSession.manifest`.
    """

    report: Mapping[str, Any]
    runs: Sequence[str]
    manifest: Mapping[str, Any] | None


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
    manifest: bool,
) -> Trial:
    """Simulate a session over a table; write the labels if a file is named."""
    table = read(data, how, truth)
    case = case_of(
        data.name, table, protocol, params, lattice, choose=choose, seed=seed
    )
    result = CaseResult(case=case, session=case.play(seed, manifest=manifest))
    session, source = result.session, table.source
    if labels is not None:
        write_labels(labels, session.whole.labels, source.ids, source.naming, {})
    warnings = [*source.report.warnings, *session.warnings]
    report = {**document(result), **_report(session), "warnings": warnings}
    return Trial(report=report, runs=_runs(result), manifest=session.manifest)


def _runs(result: CaseResult) -> list[str]:
    """Return lines of a table: of one run its figures, as its parties would see them."""
    if result.case.evaluation is not None:
        return [*lines([result]), *notes([result], []), ""]
    figures = [run.figures for run in result.session.runs if run.figures]
    numbers = [each.n_clusters for each in figures]
    shown = list(table_lines(numbers, [each.values for each in figures], None))
    return [*shown, ""] if shown else []


def _report(session: SimulatedSession) -> dict[str, Any]:
    """Return what is told of one case beside what is told of every case."""
    labels = session.whole.labels
    clustered = labels >= 0  # a label of -1 is of no cluster: noise
    return {
        "cluster_sizes": np.bincount(labels[clustered]).tolist(),
        "noise_rows": int(np.count_nonzero(~clustered)),
        "roles": {
            role: {"seconds": round(cost.seconds, 6), "sent_bytes": cost.sent_bytes}
            for role, cost in session.costs.items()
        },
    }

"""What `coterie simulate` runs: all roles in one process, over one table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from clustering_protocols import metrics, simulation
from clustering_protocols.data import matrix
from clustering_protocols.registry import parse_params
from clustering_protocols.terms import Layout
from party_sdk.frames import column_names, open_table, read_column


def simulate(
    protocol: str,
    data: Path,
    params: Mapping[str, Any],
    lattice: tuple[int, int],
    seed: int,
    *,
    truth: str | None,
    ignored: tuple[str, ...],
    labels: Path | None,
) -> dict[str, Any]:
    """Return the report of a run over a table; write the labels if a file is named."""
    left_out = {truth, *ignored}
    columns = [name for name in column_names(data) if name not in left_out]
    X = matrix(open_table(data, columns=columns))
    parts = simulation.split(X, Layout.lattice(*lattice), seed, columns)
    evaluated = simulation.evaluate(
        parse_params(protocol, params), X, parts, seed, timer=time.perf_counter
    )
    report = _report(evaluated, data, truth)
    if labels is not None:
        csv.write_csv(pa.table({"label": evaluated.labels}), labels)
    return report


def _report(
    evaluated: simulation.Evaluated, data: Path, truth: str | None
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
    if truth is not None:
        classes = np.unique(read_column(data, truth), return_inverse=True)[1]
        report["truth"] = metrics.agreement_with(classes, evaluated.labels)
        report["pooled_truth"] = metrics.agreement_with(classes, evaluated.pooled)
    return report

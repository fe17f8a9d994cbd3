"""What `coterie simulate` runs: all roles in one process, over one table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from clustering_protocols import metrics, simulation
from clustering_protocols.arrays import IntArray
from clustering_protocols.data import matrix
from clustering_protocols.errors import InvalidParameters
from clustering_protocols.recipe import Preparation
from clustering_protocols.registry import parse_params
from clustering_protocols.schema import Field
from clustering_protocols.terms import Layout
from party_sdk.results import write_labels
from party_sdk.tables import How, open_as
from party_sdk.tables.columns_of_files import column_names, read_column
from party_sdk.tables.names import naming


def simulate(
    protocol: str,
    data: Path,
    how: How,
    params: Mapping[str, Any],
    lattice: tuple[int, int],
    seed: int,
    *,
    truth: str | None,
    labels: Path | None,
) -> dict[str, Any]:
    """Return the report of a run over a table; write the labels if a file is named."""
    classes = _classes(data, how, truth)
    table = open_as(data, _without(data, how, truth))
    X = matrix(table)
    agreed = _agreed(how, table.columns, lattice[1])
    parts = simulation.split(
        X,
        Layout.lattice(*lattice),
        seed,
        table.columns,
        dictionary=agreed["dictionary"],
    )
    evaluated = simulation.evaluate(
        parse_params(protocol, params),
        X,
        parts,
        seed,
        timer=time.perf_counter,
        **agreed,
    )
    if labels is not None:
        write_labels(labels, evaluated.labels, table.ids, table.naming, {})
    return {**_report(evaluated, classes), "warnings": table.report.warnings}


def _agreed(how: How, columns: Sequence[str], n_groups: int) -> dict[str, Any]:
    """Return dictionary and preparation of each column group, where there are any.

    The fields are dealt out to the groups in their order.
    """
    schema, said = how.schema, how.preparation
    if schema is None:
        return {"dictionary": None, "preparation": None}
    fields = [schema.field(name) for name in columns]
    ends = np.linspace(0, len(fields), n_groups + 1).round().astype(int)
    groups = [tuple(fields[begin:end]) for begin, end in pairwise(ends)]
    if not all(groups):
        raise InvalidParameters("There are more column groups than fields.")
    return {
        "dictionary": [schema.model_copy(update={"fields": group}) for group in groups],
        "preparation": None if said is None else [_of(said, group) for group in groups],
    }


def _of(said: Preparation, fields: Sequence[Field]) -> Preparation:
    names = {field.name for field in fields}
    own = tuple(each for each in said.fields if each.name in names)
    return Preparation(missing=said.missing, fields=own)


def _classes(data: Path, how: How, truth: str | None) -> IntArray | None:
    """Return the true classes as numbers, where a column holds them."""
    if truth is None:
        return None
    found = np.unique(read_column(data, truth, how.dialect), return_inverse=True)
    return found[1].astype(np.int64)


def _without(data: Path, how: How, truth: str | None) -> How:
    """Leave the true classes out of what is clustered."""
    if truth is None or how.columns is not None or how.schema is not None:
        return how
    left_out = {truth, *naming(how.id_column)}
    names = column_names(data, how.dialect)
    return replace(how, columns=[name for name in names if name not in left_out])


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

"""A simulated session beside the same clustering on pooled data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clustering_protocols import catalogue
from clustering_protocols.contract import Params
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.simulation.pooled_columns import in_common_units
from clustering_protocols.simulation.results import Simulated, Timer
from clustering_protocols.simulation.session import run
from clustering_protocols.simulation.split import Split


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SessionEvaluation:
    """A simulated session beside the same clustering on pooled data.

    labels, pooled: int64 (n,); in the order of the pooled matrix; -1 for rows that did
        not take part.
    fidelity: adjusted Rand index between the two. NaN where a cell of the layout is
        empty: nobody holds what would be pooled, and ``pooled`` is -1 throughout.
    """

    labels: IntArray = field(repr=False)
    pooled: IntArray = field(repr=False)
    fidelity: float
    simulated: Simulated


def evaluate(
    params: Params,
    X: FloatArray,
    parts: Split,
    seed: int,
    *,
    choices: Mapping[str, Mapping[str, Any]] | None = None,
    timer: Timer = lambda: 0.0,
    **given: Any,
) -> SessionEvaluation:
    """Simulate a session over a split of X and measure its fidelity.

    With dictionary and preparation X holds fields, and NaN is no value; the same
    clustering then is that of their columns in common units.
    """
    simulated = run(
        params,
        parts.layout,
        parts.data,
        seed,
        choices=choices,
        timer=timer,
        **given,
    )
    return measure(simulated, X, parts)


def measure(simulated: Simulated, X: FloatArray, parts: Split) -> SessionEvaluation:
    """Hold a session against the same clustering on X.

    X holds a value wherever the session has one of a row that took part.
    """
    groups = map(parts.layout.row_group, range(parts.layout.n_row_groups))
    firsts = [group[0] for group in groups]
    labels = np.full(len(X), -1, dtype=np.int64)
    for first in firsts:
        labels[parts.held[first]] = simulated.outcomes[first].labels
    pooled = np.full(len(X), -1, dtype=np.int64)
    agreement = np.nan
    if parts.layout.regular:
        order = np.concatenate([parts.held[s][simulated.orders[s]] for s in firsts])
        columns = np.concatenate(list(parts.columns))
        pooled[order] = _cluster_pooled(simulated, X[np.ix_(order, columns)])
        agreement = fidelity(pooled[order], labels[order])
    return SessionEvaluation(
        labels=labels, pooled=pooled, fidelity=agreement, simulated=simulated
    )


def fidelity(pooled: IntArray, labels: IntArray) -> float:
    """Return the adjusted Rand index between labels and those of the pooled run."""
    from clustering_protocols.numerics.scores import (
        adjusted_rand,  # a second of mathematics
    )

    return adjusted_rand(pooled, labels)


def _cluster_pooled(simulated: Simulated, rows: FloatArray) -> IntArray:
    """Return the labels of the same clustering of rows in one place."""
    session = simulated.trace.session
    params, dictionary = session.params, session.terms.dictionary or ()
    if dictionary:
        roles = [field.role for schema in dictionary for field in schema.fields]
        rows = rows[:, np.array(roles) == "cluster"]
    if plans := session.terms.plans:
        rows = in_common_units(plans, rows)
        params = params.model_copy(update={"scaling": "none"})
    known = catalogue.protocol(catalogue.name_of(params))
    return known.cluster_pooled(params, rows, simulated.trace)

"""A simulated session beside the same clustering on pooled data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import Unpack

from clustering_protocols import registry
from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import Params
from clustering_protocols.simulation.agreement import Given
from clustering_protocols.simulation.pooled_columns import in_common_units
from clustering_protocols.simulation.results import Simulated, Timer
from clustering_protocols.simulation.session import run
from clustering_protocols.simulation.splitting import Split


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """A simulated session beside the same clustering on pooled data.

    Attributes
    ----------
    labels, pooled : int64 arrays of shape (n,)
        In the order of the pooled matrix; -1 for rows that did not take part.
    fidelity : float
        Adjusted Rand index between the two.
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
    **given: Unpack[Given],
) -> Evaluated:
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
    return beside_pooled(simulated, X, parts)


def whole(simulated: Simulated, n_rows: int, parts: Split) -> IntArray:
    """Return the labels of a session in the order of the pooled matrix."""
    labels = np.full(n_rows, -1, dtype=np.int64)
    for first in _first_of_row_groups(parts):
        labels[parts.held[first]] = simulated.outcomes[first].labels
    return labels


def beside_pooled(simulated: Simulated, X: FloatArray, parts: Split) -> Evaluated:
    """Return a session beside the same clustering on X.

    X holds a value wherever the session has one of a row that took part.
    """
    from clustering_protocols.metrics import adjusted_rand  # a second of mathematics

    labels = whole(simulated, len(X), parts)
    order = np.concatenate(
        [
            parts.held[first][simulated.orders[first]]
            for first in _first_of_row_groups(parts)
        ]
    )
    params = simulated.trace.session.params
    known = registry.protocol(registry.name_of(params))
    pooled = np.full(len(X), -1, dtype=np.int64)
    columns = np.concatenate(list(parts.columns))
    rows, plans = X[np.ix_(order, columns)], simulated.trace.session.terms.plans
    if plans:
        rows = in_common_units(plans, rows)
        params = params.model_copy(update={"scaling": "none"})
    pooled[order] = known.pooled(params, rows, simulated.trace)
    return Evaluated(
        labels=labels,
        pooled=pooled,
        fidelity=adjusted_rand(pooled[order], labels[order]),
        simulated=simulated,
    )


def _first_of_row_groups(parts: Split) -> list[str]:
    layout = parts.layout
    return [layout.row_group(row)[0] for row in range(layout.n_row_groups)]

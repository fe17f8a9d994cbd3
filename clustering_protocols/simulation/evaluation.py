"""Comparison of a simulated session with the same clustering on pooled data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clustering_protocols import catalogue
from clustering_protocols.contract import Params
from clustering_protocols.contract.protocol import MinimisingReference
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.site_effects import SiteEffects, harmonise
from clustering_protocols.simulation.session import SimulationResult, run
from clustering_protocols.simulation.split import Split
from clustering_protocols.terms.preparation import ColumnPlan, Fill


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SessionEvaluation:
    """The labels of a simulated session, and those of the same clustering of pooled data.

    labels, pooled: int64 (n,); in the order of the pooled matrix, -1 for rows that did
        not take part.
    fidelity: the adjusted Rand index between ``labels`` and ``pooled``. If X lacks
        values for empty cells of the layout, it is NaN, and all elements of ``pooled``
        are -1.
    """

    labels: IntArray = field(repr=False)
    pooled: IntArray = field(repr=False)
    fidelity: float
    simulated: SimulationResult


def evaluate(
    params: Params,
    X: FloatArray,
    parts: Split,
    seed: int,
    **options: Any,
) -> SessionEvaluation:
    """Simulate a session over a split of X, and compare it with pooled clustering.

    If the options contain a dictionary and a preparation, X holds the fields, with NaN
    for missing values, and the pooled clustering uses the columns prepared from them.

    **options: see :class:`~clustering_protocols.simulation.session.Session`.
    """
    simulated = run(params, parts.layout, parts.data, seed, **options)
    return compare_with_pooled(simulated, X, parts)


def compare_with_pooled(
    simulated: SimulationResult, X: FloatArray, parts: Split
) -> SessionEvaluation:
    """Compare the labels of a session with those of the same clustering of X.

    X contains the values of all rows that took part, and may also contain values for
    empty cells of the layout.
    """
    firsts = _first_slots(parts)
    labels = np.full(len(X), -1, dtype=np.int64)
    for first in firsts:
        labels[parts.held[first]] = simulated.outcomes[first].labels
    pooled = np.full(len(X), -1, dtype=np.int64)
    agreement = np.nan
    if can_be_pooled(X, parts):
        order, params, rows = _pool_session_rows(simulated, X, parts)
        reference = catalogue.find_protocol(params).reference()
        pooled[order] = reference.cluster_pooled(params, rows, simulated.trace)
        agreement = compute_fidelity(pooled[order], labels[order])
    return SessionEvaluation(
        labels=labels, pooled=pooled, fidelity=agreement, simulated=simulated
    )


def compare_objectives(
    simulated: SimulationResult, X: FloatArray, parts: Split
) -> Objectives | None:
    """Return the objectives of a session and of the pooled method with ten starts.

    The result is None if the method does not minimise an objective, or if the pooled
    table has empty cells.
    """
    if not can_be_pooled(X, parts):
        return None
    _, params, rows = _pool_session_rows(simulated, X, parts)
    reference = catalogue.find_protocol(params).reference()
    if not isinstance(reference, MinimisingReference):
        return None
    firsts = _first_slots(parts)
    pairs = [(simulated.outcomes[slot], simulated.orders[slot]) for slot in firsts]
    labels = np.concatenate([outcome.labels[order] for outcome, order in pairs])
    degrees = [
        outcome.memberships[order]
        for outcome, order in pairs
        if outcome.memberships is not None
    ]
    memberships = np.vstack(degrees) if len(degrees) == len(pairs) else None
    return reference.objectives(params, rows, (labels, memberships), simulated.trace)


def can_be_pooled(X: FloatArray, parts: Split) -> bool:
    """Return whether the pooled table has a value in every row and column."""
    return parts.layout.is_regular or not bool(np.isnan(X).any())


def compute_fidelity(pooled: IntArray, labels: IntArray) -> float:
    """Return the adjusted Rand index between pooled labels and those of a session."""
    # Imported here because the import takes a second.
    from clustering_protocols.numerics.scores import adjusted_rand

    return adjusted_rand(pooled, labels)


def _first_slots(parts: Split) -> list[str]:
    return [group[0] for group in parts.layout.row_groups]


def _pool_session_rows(
    simulated: SimulationResult, X: FloatArray, parts: Split
) -> tuple[IntArray, Params, FloatArray]:
    """Return the rows that took part, the parameters, and the pooled columns."""
    firsts = _first_slots(parts)
    order = np.concatenate([parts.held[s][simulated.orders[s]] for s in firsts])
    groups = [X[np.ix_(order, columns)] for columns in parts.columns]
    session = simulated.trace.session
    params, terms = session.params, session.terms
    for column, schema in enumerate(terms.dictionary or ()):
        names = schema.clustered_part.names
        if terms.plans:
            names = terms.plans[column].fields
        groups[column] = groups[column][:, [schema.names.index(n) for n in names]]
    if terms.plans:
        sites = np.cumsum([len(simulated.orders[s]) for s in firsts])[:-1]
        for column, plan in enumerate(terms.plans):
            memories = [
                simulated.trace.memories[slot]
                for slot in parts.layout.column_group(column)
            ]
            effects = [e for m in memories if (e := m.get(SiteEffects)) is not None]
            groups[column] = _prepare_pooled(plan, groups[column], sites, effects)
        params = params.model_copy(update={"scaling": "none"})
    return order, params, np.hstack(groups)


def _prepare_pooled(
    plan: ColumnPlan,
    fields: FloatArray,
    sites: IntArray,
    effects: Sequence[SiteEffects],
) -> FloatArray:
    """Return the columns (n, m) prepared from pooled fields (n, fields), standardised.

    sites: the index of the first row of each site, except for the first site.
    effects: the effects of each site; empty if site effects are not removed.
    """
    observed = plan.take_logarithms(fields)
    filled = [_compute_fill(fill, observed[:, fill.place]) for fill in plan.fills]
    columns = plan.prepare(observed, np.array(filled))
    if effects:
        pairs = zip(np.split(columns, sites), effects, strict=True)
        columns = np.vstack([harmonise(plan, rows, effect) for rows, effect in pairs])
    units = plan.units(columns.std(axis=0))
    scaled: FloatArray = (columns - columns.mean(axis=0)) / np.where(
        units > 0, units, 1
    )
    return scaled


def _compute_fill(fill: Fill, values: FloatArray) -> float:
    values = values[~np.isnan(values)]
    if fill.how == "mean":
        return float(values.mean())
    if fill.how == "median":
        return float(np.median(values))
    counts = np.bincount(values.astype(np.int64), minlength=len(fill.ranking))
    return float(max(fill.ranking, key=lambda level: int(counts[level])))

"""The columns of pooled fields: what a preparation is measured by.

In numpy over the whole table, without parties: it shares nothing with the stages that
pool what fills gaps but how a field becomes columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import ColumnPlan, Fill


def in_common_units(plans: Sequence[ColumnPlan], X: FloatArray) -> FloatArray:
    """Return the columns (n, m) of pooled fields X (n, fields), scaled and centred."""
    widths = [len(plan.schema.names) for plan in plans]
    parts = np.split(X, np.cumsum(widths)[:-1], axis=1)
    return np.hstack([_of_group(*pair) for pair in zip(plans, parts, strict=True)])


def _of_group(plan: ColumnPlan, fields: FloatArray) -> FloatArray:
    observed = plan.take_logarithms(fields)
    filled = [_compute_fill(fill, observed[:, fill.place]) for fill in plan.fills]
    columns = plan.prepare(observed, np.array(filled))
    units = plan.units(columns.std(axis=0))
    scaled: FloatArray = (columns - columns.mean(axis=0)) / np.where(
        units > 0, units, 1
    )
    return scaled


def _compute_fill(fill: Fill, values: FloatArray) -> float:
    """Return what fills the gaps of one field."""
    there = values[~np.isnan(values)]
    if fill.how == "mean":
        return float(there.mean())
    if fill.how == "median":
        return float(np.median(there))
    counts = np.bincount(there.astype(np.int64), minlength=len(fill.ranking))
    return float(max(fill.ranking, key=lambda place: int(counts[place])))

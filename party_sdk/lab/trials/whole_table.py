"""The table that nobody has in a session: all rows, beside the labels of both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.simulation import SessionEvaluation, SimulationResult
from party_sdk.lab.trials.parties import Deal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Whole:
    """What nobody sees in a session that is no simulation: all rows beside their labels.

    X: float64 (n, m); NaN where nobody holds a value.
    named: whether the tables name them; of matrices they are ``x0 …``.
    order: int64 (m,); these columns as parties hold them, column group by column group.
    numbers: bool (m,); which columns are numbers, not places of levels.
    labels, pooled: int64 (n,); of the session, and of the same clustering of the pooled
        tables; -1 for rows that did not take part. ``pooled`` is -1 throughout where
        nobody holds what would be pooled.
    memberships: float64 (n, n_clusters).
    """

    X: FloatArray
    columns: Sequence[str]
    named: bool
    order: IntArray
    numbers: Any
    labels: IntArray
    pooled: IntArray
    memberships: FloatArray | None


def put_together(
    held: Deal, simulated: SimulationResult, measured: SessionEvaluation
) -> Whole:
    """Return the rows of all parties beside the labels of a simulated session."""
    parts = held.parts
    order = np.concatenate(list(parts.columns))
    numbers = np.ones(len(order), dtype=bool)
    for group, schema in zip(parts.columns, held.agreed.dictionary or (), strict=False):
        numbers[group] = [
            not field.is_category and field.role == "cluster" for field in schema.fields
        ]
    return Whole(
        X=held.pooled_values,
        columns=held.columns,
        named=held.named,
        order=order,
        numbers=numbers,
        labels=measured.labels,
        pooled=measured.pooled,
        memberships=_memberships(held, simulated),
    )


def _memberships(held: Deal, simulated: SimulationResult) -> FloatArray | None:
    """Return those of all rows; zeros of rows that did not take part."""
    found: FloatArray | None = None
    for slot, outcome in simulated.outcomes.items():
        if outcome.memberships is None:
            return None
        if found is None:
            found = np.zeros((len(held.pooled_values), outcome.memberships.shape[1]))
        found[held.parts.held[slot]] = np.nan_to_num(outcome.memberships)
    return found

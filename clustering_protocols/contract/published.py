"""Records in a party's memory that the engine, the SDK and later stages read.

A stage selects rows by having the parties remember a :class:`Selection` and by ending
with ``Finish.n_rows``. From then on, the engine passes only these rows to the roles,
and at the end it restores the party's own row order in the outcome.

Clusters are numbered by published size. Centroids that are published, or that all
parties read, break ties, so that a reader of the sizes alone learns nothing from the
order of clusters of equal size. Without common centroids (split columns, masked
spaces), clusters of equal size keep the random order of the session: breaking ties by
rows would reveal which party's row is in which cluster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, TypeVar

import numpy as np
from pydantic import Field

from clustering_protocols.contract.party import Outcome, Placement
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record

OUTSIDE = -1
"""The label of rows that did not take part."""

TOOK_PART: Final = "rows that took part"
"""The key under which a report states how many rows took part."""

_Rows = TypeVar("_Rows", IntArray, FloatArray | None)


class Selection(Record):
    """A record in memory of the rows that take part.

    rows: int64 (n,); the numbers of the party's own rows, ascending.
    n_rows: how many rows of each slot take part.
    """

    kind = "selection"

    rows: Annotated[IntArray, Spec("n", low=0)]
    n_rows: dict[str, int]


def restore_row_order(outcome: Outcome, rows: IntArray, n_rows: int) -> Outcome:
    """Return an outcome in the order of all ``n_rows`` rows of a party.

    Rows that did not take part get the label -1; their other values are NaN.

    rows: int64 (k,); for each of the outcome's k rows, its number in the party's table.
    """
    return replace(
        outcome,
        labels=_scatter_rows(outcome.labels, rows, n_rows),
        memberships=_scatter_rows(outcome.memberships, rows, n_rows),
        coordinates=_scatter_rows(outcome.coordinates, rows, n_rows),
    )


def restore_placement(placement: Placement, rows: IntArray, n_rows: int) -> Placement:
    """Return a placement in the order of all ``n_rows`` new rows of a party."""
    return Placement(
        labels=_scatter_rows(placement.labels, rows, n_rows),
        distances=_scatter_rows(placement.distances, rows, n_rows),
        memberships=_scatter_rows(placement.memberships, rows, n_rows),
    )


def _scatter_rows(values: _Rows, rows: IntArray, n_rows: int) -> _Rows:
    if values is None:
        return None
    outside = OUTSIDE if values.dtype.kind == "i" else np.nan
    whole = np.full((n_rows, *values.shape[1:]), outside, dtype=values.dtype)
    whole[rows] = values
    return whole


def add_participation_note(outcome: Outcome, n: int, n_rows: int) -> Outcome:
    """Return an outcome whose report says that ``n`` of ``n_rows`` rows took part.

    If an earlier stage recorded a number, the report shows that number instead.
    """
    n_linked = n if outcome.n_took_part is None else outcome.n_took_part
    report = {**outcome.report, TOOK_PART: f"{n_linked} of {n_rows}"}
    return replace(outcome, n_took_part=n_linked, report=report)


class Assignment(Record):
    """A record in memory of the labels of this party's participating rows.

    labels: int64 (n,); -1 for rows that belong to no cluster.
    chosen: the number of the run that produced the labels.
    result: SHA-256 (hex) of the result that contained the labels.
    """

    kind = "assignment"

    labels: Annotated[IntArray, Spec("n", low=-1)]
    chosen: int
    result: str


class PrivacySpending(Record):
    """A record in memory of the privacy budget that this session has spent per person.

    epsilon: ε of all releases of all parties, or None if no noise was added.
    """

    kind = "spent"

    epsilon: float | None = Field(ge=0)


class ClusterOrder(Record):
    """A record in memory of the original cluster numbers, in their new order."""

    kind = "cluster-order"

    order: Annotated[IntArray, Spec("k", low=0)]


def order_by_size(sizes: IntArray, centroids: FloatArray | None = None) -> IntArray:
    """Return the cluster numbers (k,) ordered by size, the largest first.

    Clusters of equal size are ordered by their centroids, feature by feature. Without
    centroids they keep their order.

    sizes: int64 (k,); the sizes as they are published, because an order by exact sizes
        would reveal more than the published ones.
    centroids: float64 (k, m) or (0, m); as published.
    """
    numbers, keys = np.arange(len(sizes)), [-sizes]
    if centroids is not None and len(centroids) == len(sizes):
        keys += list(centroids.T)
    return np.lexsort((numbers, *keys[::-1])).astype(np.int64)


def order_published_first(
    n_clusters: int,
    published: IntArray,
    sizes: IntArray,
    centroids: FloatArray | None = None,
    common: FloatArray | None = None,
) -> IntArray:
    """Return all cluster numbers: the published ones by size, followed by the others.

    published: int64 (p,); the clusters that outsiders can read.
    sizes, centroids: those of ``published``; centroids are (0, m) if not published.
    common: float64 (k, m); centroids that all parties can read, which order the
        unpublished clusters.
    """
    unpublished = np.setdiff1d(np.arange(n_clusters), published)
    if common is not None:
        unpublished = unpublished[
            order_by_size(np.zeros_like(unpublished), common[unpublished])
        ]
        if centroids is None or not len(centroids):
            centroids = common[published]
    return np.concatenate([published[order_by_size(sizes, centroids)], unpublished])

"""Renumbering of clusters by size, with one permutation at the end of a session.

If the analyst labels rows, it renumbers the results and the summary. If parties label
rows, each party renumbers its outcome by the published sizes, and the analyst renumbers
the summary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from clustering_protocols import catalogue
from clustering_protocols.contract import Outcome, Placement, Run, SessionContext
from clustering_protocols.contract.published import order_by_size
from clustering_protocols.engine.packets import map_distinct
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.round_numbers import round_rows
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record

_CLUSTER_AXIS: Final = {
    "cluster_sizes": 0,
    "sizes": 0,
    "centroids": 0,
    "memberships": 1,
}
"""The axis of each array in results and summaries that is indexed by cluster."""

_ByCluster = TypeVar("_ByCluster", IntArray | None, FloatArray | None)


def renumber_run(session: SessionContext, run: Run) -> Run:
    """Return a run whose clusters are numbered by their published sizes."""
    if run.summary is None or not _is_numbered_by_engine(session):
        return run
    sizes = _published_sizes(run.summary)
    if sizes is None:
        return run
    centroids = getattr(run.summary, "centroids", None)
    order = order_by_size(sizes, centroids)
    if _is_ascending(order) and "clusters" not in run.summary.arrays:
        return run
    summary = _renumber_record(run.summary, order)
    if run.labelled_at_home:
        return replace(run, summary=summary)
    results = map_distinct(partial(_renumber_record, order=order), run.results)
    return replace(run, results=results, summary=summary)


def round_sizes(summary: Record | None) -> list[int]:
    """Return the cluster sizes in a summary, rounded to multiples of five.

    Before a run is chosen, the coordinator can read only these sizes of its summary.
    """
    sizes = None if summary is None else _published_sizes(summary)
    return [] if sizes is None else list(map(int, round_rows(sizes)))


def renumber_outcome(session: SessionContext, outcome: Outcome) -> Outcome:
    """Return an outcome whose clusters are renumbered as its ``order`` says."""
    order = outcome.order
    if order is None or _is_ascending(order) or not _is_numbered_by_engine(session):
        return replace(outcome, order=None)
    return replace(
        outcome,
        labels=_renumber_labels(outcome.labels, order),
        cluster_sizes=_reorder(outcome.cluster_sizes, order),
        centroids=_reorder(outcome.centroids, order),
        covariances=_reorder(outcome.covariances, order),
        memberships=_reorder(outcome.memberships, order, axis=1),
        item_memberships=_reorder(outcome.item_memberships, order),
        predict=outcome.predict and partial(_predict_in_order, outcome.predict, order),
        order=None,
    )


def _is_numbered_by_engine(session: SessionContext) -> bool:
    protocol = catalogue.protocol(session.terms.protocol.name)
    return not protocol.numbers_clusters(session.params)


def _is_ascending(order: IntArray) -> bool:
    return bool(np.array_equal(order, np.arange(len(order))))


def _published_sizes(summary: Record) -> IntArray | None:
    for name in ("cluster_sizes", "sizes"):
        if name in summary.arrays:
            return summary.arrays[name]
    return None


def _renumber_record(record: Record, order: IntArray) -> Record:
    changed: dict[str, NDArray[Any]] = {}
    for name, array in record.arrays.items():
        axis = _CLUSTER_AXIS.get(name)
        if axis is not None and array.ndim > axis and array.shape[axis] == len(order):
            changed[name] = np.ascontiguousarray(np.take(array, order, axis=axis))
        elif name == "labels":
            changed[name] = _renumber_labels(array, order)
        elif name == "clusters":
            changed[name] = np.arange(len(order), dtype=np.int64)
    return record.model_copy(update=changed)


def _renumber_labels(labels: IntArray, order: IntArray) -> IntArray:
    numbers = np.full(len(order) + 1, -1, dtype=np.int64)
    numbers[order] = np.arange(len(order))
    return numbers[labels]  # the last number maps label -1 to itself


def _reorder(array: _ByCluster, order: IntArray, axis: int = 0) -> _ByCluster:
    if array is None:
        return None
    return np.ascontiguousarray(np.take(array, order, axis=axis))


def _predict_in_order(
    predict: Callable[[DataSource], Placement], order: IntArray, data: DataSource
) -> Placement:
    placement = predict(data)
    return Placement(
        labels=_renumber_labels(placement.labels, order),
        distances=_reorder(placement.distances, order, axis=1),
        memberships=_reorder(placement.memberships, order, axis=1),
    )

"""The analyst role: collaboration maps from the anchors, k-means in the common space."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.algorithms.kmeans import Clustering, draw_starts, kmeans
from clustering_protocols.arrays import FloatArray
from clustering_protocols.contract import Again, AnalystRole, Ask, Finish, Plan
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.records import Record

from . import anchors, collaboration, messages
from .params import DataCollaboration


class Collaborator(AnalystRole):
    """One round: projections in, labels per row group out."""

    state = messages.Waiting

    def start(self, plan: Plan) -> Ask | Finish:
        """Ask everybody for projections."""
        params = _params(plan)
        r = _n_anchors(plan, params)
        _check_declared(plan, params)
        _check_clusters(plan, params)
        return Ask(
            state=messages.Waiting(),
            tasks={slot: messages.Project(n_anchors=r) for slot in plan.slots},
            expects=messages.Projections,
            dims={slot: {"n": plan.member(slot).n_rows, "r": r} for slot in plan.slots},
        )

    def step(
        self, plan: Plan, state: Record, contributions: Mapping[str, Record]
    ) -> Ask | Again | Finish:
        """Return the labels of all row groups."""
        params = _params(plan)
        lattice = _lattice(plan, contributions)
        Z = common_space(params, lattice, _n_features(plan))
        rng = plan.generator("dc", "starts")
        starts = draw_starts(Z, params.n_clusters, params.n_init, rng)
        return _finish(plan, kmeans(Z, starts, params.max_iter), Z.shape[1])


Lattice = list[list[messages.Projections]]


def common_space(
    params: DataCollaboration, lattice: Lattice, n_features: int
) -> FloatArray:
    """Return X̂ (n, m̂): the rows of all row groups in one space.

    Parameters
    ----------
    lattice : list over row groups of list over column groups of Projections
    n_features : int
        m, over all column groups.
    """
    affine = params.map == "affine"
    blocks = [[cell.anchors for cell in row_group] for row_group in lattice]
    if params.target == "isometric":
        target = collaboration.isometric_target(blocks, n_features)
    else:
        target = collaboration.orthonormal_target(blocks, affine=affine)
    X_hat = np.empty((sum(len(row[0].rows) for row in lattice), target.shape[1]))
    begin = 0
    for row_group, anchor_blocks in zip(lattice, blocks, strict=True):
        end = begin + len(row_group[0].rows)
        mapping = collaboration.fit_map(anchor_blocks, target, affine=affine)
        rows = [cell.rows for cell in row_group]
        collaboration.apply_map(mapping, rows, X_hat[begin:end])
        begin = end
    return X_hat


def _lattice(plan: Plan, contributions: Mapping[str, Record]) -> Lattice:
    return [
        [
            messages.Projections.narrow(contributions[slot])
            for slot in plan.layout.row_group(row)
        ]
        for row in range(plan.layout.n_row_groups)
    ]


def _finish(plan: Plan, found: Clustering, n_dimensions: int) -> Finish:
    sizes = np.bincount(found.labels, minlength=len(found.centroids))
    results: dict[str, Record] = {}
    begin = 0
    for row in range(plan.layout.n_row_groups):
        group = plan.layout.row_group(row)
        end = begin + plan.member(group[0]).n_rows
        labels = messages.RowGroupLabels(
            labels=found.labels[begin:end], cluster_sizes=sizes
        )
        results |= dict.fromkeys(group, labels)
        begin = end
    summary = messages.Summary(
        cluster_sizes=sizes,
        starts=found.starts,
        inertia=found.inertia,
        n_dimensions=n_dimensions,
    )
    return Finish(results=results, summary=summary)


def _params(plan: Plan) -> DataCollaboration:
    return DataCollaboration.model_validate(plan.params)


def _widths(plan: Plan) -> list[int]:
    """Return the number of features of each column group."""
    layout = plan.layout
    first = [layout.column_group(column)[0] for column in range(layout.n_column_groups)]
    return [plan.member(slot).n_columns for slot in first]


def _n_features(plan: Plan) -> int:
    return sum(_widths(plan))


def _n_anchors(plan: Plan, params: DataCollaboration) -> int:
    n_features = _n_features(plan)
    r = anchors.n_anchors(params.anchor, n_features)
    needed = anchors.minimum_anchors(n_features)
    if r < needed:
        raise ProtocolFailed(
            f"anchor.n_rows is {r}; {n_features} features need at least {needed}."
        )
    return r


def _check_declared(plan: Plan, params: DataCollaboration) -> None:
    if params.features is None:
        return
    declared = [len(group) for group in params.features]
    if declared != _widths(plan):
        raise ProtocolFailed(
            f"features declares {declared} features per column group; the parties hold "
            f"{_widths(plan)}."
        )


def _check_clusters(plan: Plan, params: DataCollaboration) -> None:
    layout = plan.layout
    first = [layout.row_group(row)[0] for row in range(layout.n_row_groups)]
    n_rows = sum(plan.member(slot).n_rows for slot in first)
    if params.n_clusters > n_rows:
        raise ProtocolFailed(
            f"n_clusters is {params.n_clusters}; there are {n_rows} rows."
        )

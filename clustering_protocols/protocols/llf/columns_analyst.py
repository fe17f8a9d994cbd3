"""The analyst role for split columns: it finds nearest clusters from summed distances.

The first stage chooses initial centroids. The analyst cannot tell whose row is which:

| round | task → contribution |
|---|---|
| 1 | `measure-groups` → `group-distances` |
| 2 | `start-from` → `confirmed` |

A sample, the first rows in the parties' secret row order, is dealt out to groups in
turn. Parties compute the squared distances of these rows to the means of the groups,
add a secret shift to all distances of a row, and mask them as in every update. The
analyst clusters the sample and announces the clusters, whose means become the initial
centroids. Parties refuse clusters of too few rows.

The second stage makes the updates:

| task → contribution |
|---|
| `measure` → `distances`, at most T + 1 times |
| `scatter` → `scattered`, for the final labels, unless nothing is published |

The analyst knows which rows belong to a group, and reads how much farther each row is
from the group's mean than from the mean of the first group. Let B (n, g - 1) have one
column per further group, which averages the group's rows and subtracts the average of
the first group. The centred differences are -2 G B, where G = X X' contains the scalar
products of the centred rows. So F = G B and K = B'F are known, and Y = F K^(-1/2) has Y
Y' = F K⁺ F'. This equals G if the group means span all columns (Nyström).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import AnalystRole, Ask, Finish, narrow_all
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.round_numbers import round_rows
from clustering_protocols.quality.sums import calinski_harabasz
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_all
from clustering_protocols.shared_stages.starts.messages import StartKept

from . import messages
from .maths import (
    OTHER_INPUTS,
    build_distance_encoding,
    build_scatter_encoding,
    choose_session_sample,
    fewest_rows_per_start,
    subtract_first_distance,
)
from .params import LlfSession, LosslessFederated


class ColumnStartAnalyst(AnalystRole[LosslessFederated, Record]):
    """Clusters a sample of rows, given differences of their distances to group means."""

    def start(self, session: LlfSession) -> Ask | Finish:
        """Ask every party for distances to the group means."""
        n_rows, n_groups = choose_session_sample(session)
        dims = {slot: {"n": n_rows, "groups": n_groups} for slot in session.slots}
        return Ask.to_everybody(session, messages.MeasureGroups(), dims=dims)

    def step(
        self, session: LlfSession, state: Record, contributions: Mapping[str, Record]
    ) -> Ask | Finish:
        """Announce the clusters of the sample, or finish once parties have confirmed."""
        if isinstance(next(iter(contributions.values())), StartKept):
            return Finish()
        shares = narrow_all(messages.GroupDistances, contributions)
        total = add_all(share.words for share in shares.values())
        encoding = build_distance_encoding(session)
        differences = encoding.decode(subtract_first_distance(encoding, total))
        groups = choose_session_sample(session).groups
        Y = rows_from_differences(differences, groups, 1.0 / float(encoding.unit))
        rng = session.generator("llf", "column-start")
        labels = partition_rows(Y, session.params.n_clusters, rng)
        return Ask.to_everybody(session, messages.StartFrom(labels=labels))


_NO_LABELS = np.empty(0, dtype=np.int64)


class ColumnsAnalyst(AnalystRole[LosslessFederated, Record, messages.ColumnsState]):
    """Runs updates until labels or, if fuzzy, distances converge; returns the labels."""

    state = messages.ColumnsState

    def start(self, session: LlfSession) -> Ask | Finish:
        """Ask every party for distances to the initial centroids."""
        no_rows = np.empty((0, session.params.n_clusters))
        state = messages.ColumnsState(
            number=1,
            labels=_NO_LABELS,
            memberships=no_rows,
            roots=no_rows,
            tolerances=np.empty(0),
        )
        return _ask_for_distances(session, state)

    def step(
        self,
        session: LlfSession,
        state: messages.ColumnsState,
        contributions: Mapping[str, Record],
    ) -> Ask | Finish:
        """Ask for the next update or for the scatter, or finish with the labels."""
        if state.phase == "scatter":
            return _finish_with_scatter(session, state, contributions)
        shares = narrow_all(messages.Distances, contributions)
        total = add_all(share.words for share in shares.values())
        fuzzy = session.params.fuzzy
        assign = _compute_memberships if fuzzy else _assign_nearest_clusters
        update = assign(session, total, state)
        tol = session.params.tol if fuzzy else 0
        rests = state.number > 1 and float(update.tolerances[-1]) <= tol
        if not rests and state.number <= session.params.max_iter:
            return _ask_for_distances(session, update)
        # such a centroid has the same distances to all rows as a lower-numbered one
        n_coinciding = len(total.T) - len({column.tobytes() for column in total.T})
        end = {"phase": "scatter", "rests": rests, "n_coinciding": n_coinciding}
        update = update.model_copy(update=end)
        if session.params.publish == "nothing":
            return _build_finish(session, update)
        task = messages.Scatter(labels=update.labels)
        return Ask.to_everybody(session, task, state=update)


def _assign_nearest_clusters(
    session: LlfSession, total: WordArray, state: messages.ColumnsState
) -> messages.ColumnsState:
    """Return the state with each row's nearest cluster, which its shift cannot change."""
    words = subtract_first_distance(build_distance_encoding(session), total)
    labels = np.argmin(words.view(np.int64), axis=1).astype(np.int64)
    moved = len(labels)
    if len(state.labels):
        moved = int(np.count_nonzero(labels != state.labels))
    return _record_update(state, moved, labels=labels)


def _compute_memberships(
    session: LlfSession, total: WordArray, state: messages.ColumnsState
) -> messages.ColumnsState:
    """Return the state with memberships from ratios of distances (equation 18)."""
    encoding = build_distance_encoding(session)
    if not encoding.fits(total) or (total.view(np.int64) < 0).any():
        raise ProtocolFailed(OTHER_INPUTS)
    D = np.maximum(encoding.decode(total), 0.0)
    labels = np.argmin(D, axis=1).astype(np.int64)
    smallest = D.min(axis=1, keepdims=True)
    is_near = smallest == D
    ratios = np.where(is_near, 1.0, smallest / np.where(is_near, 1.0, D))
    ratios **= 1.0 / (session.params.exponent - 1.0)
    roots = np.sqrt(D)
    moved = float(np.linalg.norm(roots - state.roots)) if len(state.roots) else 0.0
    U = ratios / ratios.sum(axis=1, keepdims=True)
    return _record_update(state, moved, labels=labels, memberships=U, roots=roots)


def _record_update(
    state: messages.ColumnsState, moved: float, **clusters: IntArray | FloatArray
) -> messages.ColumnsState:
    """Return the state after an update that gave these clusters.

    moved: the number of changed labels; for fuzzy c-means, the Frobenius norm of the
        change in distances.
    """
    tolerances = np.append(state.tolerances, float(moved))
    return state.replace(number=state.number + 1, tolerances=tolerances, **clusters)


def _ask_for_distances(session: LlfSession, state: messages.ColumnsState) -> Ask:
    params = session.params
    n_rows = session.n_rows(session.slots[0])
    task = messages.MeasureDistances(
        number=state.number,
        labels=_NO_LABELS if params.fuzzy else state.labels,
        memberships=state.memberships,
    )
    return Ask.to_everybody(
        session,
        task,
        state=state,
        dims={slot: {"n": n_rows, "k": params.n_clusters} for slot in session.slots},
        progress={
            "updates": state.number - 1,
            "of_at_most": params.max_iter,
            "moved": [float(moved) for moved in state.tolerances[1:]],
        },
    )


def _finish_with_scatter(
    session: LlfSession,
    state: messages.ColumnsState,
    contributions: Mapping[str, Record],
) -> Finish:
    shares = narrow_all(messages.ScatterShare, contributions)
    total = add_all(share.words for share in shares.values())
    encoding = build_scatter_encoding(session)
    if not encoding.fits(total) or (total.view(np.int64) < 0).any():
        raise ProtocolFailed(OTHER_INPUTS)
    inertia, between = map(float, encoding.decode(total))
    k = np.count_nonzero(np.bincount(state.labels))
    index = calinski_harabasz(int(k), len(state.labels), between, inertia)
    return _build_finish(session, state, inertia=inertia, calinski_harabasz=index)


def _build_finish(
    session: LlfSession, state: messages.ColumnsState, **sums: float | None
) -> Finish:
    params, n_updates = session.params, state.number - 2
    sizes = np.bincount(state.labels, minlength=params.n_clusters)
    figures = Figures(
        n_clusters=int(np.count_nonzero(sizes)),
        n_iter=n_updates,
        converged=state.rests,
        **sums,
    )
    U = state.memberships
    result = messages.GroupLabels(
        labels=state.labels,
        memberships=U if params.output == "memberships" else U[:0],
        cluster_sizes=sizes,
        n_updates=n_updates,
        n_coinciding=state.n_coinciding,
        figures=figures,
    )
    silent = params.publish == "nothing"
    large = np.flatnonzero(sizes >= params.min_cluster_rows)
    published = large[:0] if silent else large
    summary = messages.ColumnsSummary(
        clusters=published,
        cluster_sizes=round_rows(sizes[published]),
        n_updates=n_updates,
        n_coinciding=None if silent else state.n_coinciding,
        tolerances=state.tolerances[1:],
    )
    return Finish.with_results(
        dict.fromkeys(session.slots, result),
        summary=summary,
        figures=None if silent else figures.round_values(),
        labelled_at_home=True,
    )


_RANK: Final = 1e-9
"""Directions whose variance is a smaller fraction of the largest are rounding errors."""
_ROUNDINGS: Final = 10.0
_N_INIT: Final = 10
_MAX_ITER: Final = 300


def rows_from_differences(
    differences: FloatArray, groups: IntArray, rounding: float
) -> FloatArray:
    """Return rows (n, r) with the same pairwise distances as the parties' joint rows.

    differences: float64 (n, g); the squared distance of each row to the mean of each
        group minus its squared distance to the mean of the first group.
    groups: int64 (n,); the group of each row.
    rounding: the largest rounding error of a difference.
    """
    F = (differences - differences.mean(axis=0))[:, 1:] / -2.0
    sums = np.zeros((differences.shape[1], F.shape[1]))
    np.add.at(sums, groups, F)
    means = sums / np.bincount(groups)[:, None]
    K = means[1:] - means[0]
    values, axes = np.linalg.eigh((K + K.T) / 2.0)
    spanned = values > max(_RANK * values.max(), _ROUNDINGS * rounding)
    if not spanned.any():  # all rows coincide
        return np.zeros((len(F), 1))
    Y: FloatArray = F @ (axes[:, spanned] / np.sqrt(values[spanned]))
    return Y


def partition_rows(Y: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Cluster rows (n, r) by k-means, with the best of ten starts.

    A cluster with fewer rows than :func:`.fewest_rows_per_start` takes the nearest rows
    of larger clusters.
    """
    clustering = kmeans(Y, draw_starts(Y, k, _N_INIT, rng), _MAX_ITER)
    labels, minimum = clustering.labels.copy(), fewest_rows_per_start(len(Y), k)
    sizes = np.bincount(labels, minlength=k)
    for cluster in np.flatnonzero(sizes < minimum):
        order = np.argsort(np.square(Y - clustering.centroids[cluster]).sum(axis=1))
        for row in order:
            if sizes[cluster] == minimum:
                break
            if sizes[labels[row]] > minimum:
                sizes[labels[row]] -= 1
                sizes[cluster] += 1
                labels[row] = cluster
    return labels

"""The analyst of split columns: a start, and nearest clusters from summed distances.

The stage of the start, without a row that the analyst can name:

| round | task → contribution |
|---|---|
| 1 | `measure-groups` → `group-distances` |
| 2 | `start-from` → `confirmed` |

The first rows that travel, in their secret order, are dealt out to groups. Parties measure
these rows to the means of the groups, shifted alike in each row and masked as in every
update. The analyst clusters what it reads and tells the clusters; each starts from the
mean of its rows, of which parties see to it that there are five.

The updates:

| task → contribution |
|---|
| `measure` → `distances`, at most T + 1 times |
| `scatter` → `scattered`, where the last update changed no label |

The analyst of split columns knows which rows a group has, and reads by how much each row
is farther from the mean of a group than from that of the first. With B (n, g - 1), whose
columns add up the rows of a group and subtract those of the first, both as means, the
centred differences are -2 G B, where G = X X' holds the scalar products of centred rows.
So F = G B and K = B'F are known, and Y = F K^(-1/2) has Y Y' = F K⁺ F', which is G where
the groups' means span as many dimensions as there are columns (Nyström).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import AnalystRole, Ask, Finish, Reopen, all_of
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.quality.sums import calinski_harabasz
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_all

from . import messages
from .maths import (
    OTHER_INPUTS,
    build_distance_encoding,
    build_scatter_encoding as encoding_of,
    hard_labels,
    least_rows,
    sample_of_session,
    subtract_first,
)
from .params import LlfSession, LosslessFederated


class ColumnStartAnalyst(AnalystRole[LosslessFederated, Record]):
    """Clusters some rows, of which it reads differences of distances."""

    def start(self, session: LlfSession) -> Ask | Finish:
        """Ask for the distances to the means of the groups."""
        n_rows, n_groups = sample_of_session(session)
        dims = {slot: {"n": n_rows, "groups": n_groups} for slot in session.slots}
        return Ask.everybody(session, messages.MeasureGroups(), dims=dims)

    def step(
        self, session: LlfSession, state: Record, contributions: Mapping[str, Record]
    ) -> Ask | Reopen | Finish:
        """Tell the clusters to start from, or finish."""
        if isinstance(next(iter(contributions.values())), messages.StartKept):
            return Finish()

        given = all_of(messages.GroupDistances, contributions)
        total = add_all(each.words for each in given.values())
        encoding = build_distance_encoding(session)
        differences = encoding.decode(subtract_first(encoding, total))
        groups = sample_of_session(session).groups
        Y = rows_from_differences(differences, groups, 1.0 / float(encoding.unit))
        rng = session.generator("llf", "column-start")
        labels = partition(Y, session.params.n_clusters, rng)
        return Ask.everybody(session, messages.StartFrom(labels=labels))


_NO_LABELS = np.empty(0, dtype=np.int64)


class ColumnsAnalyst(AnalystRole[LosslessFederated, Record, messages.ColumnsState]):
    """Runs updates until labels (or distances) rest, then hands out labels."""

    state = messages.ColumnsState

    def start(self, session: LlfSession) -> Ask | Finish:
        """Ask for the distances to the start."""
        nothing = np.empty((0, session.params.n_clusters))
        first = messages.ColumnsState(
            number=1,
            labels=_NO_LABELS,
            memberships=nothing,
            roots=nothing,
            tolerances=np.empty(0),
        )
        return _ask(session, first)

    def step(
        self,
        session: LlfSession,
        state: messages.ColumnsState,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Return the next update, the question for the figures, or the labels."""
        if state.phase == "scatter":
            return _finish_scatter(session, state, contributions)
        given = all_of(messages.Distances, contributions)
        total = add_all(each.words for each in given.values())
        fuzzy = session.params.fuzzy
        of = _degrees if fuzzy else _nearest
        found = of(session, total, state)
        now = messages.ColumnsState(
            number=state.number + 1,
            labels=found.labels,
            memberships=found.memberships,
            roots=found.roots,
            tolerances=np.append(state.tolerances, found.moved),
        )
        rests = state.number > 1 and found.moved <= (session.params.tol if fuzzy else 0)
        if rests or state.number > session.params.max_iter:
            # centroids that are exactly as far from every row as a lower one
            n_alike = len(total.T) - len({column.tobytes() for column in total.T})
            ended = {"rests": rests, "n_coinciding": n_alike}
            now = now.model_copy(update={"phase": "scatter", **ended})
            return _end(session, state, now)
        return _ask(session, now)


class _Found(NamedTuple):
    """Clusters of all rows, and how much changed: rows, or roots of distances."""

    labels: IntArray
    memberships: FloatArray
    roots: FloatArray
    moved: float


def _nearest(
    session: LlfSession, total: WordArray, before: messages.ColumnsState
) -> _Found:
    """Return the nearest clusters from distances that are shifted alike in each row."""
    words = subtract_first(build_distance_encoding(session), total)
    differences = words.view(np.int64)
    labels = np.argmin(differences, axis=1).astype(np.int64)
    known = len(before.labels) > 0
    moved = float(np.count_nonzero(labels != before.labels)) if known else len(labels)
    nothing = np.empty((0, total.shape[1]))
    return _Found(labels, nothing, nothing, float(moved))


def _degrees(
    session: LlfSession, total: WordArray, before: messages.ColumnsState
) -> _Found:
    """Return memberships from ratios to the smallest distance (equation 18)."""
    code = build_distance_encoding(session)
    if not code.fits(total) or (total.view(np.int64) < 0).any():
        raise ProtocolFailed(OTHER_INPUTS)
    D = np.maximum(code.decode(total), 0.0)
    labels = np.argmin(D, axis=1).astype(np.int64)
    smallest = D.min(axis=1, keepdims=True)
    near = smallest == D
    ratios = np.where(near, 1.0, smallest / np.where(near, 1.0, D))
    ratios **= 1.0 / (session.params.exponent - 1.0)
    roots = np.sqrt(D)
    known = len(before.roots) > 0
    moved = float(np.linalg.norm(roots - before.roots)) if known else 0.0
    return _Found(labels, ratios / ratios.sum(axis=1, keepdims=True), roots, moved)


def _ask(session: LlfSession, now: messages.ColumnsState) -> Ask:
    params = session.params
    n_rows = session.n_rows(session.slots[0])
    moved = [float(each) for each in now.tolerances[1:]]
    return Ask.everybody(
        session,
        _task(session, now),
        state=now,
        dims={slot: {"n": n_rows, "k": params.n_clusters} for slot in session.slots},
        progress={
            "updates": now.number - 1,
            "of_at_most": params.max_iter,
            "moved": moved,
        },
    )


def _task(session: LlfSession, now: messages.ColumnsState) -> messages.MeasureDistances:
    return messages.MeasureDistances(
        number=now.number,
        labels=_NO_LABELS if session.params.fuzzy else now.labels,
        memberships=now.memberships,
    )


def _end(
    session: LlfSession, before: messages.ColumnsState, now: messages.ColumnsState
) -> Ask | Finish:
    """Ask how the final clusters scatter, where the parties know them already."""
    told = hard_labels(_task(session, before))
    if session.params.publish == "nothing" or not np.array_equal(told, now.labels):
        return _finish(session, now, _figures(now))
    task = messages.Scatter(labels=now.labels)
    return Ask.everybody(session, task, state=now)


def _finish_scatter(
    session: LlfSession, now: messages.ColumnsState, contributions: Mapping[str, Record]
) -> Finish:
    given = all_of(messages.ScatterShare, contributions)
    total, code = add_all(each.words for each in given.values()), encoding_of(session)
    if not code.fits(total) or (total.view(np.int64) < 0).any():
        raise ProtocolFailed(OTHER_INPUTS)
    inertia, between = map(float, code.decode(total))
    k = np.count_nonzero(np.bincount(now.labels))
    index = calinski_harabasz(int(k), len(now.labels), between, inertia)
    figures = _figures(now, inertia=inertia, calinski_harabasz=index)
    return _finish(session, now, figures)


def _figures(now: messages.ColumnsState, **known: float | None) -> Figures:
    return Figures(
        n_clusters=int(np.count_nonzero(np.bincount(now.labels))),
        n_iter=_n_updates(now),
        converged=now.rests,
        **known,
    )


def _n_updates(now: messages.ColumnsState) -> int:
    return now.number - 2


def _finish(
    session: LlfSession, now: messages.ColumnsState, figures: Figures
) -> Finish:
    params = session.params
    sizes = np.bincount(now.labels, minlength=params.n_clusters)
    wanted = params.output == "memberships"
    silent = params.publish == "nothing"
    result = messages.GroupLabels(
        labels=now.labels,
        memberships=now.memberships if wanted else now.memberships[:0],
        cluster_sizes=sizes,
        n_updates=_n_updates(now),
        n_coinciding=now.n_coinciding,
        figures=figures,
    )
    large = np.flatnonzero(sizes >= params.min_cluster_rows)
    told = large[:0] if silent else large
    summary = messages.ColumnsSummary(
        clusters=told,
        cluster_sizes=sizes[told],
        n_updates=_n_updates(now),
        n_coinciding=None if silent else now.n_coinciding,
        tolerances=now.tolerances[1:],
    )
    results = dict.fromkeys(session.slots, result)
    let_out = None if silent else figures.round_values()
    return Finish.with_results(
        results, summary=summary, figures=let_out, labelled_at_home=True
    )


_RANK: Final = 1e-9
"""Directions of less of the largest variance are rounding."""
_ROUNDINGS: Final = 10.0
_N_INIT: Final = 10
_MAX_ITER: Final = 300


def rows_from_differences(
    differences: FloatArray, groups: IntArray, rounding: float
) -> FloatArray:
    """Return rows (n, r) whose distances are those of the joint rows.

    differences: float64 (n, g); squared distances to the mean of each group less that to
        the mean of the first.
    groups: int64 (n,).
    rounding: by how much a difference may be off.
    """
    F = (differences - differences.mean(axis=0))[:, 1:] / -2.0
    sums = np.zeros((differences.shape[1], F.shape[1]))
    np.add.at(sums, groups, F)
    means = sums / np.bincount(groups)[:, None]
    K = means[1:] - means[0]
    values, axes = np.linalg.eigh((K + K.T) / 2.0)
    kept = values > max(_RANK * values.max(), _ROUNDINGS * rounding)
    if not kept.any():  # all rows coincide
        return np.zeros((len(F), 1))
    found: FloatArray = F @ (axes[:, kept] / np.sqrt(values[kept]))
    return found


def partition(Y: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Return the clusters (n,) of rows by k-means, the best of ten starts by distance.

    A cluster of fewer than :func:`least_rows` rows gets the nearest of others that have
    more.
    """
    found = kmeans(Y, draw_starts(Y, k, _N_INIT, rng), _MAX_ITER)
    labels, least = found.labels.copy(), least_rows(len(Y), k)
    sizes = np.bincount(labels, minlength=k)
    for cluster in np.flatnonzero(sizes < least):
        near = np.argsort(np.square(Y - found.centroids[cluster]).sum(axis=1))
        for row in near:
            if sizes[cluster] == least:
                break
            if sizes[labels[row]] > least:
                sizes[labels[row]] -= 1
                sizes[cluster] += 1
                labels[row] = cluster
    return labels

"""The analyst role for split columns: nearest clusters from distances that it adds up.

| task → contribution |
|---|
| `measure` → `distances`, at most T + 1 times |
| `scatter` → `scattered`, where the last update changed no label |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import AnalystRole, Ask, Finish, Reopen, all_of
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.quality.sums import calinski_harabasz
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_all

from . import messages
from .column_distances import OTHER_INPUTS, build_distance_encoding, subtract_first
from .columns_scatter import build_scatter_encoding as encoding_of, hard_labels
from .params import LlfSession, LosslessFederated

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
            ended = {"rests": rests, "n_coinciding": _n_coinciding(total)}
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


def _n_coinciding(total: WordArray) -> int:
    """Return how many centroids are exactly as far from every row as a lower one."""
    return len(total.T) - len({distances.tobytes() for distances in total.T})


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

"""The party role for split rows: updates, closing sums and the result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from clustering_protocols.algorithms.coincidence import count_coinciding_centroids
from clustering_protocols.algorithms.row_kernels import nearest_sums
from clustering_protocols.common.errors import GuardRefused, NotReady, ProtocolFailed
from clustering_protocols.contract import Outcome, PartyRole, Placement, Reply
from clustering_protocols.contract.published import (
    ClusterOrder,
    order_by_size,
    order_published_first,
)
from clustering_protocols.numerics.data_source import (
    DataSource,
    check_column_count,
    iterate_batches,
)
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.quality.block_sums import add_by_label
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.masked_sums import check_members
from clustering_protocols.shared_stages.scaling import Scaler, check_ranges, scaler_of
from clustering_protocols.shared_stages.secrets import group_mac
from clustering_protocols.shared_stages.starts.roles import ask_about_given_start

from . import kernels, maths, messages, rows_round
from .maths import has_converged, join_sums, split_sums
from .params import LlfContext, LosslessFederated
from .rows_round import RowsRound, assign_batch

_Task = messages.Update | messages.Close | messages.Gather | messages.ReportDigest


class RowsParty(PartyRole[LosslessFederated, _Task, Record, messages.FinalTotals]):
    """Moves the centroids according to the totals, and contributes to the next sums."""

    def reply(self, context: LlfContext, task: _Task, data: DataSource) -> Reply:
        """Contribute to an update or a closing sum, or report the digest of the result."""
        view = RowsRound(context)
        _check_members(view, task)
        if isinstance(task, messages.ReportDigest):
            return _report_digest(view, task)
        if context.memory.get(messages.Centroids) is None:  # no rows have been used yet
            check_ranges(context, data)
        if isinstance(task, messages.Update):
            return _reply_update(view, task, data)
        if isinstance(task, messages.Close):
            return _reply_close(view, task, data)
        return _reply_gather(view, task, data)

    def early_outcome(self, context: LlfContext) -> Outcome | None:
        """Return labels, sizes and centroids, or None before all parties agree on them."""
        memory = context.memory
        rows, state = memory.get(messages.FinalRows), memory.get(messages.Centroids)
        sizes, order = memory.get(messages.FinalSizes), memory.get(ClusterOrder)
        if rows is None or state is None or sizes is None or order is None:
            return None
        return Outcome(
            labels=rows.labels,
            cluster_sizes=sizes.sizes,
            centroids=scaler_of(context).unscale(state.centroids),
            order=order.order,
        )

    def conclude(
        self, context: LlfContext, result: messages.FinalTotals, data: DataSource | None
    ) -> Outcome:
        """Return the outcome with labels, sizes, centroids and figures.

        A party that missed the last rounds labels its rows now, by the result's totals.
        """
        view = RowsRound(context)
        state, rows, sizes, figures = _read_final_state(view, result, data)
        order = context.memory.get(ClusterOrder)
        if order is None:
            order = _build_publication(view, result, state, sizes)[1]
        memberships = view.params.output == "memberships"
        return Outcome(
            labels=rows.labels,
            cluster_sizes=sizes.sizes,
            centroids=view.scale.unscale(state.centroids),
            memberships=rows.memberships if memberships else None,
            predict=_NearestCentroid(view.scale, state.centroids),
            report={
                "n_updates": state.number,
                "n_coinciding": count_coinciding_centroids(state.centroids),
                **_count_unique_rows(context),
            },
            figures=(figures,),
            order=order.order,
        )


def _check_members(view: RowsRound, task: _Task) -> None:
    """Check that the members of a round follow from the terms or from permitted absences.

    Raises GuardRefused if there are too few members for a masked sum, and
        ProtocolFailed if the analyst breaks the terms.
    """
    params, session = view.params, view.context.session
    check_members(view.context, task.members, params.least_parties)
    if params.quorum is not None:
        if len(task.members) < params.quorum:
            raise ProtocolFailed("The analyst names fewer members than the quorum.")
        return
    if task.members != list(session.slots):
        raise ProtocolFailed(
            "The analyst leaves out members, but the terms have no quorum."
        )


def _reply_update(view: RowsRound, task: messages.Update, data: DataSource) -> Reply:
    state = view.apply_totals(task)
    if task.number != view.context.announced_rounds.get(messages.Update.kind):
        raise ProtocolFailed("The analyst asks a second time for the same update.")
    follows = task.number == state.asked + 1
    if view.params.may_be_left_out:
        follows = task.number > state.asked
    if task.number != state.number + 1 or not follows:
        raise ProtocolFailed("The analyst asks for an update out of order.")
    history = rows_round.audit_sums(view, data, state.centroids, task.number)
    sums, weights = local_sums(view, data, state.centroids)
    words = view.encoding.encode_units(join_sums(sums, weights))
    leads = task.members[0] == view.context.slot.name
    moved = state.moved if leads else None
    contribution = messages.Sums(
        **view.mask_share(words, task.members, f"update/{task.number}"),
        start=state.centroids[:0],
        moved=None if moved is None else float(f"{moved:.2g}"),
        stop=has_converged(view.params, moved),
    )
    own = weights / split_sums(view.encoding.unit, len(weights))[1]
    V, asks = state.centroids, ""
    if not state.asked:
        asks = ask_about_given_start(
            view.context, lambda: rows_round.nearest_centroids(view, data, V)
        )
    state = state.model_copy(update={"asked": task.number, "own": own})
    remember = [*view.start_to_remember(), state, history]
    return Reply(contribution=contribution, remember=remember, asks=asks)


def local_sums(
    view: RowsRound, data: DataSource, V: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return this party's sums (k, F) and weights (k,), in whole units.

    Raises GuardRefused if the party has too few rows for sums of fuzzy memberships.
    """
    params, scale = view.params, view.scale
    _check_enough_rows(view, data.n_rows, scale.offset.size)
    sums, weights = np.zeros_like(V), np.zeros(len(V))
    affine = scale.affine
    units, weight_units = split_sums(view.encoding.unit, len(V))

    def sum_batch(batch: FloatArray) -> Iterable[FloatArray | IntArray]:
        if params.fuzzy:
            degrees = np.zeros_like(V), np.zeros(len(V))
            unit = float(weight_units[0])
            exponent = params.exponent
            kernels.fuzzy_sums(batch, *affine, V, exponent, units[0], unit, *degrees)
            return degrees
        counts = np.zeros(V.shape, np.int64), np.zeros(len(V), np.int64)
        no_inertia = np.zeros(2), np.zeros(2, np.int64)
        nearest_sums(batch, *affine, V, units[0], *counts, *no_inertia, 0.0)
        return counts

    for S, w in view.context.engine.map(sum_batch, data.batches()):
        sums += S
        weights += w
    return sums, weights


def _check_enough_rows(view: RowsRound, n_rows: int, width: int) -> None:
    """Raise GuardRefused if a single round gives as many equations as unknown numbers.

    Corcuera Bárcena et al., section IV-B, require more than k (F + 1) / F rows for k
    clusters and F columns. Here k counts the clusters of all runs.
    """
    params = view.params
    k = sum(run.n_clusters for run in view.context.session.runs)
    needed = k * (width + 1) / width
    if params.fuzzy and n_rows <= needed:
        raise GuardRefused(
            f"{n_rows} rows: sums of degrees over no more than {needed:.0f} rows could "
            "be solved for them. Use fewer clusters, or more rows."
        )


_UPDATE_AFTER_LABELS = "The analyst sends updates after labelling."


def _reply_close(view: RowsRound, task: messages.Close, data: DataSource) -> Reply:
    """Label the rows, and send this party's share of sums and counts by label."""
    state = _final_centroids(view, task)
    rows = rows_round.label_rows(view, data, state.centroids)
    history = rows_round.latest_history(view.context, data.n_rows).after_partition(
        rows.labels
    )
    rows_round.check_sums_limit(view.context, history, data.n_rows, state.number - 1)
    k = view.params.n_clusters
    sums = np.zeros((k, view.scale.offset.size))
    counts = np.bincount(rows.labels, minlength=k).astype(np.float64)
    for block, batch in iterate_batches(data):
        add_by_label(batch, *view.scale.affine, rows.labels[block], sums)
    encoding = maths.build_labels_encoding(view.params, view.scale, view.n_rows)
    words = encoding.encode(join_sums(sums, counts))
    share = view.mask_share(words, task.members, f"closing/{state.number}")
    return Reply(
        contribution=messages.ClosingShare(**share),
        remember=[*view.start_to_remember(), state, rows, history],
        notes={
            "own rows that all others together could compute, at most": min(
                history.count_derivable_rows(data.n_rows), data.n_rows
            )
        },
    )


def _reply_gather(view: RowsRound, task: messages.Gather, data: DataSource) -> Reply:
    """Send this party's share of the sums around the means of the final labels."""
    state = _final_centroids(view, task)
    final, rows = view.final_means(task, state), _labelled_rows(view, state, data)
    own = rows_round.compute_figure_sums(view, data, state, final, rows.labels)
    words = view.figures_encoding(state, final.means).encode(own)
    share = view.mask_share(words, task.members, f"gathered/{state.number}")
    return Reply(
        contribution=messages.GatheredSizes(**share),
        remember=[*view.start_to_remember(), state, rows, final],
    )


def _report_digest(view: RowsRound, task: messages.ReportDigest) -> Reply:
    """Send the result's digest and, if this party is the leader, the published part."""
    state = _final_centroids(view, task)
    sizes, figures = view.sizes_and_figures(task, state)
    centroids = state.number.to_bytes(8, "big") + state.centroids.tobytes()
    mark = sha256(centroids).digest() + sizes.sizes.tobytes()
    published, order = _build_publication(view, task, state, sizes)
    leads = task.members[0] == view.context.slot.name
    if not leads:
        empty = {name: array[:0] for name, array in published.arrays.items()}
        published = published.model_copy(update={**empty, "n_coinciding": None})
    silent = not leads or view.params.publish == "nothing"
    report = messages.DigestReport(
        **dict(published),
        digest=group_mac(view.context, "column", "told", mark),
        figures=None if silent else figures.round_values(),
    )
    return Reply(contribution=report, remember=[state, figures, sizes, order])


def _build_publication(
    view: RowsRound,
    task: messages.FinalTotals,
    state: messages.Centroids,
    sizes: messages.FinalSizes,
) -> tuple[messages.PublishedResult, ClusterOrder]:
    """Return the published part of the result, and the order that numbers the clusters.

    The order depends only on published values, because numbering clusters by exact size
    would disclose more than rounded sizes do. If nothing is published, only parties see
    the numbers of clusters.
    """
    session, final = view.context.session, view.final_means(task, state)
    scale = view.scale
    published = maths.build_publication(session, scale, state, final)
    if view.params.publish == "nothing":
        order = order_by_size(sizes.sizes, state.centroids)
    else:
        order = order_published_first(
            len(sizes.sizes),
            published.clusters,
            published.sizes,
            published.centroids,
            common=state.centroids,
        )
    return published, ClusterOrder(order=order)


@dataclass(frozen=True, slots=True, eq=False)
class _NearestCentroid:
    """Labels new rows by the session's centroids.

    It is a class, because a closure cannot be pickled.
    """

    scale: Scaler
    centroids: FloatArray

    def __call__(self, data: DataSource) -> Placement:
        check_column_count(data, self.scale.offset.size)
        V, labels = self.centroids, np.empty(data.n_rows, dtype=np.int64)
        distances = np.empty((data.n_rows, len(V)))
        for rows, batch in iterate_batches(data, len(V)):
            labels[rows], _, squares = assign_batch(self.scale, batch, V, 0.0)
            distances[rows] = np.sqrt(squares)
        return Placement(labels=labels, distances=distances)


def _read_final_state(
    view: RowsRound, result: messages.FinalTotals, data: DataSource | None
) -> tuple[messages.Centroids, messages.FinalRows, messages.FinalSizes, Figures]:
    recall = view.context.recall
    sizes = view.context.memory.get(messages.FinalSizes)
    if sizes is not None:  # transcripts of earlier runs and stages no longer exist
        state = recall(messages.Centroids)
        if result.updates[:, 0].max(initial=0) > state.number:
            raise ProtocolFailed(_UPDATE_AFTER_LABELS)
        return state, _labelled_rows(view, state, data), sizes, recall(Figures)
    state = _check_unmoved(view, view.apply_totals(result))
    return (
        state,
        _labelled_rows(view, state, data),
        *view.sizes_and_figures(result, state),
    )


def _count_unique_rows(context: LlfContext) -> dict[str, object]:
    """Report how many rows of this party have a unique combination of clusters in all runs.

    Such rows are the first to be singled out by differences between sums of runs.
    """
    n_runs = len(context.session.runs)
    if n_runs == 1:
        return {}
    labels = [
        context.memory.scope_to_run(run).get(messages.FinalRows)
        for run in range(n_runs)
    ]
    histories = np.array([rows.labels for rows in labels if rows is not None])
    _, counts = np.unique(histories, axis=1, return_counts=True)
    n_unique = int(np.count_nonzero(counts == 1))
    return {"rows whose clusters in all runs no other row shares": n_unique}


def _final_centroids(view: RowsRound, task: messages.Totals) -> messages.Centroids:
    """Return the final centroids.

    Raises ProtocolFailed if they have not converged, or if they moved after this party
        labelled its rows, whose sums would then belong to other centroids.
    """
    state = _check_unmoved(view, view.apply_totals(task))
    params = view.params
    converged = has_converged(params, state.moved, maths.ROUNDING_MARGIN)
    if not converged and state.number < params.max_iter:
        raise ProtocolFailed("The analyst closes before the centroids have converged.")
    return state


def _check_unmoved(view: RowsRound, state: messages.Centroids) -> messages.Centroids:
    """Refuse centroids that moved after this party labelled its rows."""
    memory = view.context.memory
    if memory.get(messages.FinalRows) is None:
        return state
    if state.number != view.context.recall(messages.Centroids).number:
        raise ProtocolFailed(_UPDATE_AFTER_LABELS)
    return state


def _labelled_rows(
    view: RowsRound, state: messages.Centroids, data: DataSource | None
) -> messages.FinalRows:
    """Return the labels of this party's rows, computed now if it was absent before."""
    if rows := view.context.memory.get(messages.FinalRows):
        return rows
    if data is None:
        raise NotReady("The rows are not labelled yet: run again with data.")
    return rows_round.label_rows(view, data, state.centroids)

"""A party's view of one round of split rows: totals that it checks, and sums over its rows.

Every party checks the totals that it reads. Rows do not change during a session, so in
an honest session

- a total counts no fewer rows of a cluster than this party has in it;
- the sums of all clusters add up to the same total in every round;
- the inertia around the new centroids is no larger than with the old clusters, because
  each row joins the nearest centroid. Both inertias Σ_c Σ_i ‖x_i - v_c‖² contain the
  same Σ‖x‖², so the check compares Σ_c n_c ‖v_c‖² - 2 v_c · S_c.

A share that is not a sum over rows passes all three checks only if its sender can
predict the sums of others.

All other parties together know a party's sums, because they can subtract their own from
the totals. So a party refuses to answer if more than the fraction ``sums_limit`` of its
rows could be computed from all the sums that it has sent. These are the sums of all
updates and runs, of the closing rounds, and of earlier sessions over the same table.
Sums of fuzzy memberships are bounded by :mod:`.round_bound` instead, but the sums of
their final labels are audited like all others. Means of five rows in a start are not
counted, because the terms name that risk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.algorithms.row_kernels import update_nearest
from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import DegreeSums, PartyContext, RowHistory
from clustering_protocols.contract.row_history import (
    MOST_ROWS,
    SHARE,
    most_derivable_rows,
    read_sums_limit,
)
from clustering_protocols.numerics.data_source import DataSource, iterate_batches
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.quality.block_sums import sum_around_means
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.masked_sums import CheckedSum, MaskedSum
from clustering_protocols.shared_stages.scaling import Scaler, scaler_of
from clustering_protocols.shared_stages.starts import FROM_PARTIES
from clustering_protocols.shared_stages.starts.messages import StartCentroids
from clustering_protocols.shared_stages.starts.roles import compute_start_alone

from . import kernels, maths, messages, round_bound
from .maths import (
    check_weights,
    cohort_members,
    count_rows,
    move_centroids,
    public_perturbation,
    split_sums,
)
from .params import LlfContext, LosslessFederated

_ROUNDING: Final = 1e-9


def check_own_share(counts: FloatArray, own: FloatArray) -> None:
    """Raise ProtocolFailed if a total (k,) is less than this party's own share (k,)."""
    if (counts < own).any():
        raise ProtocolFailed(
            "A total counts fewer rows of a cluster than this party has there."
        )


def check_same_rows(
    before: Iterable[messages.Centroids], now: messages.Centroids, slack: FloatArray
) -> None:
    """Raise ProtocolFailed if two totals of the same members sum different rows.

    slack: float64 (F,); how much two sums of all rows may differ by rounding.
    """
    rows = now.sums.sum(axis=0)
    comparable = [total for total in before if total.members == now.members]
    for total in comparable:
        if (np.abs(rows - total.sums.sum(axis=0)) > slack).any():
            raise ProtocolFailed("A total covers different rows from an earlier total.")


def check_no_farther(
    before: messages.Centroids,
    now: messages.Centroids,
    slack: FloatArray,
    square_limit: float,
) -> None:
    """Raise ProtocolFailed if a total puts rows farther from centroids than the last total.

    before: the centroids, and the total of the same members from which they follow.
    now: the sums and weights of the same rows, each of which joined its nearest
        centroid.
    slack: as in :func:`check_same_rows`.
    square_limit: an upper bound of Σ‖x‖² over all rows.
    """
    V = before.centroids
    squares = np.square(V).sum(axis=1)
    change = now.sums - before.sums
    rise = float((now.weights - before.weights) @ squares - 2.0 * (change * V).sum())
    largest = float(now.weights.sum() * squares.max(initial=0.0))
    rounded = 2.0 * float(slack @ np.abs(V).sum(axis=0))
    if rise > _ROUNDING * (square_limit + largest) + rounded:
        raise ProtocolFailed(
            "A total puts rows farther from their centroids than the previous total."
        )


@dataclass(frozen=True)
class RowsRound:
    """One party's view of one round, with its scale, encodings and stored centroids."""

    context: LlfContext

    @cached_property
    def scale(self) -> Scaler:
        """The scaler of this party's rows."""
        return scaler_of(self.context)

    @cached_property
    def encoding(self) -> FixedPoint:
        """The fixed-point encoding of an update."""
        return maths.build_update_encoding(self.params, self.scale, self.n_rows)

    @property
    def params(self) -> LosslessFederated:
        """The parameters of the session's current run."""
        return self.context.session.params

    @property
    def exponent(self) -> float:
        """The exponent 1/(λ-1) of ratios of distances; 0 for hard c-means."""
        return 1.0 / (self.params.exponent - 1.0) if self.params.fuzzy else 0.0

    def apply_totals(self, totals: messages.Totals) -> messages.Centroids:
        """Apply all updates in ``totals`` that follow the centroids in memory.

        Raises InvalidArray if the totals have wrong sizes, and ProtocolFailed if they
            are out of order or cannot be sums over rows.
        """
        n_slots, n_words = len(self.context.session.slots), self.encoding.unit.size + 1
        totals.require({"slots": n_slots, "w": n_words})
        state = self.context.memory.get(messages.Centroids)
        if state is None:
            V = self.initial_centroids().centroids
            state = messages.Centroids(number=0, centroids=V, moved=None, sums=V[:0])
        for update, cohort, words in zip(
            totals.updates, totals.cohorts, totals.totals, strict=True
        ):
            number, round_, attempt = map(int, update)
            if number <= state.number:
                continue  # already included in the centroids in memory
            if number != state.number + 1:
                raise ProtocolFailed("The total of an update is missing.")
            members = cohort_members(self.context.session, cohort)
            name, encoding = f"update/{number}", self.encoding
            total = self._read_total(words, members, name, (round_, attempt), encoding)
            state = self._move_centroids(state, total, members)
        return state

    @property
    def slack(self) -> FloatArray:
        """The largest rounding difference (F,) between two sums of the same rows."""
        units = split_sums(self.encoding.unit, self.params.n_clusters)[0][0]
        slack: FloatArray = 2.0 * self.n_rows / units
        return slack

    def final_means(
        self, task: messages.LabelTotals, state: messages.Centroids
    ) -> messages.FinalMeans:
        """Return the means of the final labels, from memory or else from a task's total.

        The mean of a cluster without rows is its centroid.
        """
        if final := self.context.memory.get(messages.FinalMeans):
            return final
        session = self.context.session
        name = f"closing/{state.number}"
        encoding = maths.build_labels_encoding(self.params, self.scale, self.n_rows)
        task.require({"closing": encoding.unit.size + 1})
        members = cohort_members(session, task.closed_by)
        total = self._read_total(task.closing, members, name, task.closed_in, encoding)
        sums, counts = split_sums(total, self.params.n_clusters)
        check_weights(counts, count_rows(session, members))
        rows = self.context.memory.get(messages.FinalRows)
        if rows is not None:
            own = np.bincount(rows.labels, minlength=self.params.n_clusters)
            check_own_share(counts, own.astype(np.float64))
        total_now = {"members": members, "sums": sums, "weights": counts}
        self._check_against_earlier(state, state.model_copy(update=total_now))
        means = sums / np.maximum(counts, 1.0)[:, None]
        means = np.where(counts[:, None] > 0, means, state.centroids)
        return messages.FinalMeans(counts=counts.astype(np.int64), means=means)

    def sizes_and_figures(
        self, task: messages.FinalTotals, state: messages.Centroids
    ) -> tuple[messages.FinalSizes, Figures]:
        """Compute the cluster sizes and figures of the result from a task's total."""
        session, means = self.context.session, self.final_means(task, state).means
        name, encoding = f"gathered/{state.number}", self.figures_encoding(state, means)
        task.require({"gathered": encoding.unit.size + 1})
        members = cohort_members(session, task.gathered_by)
        total = self._read_total(
            task.gathered, members, name, task.gathered_in, encoding
        )
        n_rows = count_rows(session, members)
        return maths.read_sizes_and_figures(self.params, state, means, total, n_rows)

    def figures_encoding(
        self, state: messages.Centroids, means: FloatArray
    ) -> FixedPoint:
        """Return the encoding of sums around the means of the final labels."""
        V, n_rows = state.centroids, self.n_rows
        return maths.build_figures_encoding(self.params, self.scale, V, means, n_rows)

    @property
    def n_rows(self) -> int:
        """The number of rows of all parties."""
        return count_rows(self.context.session, self.context.session.slots)

    @property
    def _checked_sum(self) -> CheckedSum:
        return CheckedSum(scope="column", minimum_members=self.params.least_parties)

    def mask_share(
        self, words: WordArray, members: list[str], name: str
    ) -> dict[str, Any]:
        """Mask and tag this party's ring elements; return them with round and attempt.

        name: the kind of sum and the number of the centroids, such as ``update/3``, so
            that no total is accepted for other centroids.
        """
        masked_sum = MaskedSum.from_context(self.context, members, name)
        return {
            "words": self._checked_sum.mask(self.context, words, masked_sum),
            "round": self.context.round,
            "attempt": self.context.attempt,
        }

    def _read_total(
        self,
        words: WordArray,
        members: list[str],
        name: str,
        attempt: Iterable[int],
        encoding: FixedPoint,
    ) -> FloatArray:
        """Unmask a total of an earlier round and attempt, check its tag, and decode it."""
        masked_sum = MaskedSum(
            members=tuple(members),
            name=name,
            transcript=self.context.transcript_at(*map(int, attempt)),
        )
        total = self._checked_sum.unmask(self.context, words, masked_sum, encoding.fits)
        return encoding.decode(total)

    def _move_centroids(
        self, state: messages.Centroids, total: FloatArray, members: list[str]
    ) -> messages.Centroids:
        sums, weights = split_sums(total, self.params.n_clusters)
        n_rows = count_rows(self.context.session, members)
        check_weights(weights, n_rows, counts=not self.params.fuzzy)
        number = state.number + 1
        if state.asked == number and self.context.slot.name in members:
            check_own_share(weights, state.own)
        step = public_perturbation(self.context.session, number, self.scale)
        unit, minimum = self.scale.step, self.params.min_rows_to_move_centroid
        V, moved = move_centroids(state.centroids, sums, weights, step, unit, minimum)
        after = messages.Centroids(
            number=number,
            asked=state.asked,
            centroids=V,
            moved=moved,
            own=state.own,
            members=members,
            sums=sums,
            weights=weights,
        )
        self._check_against_earlier(state, after)
        return after

    def _check_against_earlier(
        self, before: messages.Centroids, now: messages.Centroids
    ) -> None:
        """Raise ProtocolFailed if a total contradicts an earlier total of any run."""
        if self.params.fuzzy:
            return
        slack = self.slack
        check_same_rows([*self.states_of_other_runs(), before], now, slack)
        if before.members == now.members:
            limit = float(self.scale.square_limit.sum())
            check_no_farther(before, now, slack, limit)

    def states_of_other_runs(self) -> list[messages.Centroids]:
        """Return the last centroids of each other run of the session."""
        session, memory = self.context.session, self.context.memory
        states = [
            memory.scope_to_run(number).get(messages.Centroids)
            for number, run in enumerate(session.runs)
            if run != session.params
        ]
        return [state for state in states if state is not None]

    def start_to_remember(self) -> list[StartCentroids]:
        """Return the initial centroids unless later centroids are in memory already."""
        moved = self.context.memory.get(messages.Centroids)
        return [self.initial_centroids()] if moved is None else []

    def initial_centroids(self) -> StartCentroids:
        """Return the initial centroids, received from a party or computed by all."""
        if self.params.start in FROM_PARTIES:
            V = self.context.recall(StartCentroids).centroids
        else:
            V = compute_start_alone(self.context, self.scale)
        return StartCentroids(centroids=equalise_coordinates(V, self.scale.step))


def label_rows(view: RowsRound, data: DataSource, V: FloatArray) -> messages.FinalRows:
    """Label this party's rows, and compute memberships if they are an output."""
    if view.params.output == "memberships":
        labels = np.empty(data.n_rows, dtype=np.int64)
        memberships = np.empty((data.n_rows, len(V)))
        for rows, batch in iterate_batches(data, len(V)):
            assignment = assign_batch(view.scale, batch, V, view.exponent)
            labels[rows], memberships[rows], _ = assignment
        return messages.FinalRows(labels=labels, memberships=memberships)
    return messages.FinalRows(
        labels=nearest_centroids(view, data, V), memberships=np.empty((0, len(V)))
    )


def nearest_centroids(view: RowsRound, data: DataSource, V: FloatArray) -> IntArray:
    """Return the number (n,) of the centroid of V (k, F) nearest to each row."""

    def label_batch(batch: FloatArray) -> IntArray:
        labels, squares = np.empty(len(batch), np.int64), np.full(len(batch), np.inf)
        update_nearest(batch, *view.scale.affine, V, 0, labels, squares, 0.0)
        return labels

    return np.concatenate([*view.context.engine.map(label_batch, data.batches())])


def assign_batch(
    scale: Scaler, batch: FloatArray, V: FloatArray, exponent: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the labels (n,), memberships (n, k) and squared distances (n, k) of a batch.

    exponent: 1/(λ-1); 0 for hard c-means.
    """
    labels = np.empty(len(batch), dtype=np.int64)
    U, D = np.empty((len(batch), len(V))), np.empty((len(batch), len(V)))
    kernels.assign(batch, *scale.affine, V, exponent, labels, U, D)
    return labels, U, D


def compute_figure_sums(
    view: RowsRound,
    data: DataSource,
    state: messages.Centroids,
    final: messages.FinalMeans,
    labels: IntArray,
) -> FloatArray:
    """Return this party's sums, in the order of :func:`.maths.build_figures_encoding`."""
    k = view.params.n_clusters

    def sum_batch(block: tuple[slice, FloatArray]) -> FloatArray:
        rows, batch = block
        return sum_around_means(
            batch, view.scale.affine, final.means, labels[rows], final.counts
        )

    around = sum(
        view.context.engine.map(sum_batch, iterate_batches(data)), np.zeros(2 * k + 1)
    )
    fuzzy = np.zeros(2 if view.params.fuzzy else 0)
    if view.params.fuzzy:
        for _, batch in iterate_batches(data, k):
            _, U, D = assign_batch(view.scale, batch, state.centroids, view.exponent)
            degrees = np.square(U)
            fuzzy += (degrees * D).sum(), degrees.sum()
    return np.concatenate([np.bincount(labels, minlength=k), around, fuzzy])


def audit_sums(
    view: RowsRound, data: DataSource, V: FloatArray, number: int
) -> RowHistory | DegreeSums:
    """Return the history of the sums that this party has sent, with an update added.

    V: the centroids (k, F) of the update.
    number: the number of the update.

    Raises GuardRefused if too many of the party's rows could be computed from these
        sums. The message says how many updates are within the limit.
    """
    if view.params.fuzzy:
        return round_bound.audit_update(view.context, data)
    labels = _labels_for_history(view, data, V)
    history = latest_history(view.context, data.n_rows).after_partition(labels)
    check_sums_limit(view.context, history, data.n_rows, number - 2)
    return history


def latest_history(context: PartyContext, n_rows: int) -> RowHistory:
    """Return the latest history of the sums over this party's rows, from any run."""
    runs = range(len(context.session.runs))
    histories = [context.memory.scope_to_run(run).get(RowHistory) for run in runs]
    return max(
        (history for history in histories if history is not None),
        key=lambda history: history.n_sums,
        default=RowHistory.empty(n_rows),
    )


def check_sums_limit(
    context: LlfContext, history: RowHistory, n_rows: int, n_updates: int
) -> None:
    """Raise GuardRefused if a history reveals more of the rows than ``sums_limit``.

    n_updates: the number of updates of this session that would be within the limit.
    """
    share = read_sums_limit(context)
    limit = most_derivable_rows(share, n_rows)
    following = history.count_derivable_rows(limit)
    if following <= limit:
        return
    fits = (
        f"max_iter {n_updates} would fit" if n_updates > 0 else "Choose fewer clusters"
    )
    runs = list(context.session.runs)
    completed = runs[: runs.index(context.session.params)]
    if completed:
        numbers = ", ".join(str(run.n_clusters) for run in completed)
        fits = f"Your rows fit n_clusters {numbers}"
    raise GuardRefused(
        f"{following} of your {n_rows} rows could be computed from all sums requested "
        f"so far; 'sums_limit' is {share:g}, or {limit} rows. {fits}."
    )


def updates_that_fit(n_rows: int, n_clusters: int, share: float = SHARE) -> int:
    """Return how many updates stay within the limit on derivable rows, for any clusters.

    Each update and the final labels add k - 1 sums that do not follow from the others.
    The sum of all rows is one further sum.
    """
    per_update = max(n_clusters - 1, 1)
    return max((most_derivable_rows(share, n_rows) - 1) // per_update - 1, 0)


def _labels_for_history(view: RowsRound, data: DataSource, V: FloatArray) -> IntArray:
    """Return the cluster of each row, or k placeholders if there are too many rows."""
    if data.n_rows > MOST_ROWS:
        return np.arange(view.params.n_clusters)
    return nearest_centroids(view, data, V)

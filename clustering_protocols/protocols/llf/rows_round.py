"""One party at one round of split rows: what it reads of totals, and passes over its rows.

What every party compares between totals over the same rows.

Rows stay where they are, and so in every honest session

- a cluster has no fewer rows than this party has there;
- the sums of all clusters add up to the same: the rows do not change;
- around the centroids that were told in between, the rows cost no more than they did in
  the clusters before: each goes to the nearest. Σ‖x‖² cancels, and what is left of
  Σ_c Σ_i ‖x_i - v_c‖² is Σ_c n_c ‖v_c‖² - 2 v_c · S_c.

A share that is no sum over rows has to foresee the sums of others to meet all three.

Everybody together can know all of a party's sums over clusters, by taking their own off
the totals. So no sum is answered after which more than ``sums_limit`` of own rows follow
from all sums answered: of all updates, starts and runs, of the closing, and of earlier
sessions over the same table. Sums of degrees (fuzzy c-means) are bounded by
:mod:`.round_bound` instead; the sums of their final labels are audited like all. Means of
five rows in a start are not counted: the terms name them as a risk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.algorithms.row_kernels import bring_nearer
from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import (
    DegreeSums,
    PartyContext,
    Placement,
    RowHistory,
)
from clustering_protocols.contract.row_history import MOST_ROWS, SHARE, most_following
from clustering_protocols.numerics.data_source import DataSource, batches, check_width
from clustering_protocols.quality.block_sums import BlockSums, add_by_label, of_block
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.shared_stages.masked_sums import CheckedSum, MaskedSum
from clustering_protocols.shared_stages.scaling import Scaler, scaler_of
from clustering_protocols.shared_stages.starts import FROM_PARTIES
from clustering_protocols.shared_stages.starts.roles import without_messages
from clustering_protocols.terms.session_risks import SUMS_LIMIT

from . import kernels, maths, messages, round_bound
from .maths import (
    Around,
    Encoding,
    check_counts,
    check_weights,
    members_of,
    move,
    nudge,
    rows_of,
)
from .params import LlfContext, LosslessFederated

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slack:
    """By how much rounding may set totals over the same rows apart.

    sums: float64 (F,); each row is rounded to a unit.
    squares: σ‖x‖² over all rows, at most.
    """

    sums: FloatArray
    squares: float

    @classmethod
    def of(cls, encoding: Encoding, scale: Scaler, n_rows: int) -> Slack:
        """Return the slack of sums over n_rows."""
        return cls(
            sums=2.0 * n_rows / encoding.sums.unit,
            squares=float(scale.square_limit.sum()),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemberSums:
    """Sums (k, F) and counts (k,) over the rows of some members."""

    members: Sequence[str]
    sums: FloatArray = field(repr=False)
    counts: FloatArray = field(repr=False)


def check_own(counts: FloatArray, own: FloatArray) -> None:
    """Refuse a total (k,) with less of a cluster than this party's share (k,).

    Raises ProtocolFailed.
    """
    if (counts < own).any():
        raise ProtocolFailed(
            "A total counts fewer rows of a cluster than this party has there."
        )


def of_same_members(totals: Iterable[MemberSums], now: MemberSums) -> list[MemberSums]:
    """Return the totals that the same members added up: no others are compared."""
    return [each for each in totals if list(each.members) == list(now.members)]


def check_same_rows(
    before: Iterable[MemberSums], now: MemberSums, slack: Slack
) -> None:
    """Refuse a total of which all clusters together are other rows than before.

    Raises ProtocolFailed.
    """
    rows = now.sums.sum(axis=0)
    for each in before:
        if (np.abs(rows - each.sums.sum(axis=0)) > slack.sums).any():
            raise ProtocolFailed("A total is of other rows than the total before.")


def check_no_farther(
    before: MemberSums, now: MemberSums, V: FloatArray, slack: Slack
) -> None:
    """Refuse a total around V (k, F) by which rows did not go to the nearest centroid.

    Raises ProtocolFailed.
    """
    squares = np.square(V).sum(axis=1)
    moved = now.sums - before.sums
    rise = float((now.counts - before.counts) @ squares - 2.0 * (moved * V).sum())
    largest = float(now.counts.sum() * squares.max(initial=0.0))
    rounded = 2.0 * float(slack.sums @ np.abs(V).sum(axis=0))
    if rise > _ROUNDING * (slack.squares + largest) + rounded:
        raise ProtocolFailed(
            "A total puts rows farther from their centroids than the total before."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRound:
    """One party at one round: its view, scale and encodings."""

    context: LlfContext
    scale: Scaler
    encoding: Encoding

    @classmethod
    def of(cls, context: LlfContext) -> RowsRound:
        """Return where a party stands."""
        scale = scaler_of(context)
        total = rows_of(context.session, context.session.slots)
        return cls(
            context=context,
            scale=scale,
            encoding=Encoding.of(context.session.params, scale, total),
        )

    @property
    def params(self) -> LosslessFederated:
        """Return the parameters with their type known."""
        return self.context.session.params

    def follow(self, totals: messages.Totals) -> messages.Centroids:
        """Return V after all updates whose totals came, starting from what is known.

        Raises InvalidArray, ProtocolFailed if the totals are of other sizes, out of
            order, or cannot be sums.
        """
        n_words = self.encoding.n_words + 1
        sizes = {"slots": len(self.context.session.slots), "w": n_words}
        totals.require(sizes)
        known = self.context.memory.get(messages.Centroids) or _at_start(self.start())
        for update, cohort, words in zip(
            totals.updates, totals.cohorts, totals.totals, strict=True
        ):
            number, *when = map(int, update)
            if number <= known.number:
                continue  # it came with an attempt that this party was too late for
            if number != known.number + 1:
                raise ProtocolFailed("The total of an update is missing.")
            members = members_of(self.context.session, cohort)
            of = self.sum_of(members, update_sum(number), *when)
            total = self._checked_sum.read(self.context, words, of, self.encoding.fits)
            known = self._move_centroids(known, total, members)
        return known

    @property
    def slack(self) -> Slack:
        """Return by how much rounding may set totals over the same rows apart."""
        return Slack.of(self.encoding, self.scale, self._all_rows())

    def means(
        self, task: messages.LabelTotals, known: messages.Centroids
    ) -> messages.FinalMeans:
        """Return the means of the final labels: as they were first read, or read now."""
        if before := self.context.memory.get(messages.FinalMeans):
            return before
        session = self.context.session
        n_words = maths.n_words_of_labels(self.params, self.scale.offset.size)
        task.require({"closing": n_words})
        members = members_of(session, task.closed_by)
        of = self.sum_of(members, labels_sum(known), *map(int, task.closed_in))
        code = self.labels_encoding()
        sums, counts = code.decode(
            self._checked_sum.read(self.context, task.closing, of, code.fits)
        )
        check_counts(counts, rows_of(session, members))
        rows = self.context.memory.get(messages.FinalRows)
        if rows is not None:
            own = np.bincount(rows.labels, minlength=self.params.n_clusters)
            check_own(counts, own.astype(np.float64))
        self._check_steady(known, sums, counts, members)
        return maths.means_of(sums, counts, known.centroids)

    def totals(
        self, task: messages.FinalTotals, known: messages.Centroids
    ) -> maths.ClosingTotals:
        """Return sizes and figures of the result."""
        session, means = self.context.session, self.means(task, known).means
        task.require({"gathered": maths.n_words_around(self.params)})
        members = members_of(session, task.gathered_by)
        of = self.sum_of(members, around_sum(known), *map(int, task.gathered_in))
        code = self.around_encoding(known, means)
        words = self._checked_sum.read(self.context, task.gathered, of, code.fits)
        total = code.decode(words, rows_of(session, members))
        return maths.totals_of(self.params, known, means, total)

    def labels_encoding(self) -> Encoding:
        """Return how sums of the final labels stand as ring elements."""
        k, n_rows = self.params.n_clusters, self._all_rows()
        return maths.encoding_of_labels(self.scale, k, n_rows)

    def around_encoding(
        self, known: messages.Centroids, means: FloatArray
    ) -> maths.AroundEncoding:
        """Return how sums around the means of the final labels do."""
        fixed = (self.scale, known.centroids, means, self._all_rows())
        return maths.AroundEncoding.of(self.params, *fixed)

    def _all_rows(self) -> int:
        return rows_of(self.context.session, self.context.session.slots)

    def share(self, words: WordArray, members: list[str], name: str) -> WordArray:
        """Return a share as it is sent: hidden and tagged."""
        of = MaskedSum.from_context(self.context, members, name)
        return self._checked_sum.share(self.context, words, of)

    @property
    def _checked_sum(self) -> CheckedSum:
        """Return how sums are hidden and checked."""
        return CheckedSum(
            scope="column",
            minimum_members=self.params.least_parties,
        )

    def sum_of(
        self, members: list[str], name: str, round_: int, attempt: int
    ) -> MaskedSum:
        """Return the masked sum that was made in another round."""
        return MaskedSum(
            members=tuple(members),
            name=name,
            transcript=self.context.transcript_of(round_, attempt),
        )

    def _move_centroids(
        self, known: messages.Centroids, total: WordArray, members: list[str]
    ) -> messages.Centroids:
        sums, weights = self.encoding.decode(total)
        check_weights(self.params, weights, rows_of(self.context.session, members))
        number = known.number + 1
        if known.asked == number and self.context.slot.name in members:
            check_own(weights, known.own)
        self._check_steady(known, sums, weights, members)
        step = nudge(self.context.session, self.context.slot.column, number, self.scale)
        unit, least = self.scale.step, self.params.least_rows_moved
        V, moved = move(known.centroids, sums, weights, step, unit, least)
        return messages.Centroids(
            number=number,
            asked=known.asked,
            centroids=V,
            moved=moved,
            own=known.own,
            members=members,
            sums=sums,
            weights=weights,
        )

    def _check_steady(
        self,
        known: messages.Centroids,
        sums: FloatArray,
        counts: FloatArray,
        members: list[str],
    ) -> None:
        """Refuse a total around V that cannot follow the totals before, of any run."""
        if self.params.fuzzy:
            return
        now = MemberSums(members=members, sums=sums, counts=counts)
        others = of_same_members(self.of_other_runs(), now)
        last = of_same_members([_total_of(known)], now)
        check_same_rows([*others, *last], now, self.slack)
        for before in last:
            check_no_farther(before, now, known.centroids, self.slack)

    def of_other_runs(self) -> list[MemberSums]:
        """Return the total that was read last in each of the other runs."""
        session, memory = self.context.session, self.context.memory
        kept = [
            memory.scope_to_run(number).get(messages.Centroids)
            for number, run in enumerate(session.runs)
            if run != session.params
        ]
        return [_total_of(each) for each in kept if each is not None]

    def start(self) -> messages.StartCentroids:
        """Return V(0): it came from a party, or all find the same."""
        if self.params.start in FROM_PARTIES:
            V = self.context.recall(messages.StartCentroids).centroids
        elif settled := self.context.memory.get(messages.StartCentroids):
            V = settled.centroids
        else:
            V = without_messages(self.context, self.scale)
        return messages.StartCentroids(
            centroids=equalise_coordinates(V, self.scale.step)
        )


def update_sum(number: int) -> str:
    """Return the name of an update's sum: its total is that of no other update."""
    return f"update/{number}"


def labels_sum(known: messages.Centroids) -> str:
    """Return the name of the sum of the labels of some centroids, and of no others."""
    return f"closing/{known.number}"


def around_sum(known: messages.Centroids) -> str:
    """Return the name of the sum around the means of these labels."""
    return f"gathered/{known.number}"


def _at_start(start: messages.StartCentroids) -> messages.Centroids:
    V = start.centroids
    return messages.Centroids(number=0, centroids=V, moved=None, sums=V[:0])


def _total_of(known: messages.Centroids) -> MemberSums:
    return MemberSums(members=known.members, sums=known.sums, counts=known.weights)


def final_rows(here: RowsRound, data: DataSource, V: FloatArray) -> messages.FinalRows:
    """Return the labels of this party's rows, and memberships where wanted."""
    if here.params.output == "memberships":
        labels = np.empty(data.n_rows, dtype=np.int64)
        memberships = np.empty((data.n_rows, len(V)))
        for rows, batch in batches(data, len(V)):
            labels[rows], memberships[rows], _ = assign_rows(here, batch, V)
        return messages.FinalRows(labels=labels, memberships=memberships)
    return messages.FinalRows(
        labels=nearest(here, data, V), memberships=np.empty((0, len(V)))
    )


def nearest(here: RowsRound, data: DataSource, V: FloatArray) -> IntArray:
    """Return which centroid (k, F) is nearest to each row (n,)."""

    def of_batch(batch: FloatArray) -> IntArray:
        labels, away = np.empty(len(batch), np.int64), np.full(len(batch), np.inf)
        bring_nearer(batch, *here.scale.affine, V, 0, labels, away, 0.0)
        return labels

    return np.concatenate([*here.context.engine.map(of_batch, data.batches())])


def assign_rows(
    here: RowsRound, batch: FloatArray, V: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return labels (n,), memberships and squared distances (n, k) to centroids."""
    exponent = 1.0 / (here.params.exponent - 1.0) if here.params.fuzzy else 0.0
    return _assign(here.scale, batch, V, exponent)


def place(scale: Scaler, data: DataSource, V: FloatArray) -> Placement:
    """Return new rows among the centroids (k, F), as the rows of a session are.

    Raises InvalidData if they have another number of columns.
    """
    check_width(data, scale.offset.size)
    labels = np.empty(data.n_rows, dtype=np.int64)
    distances = np.empty((data.n_rows, len(V)))
    for rows, batch in batches(data, len(V)):
        labels[rows], _, squares = _assign(scale, batch, V, 0.0)
        distances[rows] = np.sqrt(squares)
    return Placement(labels=labels, distances=distances)


def _assign(
    scale: Scaler, batch: FloatArray, V: FloatArray, exponent: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    labels = np.empty(len(batch), dtype=np.int64)
    U, D = np.empty((len(batch), len(V))), np.empty((len(batch), len(V)))
    kernels.assign(batch, *scale.affine, V, exponent, labels, U, D)
    return labels, U, D


def sums_of_labels(
    here: RowsRound, data: DataSource, labels: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return sums (k, F) and counts (k,) of this party's rows by label."""
    k = here.params.n_clusters
    sums = np.zeros((k, here.scale.offset.size))
    for rows, batch in batches(data):
        add_by_label(batch, *here.scale.affine, labels[rows], sums)
    return sums, np.bincount(labels, minlength=k).astype(np.float64)


def sums_around(
    here: RowsRound,
    data: DataSource,
    known: messages.Centroids,
    final: messages.FinalMeans,
    labels: IntArray,
) -> Around:
    """Return this party's share of the sums around the means; see :class:`Around`."""
    k, fuzzy = here.params.n_clusters, np.zeros(0)
    squares, distances, silhouettes = np.zeros(k), np.zeros(k), 0.0

    def of_batch(block: tuple[slice, FloatArray]) -> BlockSums:
        rows, batch = block
        return of_block(
            batch, here.scale.affine, final.means, labels[rows], final.counts
        )

    for own in here.context.engine.map(of_batch, batches(data)):
        squares += own.squares
        distances += own.distances
        silhouettes += own.silhouettes
    if here.params.fuzzy:
        fuzzy = _fuzzy_sums(here, data, known.centroids)
    return Around(
        sizes=np.bincount(labels, minlength=k).astype(np.float64),
        squares=squares,
        distances=distances,
        silhouettes=silhouettes,
        fuzzy=fuzzy,
    )


def _fuzzy_sums(here: RowsRound, data: DataSource, V: FloatArray) -> FloatArray:
    found = np.zeros(2)
    for _, batch in batches(data, len(V)):
        _, U, D = assign_rows(here, batch, V)
        degrees = np.square(U)
        found += (degrees * D).sum(), degrees.sum()
    return found


def audit_sums(
    here: RowsRound, data: DataSource, around: Sequence[FloatArray], number: int
) -> list[RowHistory] | list[DegreeSums]:
    """Return the history once sums around centroids (k, F), of each start, are answered.

    number: of the update; 0 for that of starts that race.

    Raises GuardRefused if too many own rows would follow; it names the updates that
        fit.
    """
    if here.params.fuzzy:
        session, k = here.context.session, here.params.n_clusters
        before, width = here.context.memory.get(DegreeSums), len(here.scale.offset)
        each = k * (width + 1) / (round_bound.fewest_others(session) * width)
        told = 2 * each if before is None else before.equations
        return [DegreeSums(equations=told + len(around) * each)]
    history = known_history(here.context, data.n_rows)
    for V in around:
        history = history.after(_labels(here, data, V))
    check_history(here.context, history, data.n_rows, number - 2)
    return [history]


def audit_final_sums(here: RowsRound, labels: IntArray, number: int) -> RowHistory:
    """Return the history once the sums of final labels are answered, after an update.

    Raises GuardRefused: as :func:`audit_sums`.
    """
    history = known_history(here.context, len(labels)).after(labels)
    check_history(here.context, history, len(labels), number - 1)
    return history


def known_history(context: PartyContext, n_rows: int) -> RowHistory:
    """Return in which sums own rows stood so far, in the run that came last."""
    runs = range(len(context.session.runs))
    kept = [context.memory.scope_to_run(run).get(RowHistory) for run in runs]
    found = [each for each in kept if each is not None]
    none = RowHistory.of_none(n_rows)
    return max(found, key=lambda each: each.n_sums, default=none)


def check_history(
    context: LlfContext, history: RowHistory, n_rows: int, n_updates: int
) -> None:
    """Refuse a history of so many own rows from which more follow than may.

    n_updates: how many updates of this session would have fitted.
    """
    share = _share(context)
    most = most_following(share, n_rows)
    following = history.n_following(most)
    if following <= most:
        return
    fits = f"max_iter {n_updates} would fit" if n_updates > 0 else "take fewer clusters"
    runs = list(context.session.runs)
    done = runs[: runs.index(context.session.params)]
    if done:
        fits = (
            f"Your rows fit n_clusters {', '.join(str(run.n_clusters) for run in done)}"
        )
    raise GuardRefused(
        f"{following} of your {n_rows} rows could be computed from the sums that you "
        f"have answered and these; 'sums_limit' is {share:g}, {most} rows. {fits}."
    )


def history_notes(history: RowHistory, n_rows: int) -> dict[str, Any]:
    """Return what the operator reads of the audit."""
    most = min(history.n_following(n_rows), n_rows)
    return {"own rows that all others together could compute, at most": most}


def updates_that_fit(
    n_rows: int, n_clusters: int, n_init: int, share: float = SHARE
) -> int:
    """Return how many updates fit in any case, whatever the clusters are.

    Each adds k - 1 sums that do not follow from the others, as the starts that race and
    the final labels do; the sum of all rows is one more.
    """
    raced = n_init if n_init > 1 else 0
    each = max(n_clusters - 1, 1)
    return max((most_following(share, n_rows) - 1) // each - raced - 1, 0)


def _share(context: PartyContext) -> float:
    share = context.choices.get(SUMS_LIMIT, SHARE)
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise GuardRefused(f"{SUMS_LIMIT!r} must be a share, from 0 to 1.")
    return float(share)


def _labels(here: RowsRound, data: DataSource, V: FloatArray) -> IntArray:
    """Return the cluster of each row; of tables of which no history is kept, any."""
    if data.n_rows > MOST_ROWS:
        return np.arange(here.params.n_clusters)
    return nearest(here, data, V)

"""A party of split rows: a race of starts, updates, then labels, closing sums, result.

In the race every start makes one update, whose sums all parties read; with them goes the
sum of squared distances to the start, so that all know the inertia after the update,

    Σ_i ‖x_i - v_c(1)‖² = Σ_i ‖x_i - v_c(0)‖² - Σ_c n_c ‖v_c(1) - v_c(0)‖²,

c the cluster of a row around the start. For fuzzy c-means the same of Σ_c Σ_i μ_ci^λ d²,
with memberships around the start. Each party takes the start of least value (the lowest
of equals) and keeps nothing of the others. The analyst reads nothing of it.

| round of the race | task → contribution: masked share |
|---|---|
| 1 | `add-up` → `share`: sums of one update of each start |
| 2 | `add-up` → `share`, empty: each party reads the total and chooses |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from clustering_protocols.algorithms.coincidence import (
    equalise_coordinates,
    n_coinciding,
)
from clustering_protocols.common.errors import GuardRefused, NotReady, ProtocolFailed
from clustering_protocols.contract import (
    Outcome,
    PartyRole,
    Placement,
    Reply,
    SessionContext,
)
from clustering_protocols.contract.published import (
    ClusterOrder,
    order_by_size,
    order_told_first,
)
from clustering_protocols.numerics.data_source import DataSource, batches
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.masked_sums import CheckedSum, check_members
from clustering_protocols.shared_stages.scaling import Scaler, check_ranges
from clustering_protocols.shared_stages.secrets import group_mark
from clustering_protocols.shared_stages.starts import FROM_PARTIES
from clustering_protocols.shared_stages.starts.messages import ProposedByAll
from clustering_protocols.shared_stages.starts.roles import without_messages
from clustering_protocols.shared_stages.sums import (
    Findings,
    Sum,
    SumProgram,
    Sums,
    members,
)

from . import kernels, maths, messages, round_bound, rows_round
from .maths import check_weights, digest, draw_members, may_stop, move, rows_of, stops
from .params import LlfContext, LlfSession, LosslessFederated
from .rows_round import RowsRound, around_sum, assign_rows, labels_sum, update_sum

_Task = messages.Update | messages.Close | messages.Gather | messages.ReportDigest


class RowsParty(PartyRole[LosslessFederated, _Task, Record, messages.FinalTotals]):
    """Follows the centroids by the totals, and adds its share of the next ones."""

    def reply(self, context: LlfContext, task: _Task, data: DataSource) -> Reply:
        """Answer an update, a closing sum or the question for the result."""
        here = RowsRound.of(context)
        _check_members(here, task)
        if isinstance(task, messages.ReportDigest):
            return tell(here, task)
        if context.memory.get(messages.Centroids) is None:  # rows are first used
            check_ranges(context, data)
            round_bound.check_values(context, data)
        if isinstance(task, messages.Update):
            return _update(here, task, data)
        if isinstance(task, messages.Close):
            return close(here, task, data)
        return gather(here, task, data)

    def foresee(self, context: LlfContext) -> Outcome | None:
        """Return labels, sizes and centroids once all parties agree on them."""
        return foresee(RowsRound.of(context))

    def conclude(
        self, context: LlfContext, result: messages.FinalTotals, data: DataSource | None
    ) -> Outcome:
        """Return labels, sizes, centroids and figures."""
        return outcome(RowsRound.of(context), result, data)


def _check_members(here: RowsRound, task: _Task) -> None:
    """Refuse members that follow neither from the terms nor from absences they allow.

    Raises GuardRefused: of fewer members than a masked sum may have.
    Raises ProtocolFailed: the party answers nothing more: the analyst does not keep to
        the terms.
    """
    params, session = here.params, here.context.session
    check_members(here.context, task.members, params.least_parties)
    if params.quorum is not None:
        if len(task.members) < params.quorum:
            raise ProtocolFailed("The analyst names fewer members than the quorum.")
        return
    drawn = list(session.slots)
    if isinstance(task, messages.Update):
        drawn = draw_members(session, task.number)
    if task.members != drawn:
        raise ProtocolFailed("The analyst names other members than the terms draw.")


def _update(here: RowsRound, task: messages.Update, data: DataSource) -> Reply:
    known = here.follow(task)
    if task.number != here.context.announced_rounds.get(messages.Update.kind):
        raise ProtocolFailed("The analyst asks again for an update that was made.")
    follows = task.number == known.asked + 1
    if here.params.may_be_left_out:
        follows = task.number > known.asked
    if task.number != known.number + 1 or not follows:
        raise ProtocolFailed("The analyst asks for an update out of order.")
    history = rows_round.audit_sums(here, data, [known.centroids], task.number)
    sums, weights = local_sums(here, data, known.centroids)
    words = here.share(
        here.encoding.encode(sums, weights), task.members, update_sum(task.number)
    )
    leads = task.members[0] == here.context.slot.name
    contribution = messages.Sums(
        words=words,
        round=here.context.round,
        attempt=here.context.attempt,
        start=known.centroids[:0],
        moved=float(f"{known.moved:.2g}")
        if leads and known.moved is not None
        else None,
        stop=leads and stops(here.params, known.moved),
    )
    known = known.model_copy(
        update={"asked": task.number, "own": here.encoding.weights_of(weights)}
    )
    remember = [here.start(), known, *history]
    return Reply(contribution=contribution, remember=remember)


def local_sums(
    here: RowsRound, data: DataSource, V: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return this party's sums (k, F) and weights (k,), in whole units.

    Raises GuardRefused if the party has too few rows for sums of degrees.
    """
    params, encoding, scale = here.params, here.encoding, here.scale
    _check_rows(here, data.n_rows, scale.offset.size)
    sums, weights = np.zeros_like(V), np.zeros(len(V))
    fixed = (*scale.affine, V)

    def of_batch(batch: FloatArray) -> tuple[FloatArray, FloatArray]:
        own, own_weights = np.zeros_like(V), np.zeros(len(V))
        if params.fuzzy:
            units = (encoding.sums.unit, float(encoding.weights.unit))
            kernels.fuzzy_sums(batch, *fixed, params.exponent, *units, own, own_weights)
        else:
            kernels.cmeans_sums(batch, *fixed, encoding.sums.unit, own, own_weights)
        return own, own_weights

    for own, own_weights in here.context.engine.map(of_batch, data.batches()):
        sums += own
        weights += own_weights
    return sums, weights


def _check_rows(here: RowsRound, n_rows: int, width: int) -> None:
    """Refuse where the sums of one round have as many equations as unknowns.

    Corcuera Bárcena et al., section IV-B: N_m > k (F + 1) / F; of as many starts as
    race in one round, and of all runs, whose rounds of one number count as one.
    """
    params = here.params
    k = sum(run.n_clusters for run in here.context.session.runs)
    needed = params.n_init * k * (width + 1) / width
    if params.fuzzy and n_rows <= needed:
        raise GuardRefused(
            f"{n_rows} rows: sums of degrees over no more than {needed:.0f} rows could "
            "be solved for them. Use fewer clusters or starts, or take more rows."
        )


_MOVED = "The result brings updates after the last one."


def close(here: RowsRound, task: messages.Close, data: DataSource) -> Reply:
    """Label the rows, and return the share of sums and counts by label."""
    known = _last(here, task)
    rows = rows_round.final_rows(here, data, known.centroids)
    history = rows_round.audit_final_sums(here, rows.labels, known.number)
    sums, counts = rows_round.sums_of_labels(here, data, rows.labels)
    code = here.labels_encoding()
    words = code.encode(np.rint(sums * code.sums.unit), counts)
    share = messages.ClosingShare(
        words=here.share(words, task.members, labels_sum(known)),
        round=here.context.round,
        attempt=here.context.attempt,
    )
    return Reply(
        contribution=share,
        remember=[here.start(), known, rows, history],
        notes=rows_round.history_notes(history, data.n_rows),
    )


def gather(here: RowsRound, task: messages.Gather, data: DataSource) -> Reply:
    """Return the share of the sums around the means of the final labels."""
    known = _last(here, task)
    final, rows = here.means(task, known), _find_final_rows(here, known, data)
    own = rows_round.sums_around(here, data, known, final, rows.labels)
    words = here.around_encoding(known, final.means).encode(own)
    share = messages.GatheredSizes(
        words=here.share(words, task.members, around_sum(known)),
        round=here.context.round,
        attempt=here.context.attempt,
    )
    return Reply(contribution=share, remember=[here.start(), known, rows, final])


def tell(here: RowsRound, task: messages.ReportDigest) -> Reply:
    """Return a mark of the result; the leader says what the terms let out."""
    known = _last(here, task)
    totals = here.totals(task, known)
    mark = digest(known.centroids, known.number) + totals.sizes.tobytes()
    figures = None
    published = _publication(here, task, known, totals)
    if task.members[0] == here.context.slot.name:
        shown = published
        if here.params.publish != "nothing":
            figures = totals.figures.round_values()
    else:
        shown = maths.build_empty_publication(here.scale.offset.size, known.number)
    told = messages.DigestReport(
        **dict(shown),
        digest=group_mark(here.context, "column", "told", mark),
        figures=figures,
    )
    sizes = messages.FinalSizes(sizes=totals.sizes)
    order = ClusterOrder(order=_order(here, known, totals, published))
    return Reply(contribution=told, remember=[known, totals.figures, sizes, order])


def _publication(
    here: RowsRound,
    task: messages.FinalTotals,
    known: messages.Centroids,
    totals: maths.ClosingTotals,
) -> messages.PublishedResult:
    """Return what the leader says of the result: every party can say it."""
    final = here.means(task, known)
    session, scale = here.context.session, here.scale
    return maths.build_publication(session, scale, known, final, totals)


def _order(
    here: RowsRound,
    known: messages.Centroids,
    totals: maths.ClosingTotals,
    published: messages.PublishedResult,
) -> IntArray:
    """Return the clusters in the order of their numbers: by what is published.

    Exact sizes would be told by the numbers, where sizes are published in fives. Where
    nothing is published, parties alone read the numbers.
    """
    if here.params.publish == "nothing":
        return order_by_size(totals.sizes, known.centroids)
    shown = published.clusters, published.sizes, published.centroids
    return order_told_first(len(totals.sizes), *shown, common=known.centroids)


def outcome(
    here: RowsRound, result: messages.FinalTotals, data: DataSource | None
) -> Outcome:
    """Return labels, sizes, centroids and figures; label the rows now if none are.

    A party that missed the last rounds gets their totals with the result.
    """
    known, rows, totals = _read_final_state(here, result, data)
    kept = here.context.memory.get(ClusterOrder)
    if kept is None:
        published = _publication(here, result, known, totals)
        kept = ClusterOrder(order=_order(here, known, totals, published))
    wanted = here.params.output == "memberships"

    return Outcome(
        labels=rows.labels,
        cluster_sizes=totals.sizes,
        centroids=here.scale.undo(known.centroids),
        memberships=rows.memberships if wanted else None,
        predict=_Nearest(here.scale, known.centroids),
        report={
            "n_updates": known.number,
            "n_coinciding": n_coinciding(known.centroids),
            **_singled_out(here.context),
        },
        figures=(totals.figures,),
        order=kept.order,
    )


def foresee(here: RowsRound) -> Outcome | None:
    """Return labels, sizes and centroids of a run whose result all parties agree on."""
    memory = here.context.memory
    rows, known = memory.get(messages.FinalRows), memory.get(messages.Centroids)
    sizes, order = memory.get(messages.FinalSizes), memory.get(ClusterOrder)
    if rows is None or known is None or sizes is None or order is None:
        return None
    return Outcome(
        labels=rows.labels,
        cluster_sizes=sizes.sizes,
        centroids=here.scale.undo(known.centroids),
        order=order.order,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Nearest:
    """Places new rows among the session's centroids; a result that is kept keeps it."""

    scale: Scaler
    centroids: FloatArray

    def __call__(self, new: DataSource) -> Placement:
        return rows_round.place(self.scale, new, self.centroids)


def _read_final_state(
    here: RowsRound, result: messages.FinalTotals, data: DataSource | None
) -> tuple[messages.Centroids, messages.FinalRows, maths.ClosingTotals]:
    recall = here.context.recall
    sizes = here.context.memory.get(messages.FinalSizes)
    if sizes is not None:  # the transcripts of an earlier run, or stage, are gone
        totals = maths.ClosingTotals(sizes=sizes.sizes, figures=recall(Figures))
        known = recall(messages.Centroids)
        if result.updates[:, 0].max(initial=0) > known.number:
            raise ProtocolFailed(_MOVED)
        return known, _find_final_rows(here, known, data), totals
    known = _not_moved(here, here.follow(result))
    return known, _find_final_rows(here, known, data), here.totals(result, known)


def _singled_out(context: LlfContext) -> dict[str, object]:
    """Return, of several runs, how many own rows no other shares all clusters with.

    Differences of sums of several runs single such rows out first.
    """
    n_runs = len(context.session.runs)
    if n_runs == 1:
        return {}
    labels = [
        context.memory.scope_to_run(run).get(messages.FinalRows)
        for run in range(n_runs)
    ]
    histories = np.array([each.labels for each in labels if each is not None])
    _, shared = np.unique(histories, axis=1, return_counts=True)
    alone = int(np.count_nonzero(shared == 1))
    return {"rows whose clusters in all runs no other row shares": alone}


def _last(here: RowsRound, task: messages.Totals) -> messages.Centroids:
    """Return the final centroids.

    Raises ProtocolFailed if they have not come to rest, or moved since this party
        labelled its rows: sums would be told of any other centroids.
    """
    known = _not_moved(here, here.follow(task))
    if not may_stop(here.params, known.moved) and known.number < here.params.max_iter:
        raise ProtocolFailed(
            "The analyst closes before the centroids have come to rest."
        )
    return known


def _not_moved(here: RowsRound, known: messages.Centroids) -> messages.Centroids:
    """Return the centroids; refuse others than the rows were labelled by."""
    memory = here.context.memory
    if memory.get(messages.FinalRows) is None:
        return known
    if known.number != here.context.recall(messages.Centroids).number:
        raise ProtocolFailed(_MOVED)
    return known


def _find_final_rows(
    here: RowsRound, known: messages.Centroids, data: DataSource | None
) -> messages.FinalRows:
    """Return the labels of this party's rows, made now by who was away before."""
    if rows := here.context.memory.get(messages.FinalRows):
        return rows
    if data is None:
        raise NotReady("The rows are not labelled yet: run again with data.")
    return rows_round.final_rows(here, data, known.centroids)


Updates = list[tuple[FloatArray, FloatArray]]

_DIGITS: Final = 9
"""Values that agree to so many are equal, so that no rounding decides who wins."""


def race_starts(context: LlfContext, data: DataSource) -> Sums[Findings]:
    """Choose the start that is best after one update; forget the others."""
    here = RowsRound.of(context)
    racing = context.memory.get(messages.RacingStarts)
    lanes = _lanes(here) if racing is None else racing.centroids
    farthest = np.array([here.scale.farthest_from(V) for V in lanes])
    objectives = FixedPoint.of(
        rows_of(context.session, context.session.slots) * farthest
    )

    def begin() -> list[Record]:
        check_ranges(context, data)
        round_bound.check_values(context, data)
        history = rows_round.audit_sums(here, data, list(lanes), 0)
        return [messages.RacingStarts(centroids=lanes), *history]

    def add_lanes() -> WordArray:
        sums = [here.encoding.encode(*local_sums(here, data, V)) for V in lanes]
        values = np.array([_objective(here, data, V) for V in lanes])
        return np.concatenate([*sums, objectives.encode(values)])

    def split(words: WordArray) -> tuple[WordArray, WordArray]:
        """Return the elements of each start's update, and of the values around each."""
        updates = words[: -len(lanes)].reshape(len(lanes), here.encoding.n_words)
        return updates, words[-len(lanes) :]

    def decode_updates(words: WordArray) -> Updates:
        return list(map(here.encoding.decode, split(words)[0]))

    def fits(words: WordArray) -> bool:
        updates, values = split(words)
        return objectives.fits(values) and all(map(here.encoding.fits, updates))

    updates, values = yield from Sum(
        "race",
        local=add_lanes,
        fits=fits,
        decode=lambda words: (
            decode_updates(words),
            objectives.decode(split(words)[1]),
        ),
        compare=lambda total, own: _check_updates(
            here, decode_updates(total), decode_updates(own)
        ),
        remember=begin,
    )
    after = [_value(here, *lane) for lane in zip(lanes, updates, values, strict=True)]
    best = int(np.argmin(after))  # the first of equals
    sums, weights = updates[best]
    first = messages.Centroids(
        number=0,
        centroids=lanes[best],
        moved=None,
        members=list(members(context)),
        sums=sums,
        weights=weights,
    )
    start = messages.StartCentroids(centroids=lanes[best])
    return Findings([start, first, *_forget_starts(context)])


def _lanes(here: RowsRound) -> FloatArray:
    """Return V(0) of each start (lanes, k, F), as its first update begins with it."""
    params, context = here.params, here.context
    if params.start in FROM_PARTIES:
        lanes = list(context.recall(messages.LaneStarts).centroids)
    else:
        lanes = [
            without_messages(context, here.scale, lane) for lane in range(params.n_init)
        ]
    return np.array([equalise_coordinates(V, here.scale.step) for V in lanes])


def _objective(here: RowsRound, data: DataSource, V: FloatArray) -> float:
    """Return Σ_c Σ_i μ_ci^λ ‖x_i - v_c‖² of own rows; 0 and 1 for c-means."""
    found, params = 0.0, here.params
    for _, batch in batches(data, len(V)):
        _, U, D = assign_rows(here, batch, V)
        degrees = U**params.exponent if params.fuzzy else U
        found += float((degrees * D).sum())
    return found


def _value(
    here: RowsRound,
    V: FloatArray,
    update: tuple[FloatArray, FloatArray],
    before: float,
) -> float:
    """Return what a start comes to with its update, to nine digits."""
    (sums, weights), params = update, here.params
    n_rows = rows_of(here.context.session, here.context.session.slots)
    check_weights(params, weights, n_rows)
    still = np.zeros_like(V)
    moved = move(V, sums, weights, still, here.scale.step, params.least_rows_moved)
    gained = float(weights @ np.square(moved.centroids - V).sum(axis=1))
    return float(f"{before - gained:.{_DIGITS}g}")


def _forget_starts(context: LlfContext) -> list[Record]:
    """Return the records of all starts, without the starts."""
    none = context.recall(messages.RacingStarts).centroids[:0]
    emptied: list[Record] = [messages.RacingStarts(centroids=none)]
    if context.memory.get(messages.LaneStarts) is not None:
        emptied.append(messages.LaneStarts(centroids=none))
    proposed = context.memory.get(ProposedByAll)
    if proposed is not None:
        emptied.append(proposed.drop_clusters())
    return emptied


def _check_updates(here: RowsRound, updates: Updates, own: Updates) -> None:
    """Refuse totals of different rows, or of fewer than this party has."""
    named = members(here.context)
    totals = [
        rows_round.MemberSums(members=named, sums=sums, counts=weights)
        for sums, weights in updates
    ]
    for total, (_, weights) in zip(totals, own, strict=True):
        rows_round.check_own(total.counts, weights)
    if here.params.fuzzy:
        return
    first, *raced = totals
    for total in raced:
        rows_round.check_same_rows([first], total, here.slack)
    others = rows_round.of_same_members(here.of_other_runs(), first)
    rows_round.check_same_rows(others, first, here.slack)


def _race_sizes(session: SessionContext, slot: str) -> list[int]:
    """Return the size of the sum: for each start an update, and one number."""
    params = cast("LlfSession", session).params
    width = session.member(slot).n_columns
    return [params.n_init * (params.n_clusters * (width + 1) + 1)]


RACE: Final = SumProgram(
    "race",
    1,
    race_starts,
    _race_sizes,
    lambda session: [tuple(session.slots)],
    hiding=lambda context: CheckedSum(
        scope="column", minimum_members=context.session.params.least_parties
    ),
)

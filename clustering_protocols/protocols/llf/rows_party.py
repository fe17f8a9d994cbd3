"""The party role for split rows: sums around the centroids that follow from totals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from clustering_protocols.algorithms.coincidence import n_coinciding, united
from clustering_protocols.algorithms.kmeans import nearest
from clustering_protocols.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.contract import (
    Outcome,
    PartyRole,
    Reply,
)
from clustering_protocols.data import DataSource
from clustering_protocols.errors import (
    GuardRefused,
    NotReady,
    ProtocolFailed,
)
from clustering_protocols.preparation.secrets import group_mark
from clustering_protocols.preparation.sums import (
    MaskedSum,
    check_members,
    read,
    share,
)
from clustering_protocols.records import Record

from . import closing, cohorts, kernels, messages, starts
from .centroids import Encoding, check_weights, digest, move, nudge, rows_of, stops
from .cohorts import members_of
from .features import Scaler, check_ranges, contiguous, scaler_of
from .params import FROM_PARTIES, LlfContext, LosslessFederated

_Task = messages.Update | messages.Close | messages.Tell
CLOSING_SUM = "closing"


class RowsParty(PartyRole[LosslessFederated, _Task, Record, messages.Closed]):
    """Follows the centroids by the totals, and adds its share of the next ones."""

    def reply(self, context: LlfContext, task: _Task, data: DataSource) -> Reply:
        """Answer an update, the closing count or the question for the result."""
        here = RowsRound.of(context)
        _check_members(here, task)
        if isinstance(task, messages.Update):
            return _update(here, task, data)
        if isinstance(task, messages.Close):
            return _close(here, task, data)
        return _tell(here, task)

    def conclude(
        self, context: LlfContext, result: messages.Closed, data: DataSource | None
    ) -> Outcome:
        """Return labels, sizes and centroids; label the rows now if it was not done.

        A party that missed the last rounds gets their totals with the result.
        """
        here = RowsRound.of(context)
        known = here.follow(result)
        rows = context.memory.get(messages.FinalRows)
        if rows is None:
            if data is None:
                raise NotReady("The rows are not labelled yet: run again with data.")
            rows, _ = closing.final_rows(here.params, data, here.scale, known.centroids)
        elif known.number != context.recall(messages.Centroids).number:
            raise ProtocolFailed("The result brings updates after the last one.")
        return _outcome(here, known, rows, here.closing_totals(result, known))


def _check_members(here: RowsRound, task: _Task) -> None:
    """Refuse members that follow neither from the terms nor from absences they allow.

    Raises
    ------
    GuardRefused
        Of fewer members than a masked sum may have.
    ProtocolFailed
        The party answers nothing more: the analyst does not keep to the terms.
    """
    params, session = here.params, here.context.session
    check_members(here.context, task.members, params.least_parties)
    if params.quorum is not None:
        if len(task.members) < params.quorum:
            raise ProtocolFailed("The analyst names fewer members than the quorum.")
        return
    drawn = list(session.slots)
    if isinstance(task, messages.Update):
        drawn = cohorts.drawn(session, task.number)
    if task.members != drawn:
        raise ProtocolFailed("The analyst names other members than the terms draw.")


def _check_close(here: RowsRound, known: messages.Centroids) -> None:
    """Refuse to close before the centroids rest: sizes would be told of any others."""
    if not stops(here.params, known.moved) and known.number < here.params.max_iter:
        raise ProtocolFailed(
            "The analyst closes before the centroids have come to rest."
        )


def _outcome(
    here: RowsRound,
    known: messages.Centroids,
    rows: messages.FinalRows,
    totals: closing.ClosingTotals,
) -> Outcome:
    wanted = here.context.session.params.output == "memberships"

    def predict(new: DataSource) -> IntArray:
        found = [nearest(here.scale(batch), known.centroids) for batch in new.batches()]
        return np.concatenate(found)

    return Outcome(
        labels=rows.labels,
        cluster_sizes=totals.sizes,
        centroids=here.scale.undo(known.centroids),
        memberships=rows.memberships if wanted else None,
        predict=predict,
        report={
            "n_updates": known.number,
            "n_coinciding": n_coinciding(known.centroids),
            "xie_beni": totals.xie_beni,
            "soft_davies_bouldin": totals.soft_davies_bouldin,
        },
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

        Raises
        ------
        InvalidArray, ProtocolFailed
            If the totals are of other sizes, out of order, or cannot be sums.
        """
        n_words = self.encoding.n_words + self.params.masked
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
            total = self._read(words, of, self.encoding.fits)
            known = self._moved(known, total, members)
        return known

    def closing_totals(
        self, task: messages.Closed, known: messages.Centroids
    ) -> closing.ClosingTotals:
        """Return sizes and indices of the result."""
        session = self.context.session
        task.require({"closing": closing.n_words(self.params)})
        members = members_of(session, task.closed_by)
        of = self.sum_of(members, CLOSING_SUM, *map(int, task.closed_in))
        code = closing.Encoding.of(
            self.scale, known.centroids, rows_of(session, session.slots)
        )
        words = self._read(task.closing, of, code.fits)
        return closing.read(code, words, known.centroids, rows_of(session, members))

    def share(self, words: WordArray, members: list[str], name: str) -> WordArray:
        """Return a share as it is sent: hidden and tagged, if the terms mask sums."""
        if not self.params.masked:
            return words
        return share(
            self.context,
            words,
            MaskedSum.here(self.context, members, name),
            "column",
            blinded=self.params.blind,
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

    def _read(
        self, total: WordArray, of: MaskedSum, fits: Callable[[WordArray], bool]
    ) -> WordArray:
        """Return the elements of a total; without masks nobody can check them."""
        if not self.params.masked:
            return np.array(total)
        blinded = self.params.blind
        return read(self.context, total, of, "column", fits, blinded=blinded)

    def _moved(
        self, known: messages.Centroids, total: WordArray, members: list[str]
    ) -> messages.Centroids:
        sums, weights = self.encoding.decode(total)
        check_weights(self.params, weights, rows_of(self.context.session, members))
        number = known.number + 1
        step = nudge(self.context.session, self.context.slot.column, number, self.scale)
        unit, least = self.scale.step, self.params.least_rows_moved
        V, moved = move(known.centroids, sums, weights, step, unit, least)
        return messages.Centroids(
            number=number, asked=known.asked, centroids=V, moved=moved
        )

    def start(self) -> messages.StartCentroids:
        """Return V(0): it came from a party, or all find the same."""
        if self.params.start(rows_split=True) in FROM_PARTIES:
            V = self.context.recall(messages.StartCentroids).centroids
        elif settled := self.context.memory.get(messages.StartCentroids):
            V = settled.centroids
        else:
            V = starts.without_messages(self.context, self.scale)
        return messages.StartCentroids(centroids=united(V, self.scale.step))


def update_sum(number: int) -> str:
    """Return the name of an update's sum: its total is that of no other update."""
    return f"update/{number}"


def _at_start(start: messages.StartCentroids) -> messages.Centroids:
    return messages.Centroids(number=0, centroids=start.centroids, moved=None)


def _update(here: RowsRound, task: messages.Update, data: DataSource) -> Reply:
    _check_first(here, data)
    known = here.follow(task)
    _check_order(here, task.number, known)
    sums, weights = local_sums(here, data, known.centroids)
    words = here.share(
        here.encoding.encode(sums, weights), task.members, update_sum(task.number)
    )
    leads = task.members[0] == here.context.slot.name
    blind_leader = leads and here.params.blind
    tells_start = leads and task.number == 1 and not here.params.blind
    contribution = messages.Sums(
        words=words,
        round=here.context.round,
        attempt=here.context.attempt,
        start=known.centroids if tells_start else known.centroids[:0],
        moved=_two_digits(known.moved) if blind_leader else None,
        stop=blind_leader and stops(here.params, known.moved),
    )
    known = known.model_copy(update={"asked": task.number})
    return Reply(contribution=contribution, remember=[here.start(), known])


def _check_order(here: RowsRound, number: int, known: messages.Centroids) -> None:
    """Refuse an update that does not follow: all of them, where nobody is left out.

    Its number is that of the rounds of updates that everybody was told of, so that no
    update is made again by those who were left out of it.
    """
    if number != here.context.told.get(messages.Update.kind):
        raise ProtocolFailed("The analyst asks again for an update that was made.")
    follows = number == known.asked + 1
    if here.params.may_be_left_out:
        follows = number > known.asked
    if number != known.number + 1 or not follows:
        raise ProtocolFailed("The analyst asks for an update out of order.")


def local_sums(
    here: RowsRound, data: DataSource, V: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return this party's sums (k, F) and weights (k,), in whole units.

    Raises
    ------
    GuardRefused
        If the party has too few rows for sums of degrees.
    """
    params, encoding, scale = here.params, here.encoding, here.scale
    _check_rows(params, data.n_rows, scale.offset.size)
    sums, weights = np.zeros_like(V), np.zeros(len(V))
    fixed = (scale.offset, scale.inverse, np.ascontiguousarray(V))

    def of_batch(batch: FloatArray) -> tuple[FloatArray, FloatArray]:
        own, own_weights = np.zeros_like(V), np.zeros(len(V))
        if params.fuzzy:
            units = (encoding.sums.unit, float(encoding.weights.unit))
            kernels.fuzzy_sums(
                batch, *fixed, params.fuzzifier, *units, own, own_weights
            )
        else:
            kernels.cmeans_sums(batch, *fixed, encoding.sums.unit, own, own_weights)
        return own, own_weights

    for own, own_weights in here.context.engine.map(of_batch, contiguous(data)):
        sums += own
        weights += own_weights
    if not params.masked and not params.fuzzy:
        few = weights < params.suppress_below
        sums[few], weights[few] = 0.0, 0.0
    return sums, weights


def _check_rows(params: LosslessFederated, n_rows: int, width: int) -> None:
    """Refuse where the sums of one round have as many equations as unknowns.

    Corcuera Bárcena et al., section IV-B: N_m > k (F + 1) / F.
    """
    needed = params.n_clusters * (width + 1) / width
    if params.fuzzy and n_rows <= needed:
        raise GuardRefused(
            f"{n_rows} rows: sums of degrees over no more than {needed:.0f} rows could "
            "be solved for them. Use fewer clusters, or bring more rows."
        )


def _check_first(here: RowsRound, data: DataSource) -> None:
    """Refuse rows outside the ranges of the dictionary, the first time that they are used."""
    if here.context.memory.get(messages.Centroids) is None:
        check_ranges(here.context, data)


def _close(here: RowsRound, task: messages.Close, data: DataSource) -> Reply:
    _check_first(here, data)
    known = here.follow(task)
    _check_close(here, known)
    V = known.centroids
    rows, shares = closing.final_rows(here.params, data, here.scale, V)
    total_rows = rows_of(here.context.session, here.context.session.slots)
    code = closing.Encoding.of(here.scale, V, total_rows)
    words = here.share(code.encode(shares), task.members, CLOSING_SUM)
    context = here.context
    share = messages.Closing(words=words, round=context.round, attempt=context.attempt)
    return Reply(contribution=share, remember=[here.start(), known, rows])


def _tell(here: RowsRound, task: messages.Tell) -> Reply:
    known = here.follow(task)
    _check_close(here, known)
    totals = here.closing_totals(task, known)
    mark = digest(known.centroids, known.number) + totals.mark
    if task.members[0] == here.context.slot.name:
        shown = closing.published(here.context.session, here.scale, known, totals)
    else:
        shown = closing.nothing(here.scale.offset.size, known.number)
    told = messages.Told(
        **dict(shown), digest=group_mark(here.context, "column", "told", mark)
    )
    return Reply(contribution=told, remember=[known])


def _two_digits(moved: float | None) -> float | None:
    """Round what tells outsiders of progress: no more than they need to plot it."""
    return None if moved is None else float(f"{moved:.2g}")

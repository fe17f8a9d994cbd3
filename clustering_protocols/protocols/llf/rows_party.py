"""The party role for split rows: sums around the centroids that follow from totals."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from clustering_protocols.algorithms.kmeans import nearest
from clustering_protocols.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.contract import Outcome, PartyContext, PartyRole, Reply
from clustering_protocols.data import DataSource
from clustering_protocols.errors import (
    GuardRefused,
    Malformed,
    NotReady,
    ProtocolFailed,
)
from clustering_protocols.preparation.sums import (
    MaskedSum,
    blind,
    check_members,
    mask,
    unblind,
)
from clustering_protocols.records import Record

from . import closing, kernels, messages, starts
from .centroids import Encoding, check_weights, digest, move, nudge, rows_of, stops
from .cohorts import members_of
from .features import Scaler, check_ranges, contiguous, params_of, scaler_of
from .params import LosslessFederated

UPDATE_SUM, CLOSING_SUM = "update", "closing"


class RowsParty(PartyRole):
    """Follows the centroids by the totals, and adds its share of the next ones."""

    def reply(self, context: PartyContext, task: Record, data: DataSource) -> Reply:
        """Answer an update, the closing count or the question for the result."""
        here = RowsRound.of(context)
        if isinstance(task, messages.Update | messages.Close | messages.Tell):
            check_members(context, task.members, here.params.least_parties)
        if isinstance(task, messages.Update):
            return _update(here, task, data)
        if isinstance(task, messages.Close):
            return _close(here, task, data)
        if isinstance(task, messages.Tell):
            return _tell(here, task)
        raise Malformed(f"A {task.kind!r} is no task of this stage.")

    def conclude(
        self, context: PartyContext, result: Record, data: DataSource | None
    ) -> Outcome:
        """Return labels, sizes and centroids; label the rows now if it was not done.

        A party that missed the last rounds gets their totals with the result.
        """
        here = RowsRound.of(context)
        closed = messages.Closed.narrow(result)
        known = here.follow(closed)
        rows = context.memory.recall(messages.FinalRows)
        if rows is None:
            if data is None:
                raise NotReady("The rows are not labelled yet: run again with data.")
            rows, _ = closing.final_rows(here.params, data, here.scale, known.centroids)
        elif known.number != context.recall(messages.Centroids).number:
            raise ProtocolFailed("The result brings updates after the last one.")
        return _outcome(here, known, rows, here.closing_totals(closed, known))


def _outcome(
    here: RowsRound,
    known: messages.Centroids,
    rows: messages.FinalRows,
    totals: closing.ClosingTotals,
) -> Outcome:
    wanted = params_of(here.context.session).output == "memberships"

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
            "xie_beni": totals.xie_beni,
            "soft_davies_bouldin": totals.soft_davies_bouldin,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRound:
    """One party at one round: its view, scale and encodings."""

    context: PartyContext
    scale: Scaler
    encoding: Encoding

    @classmethod
    def of(cls, context: PartyContext) -> RowsRound:
        """Return where a party stands."""
        scale = scaler_of(context)
        total = rows_of(context.session, context.session.slots)
        return cls(
            context=context,
            scale=scale,
            encoding=Encoding.of(params_of(context.session), scale, total),
        )

    @property
    def params(self) -> LosslessFederated:
        """Return the parameters with their type known."""
        return params_of(self.context.session)

    def follow(self, totals: messages.Totals) -> messages.Centroids:
        """Return V after all updates whose totals came, starting from what is known.

        Raises
        ------
        InvalidArray, ProtocolFailed
            If the totals are of other sizes, out of order, or cannot be sums.
        """
        sizes = {"slots": len(self.context.session.slots), "w": self.encoding.n_words}
        totals.require(sizes)
        known = self.context.memory.recall(messages.Centroids) or _at_start(
            self.start()
        )
        for update, cohort, words in zip(
            totals.updates, totals.cohorts, totals.totals, strict=True
        ):
            number, round_, attempt = map(int, update)
            if number <= known.number:
                continue  # it came with an attempt that this party was too late for
            if number != known.number + 1:
                raise ProtocolFailed("The total of an update is missing.")
            members = members_of(self.context.session, cohort)
            of = self.sum_of(members, UPDATE_SUM, round_, attempt)
            known = self._moved(known, self._readable(words, of), members)
        return known

    def closing_totals(
        self, task: messages.Closed, known: messages.Centroids
    ) -> closing.ClosingTotals:
        """Return sizes and indices of the result."""
        task.require({"closing": closing.N_ARRAYS * self.params.n_clusters})
        members = members_of(self.context.session, task.closed_by)
        of = self.sum_of(members, CLOSING_SUM, *map(int, task.closed_in))
        return closing.read(
            self.scale,
            self._readable(task.closing, of),
            known.centroids,
            rows_of(self.context.session, members),
            rows_of(self.context.session, self.context.session.slots),
        )

    def hide(
        self, words: WordArray, members: list[str], name: str, inputs: bytes
    ) -> None:
        """Mask a share in place, as the terms say."""
        if not self.params.masked:
            return
        of = MaskedSum.here(self.context, members, name)
        if self.params.blind:
            blind(self.context, words, of, "column")
        least = self.params.least_parties
        mask(self.context, words, of, inputs=inputs, minimum_members=least)

    def sum_of(
        self, members: list[str], name: str, round_: int, attempt: int
    ) -> MaskedSum:
        """Return the masked sum of another round of this stage."""
        return MaskedSum(
            members=tuple(members),
            stage=messages.UPDATES,
            name=name,
            round=round_,
            attempt=attempt,
        )

    def _readable(self, words: WordArray, of: MaskedSum) -> WordArray:
        if self.params.blind:
            return unblind(self.context, words, of, "column")
        return np.array(words)

    def _moved(
        self, known: messages.Centroids, total: WordArray, members: list[str]
    ) -> messages.Centroids:
        sums, weights = self.encoding.decode(total)
        check_weights(self.params, weights, rows_of(self.context.session, members))
        number = known.number + 1
        step = nudge(self.context.session, self.context.slot.column, number, self.scale)
        V, moved = move(known.centroids, sums, weights, step)
        return messages.Centroids(number=number, centroids=V, moved=moved)

    def start(self) -> messages.StartCentroids:
        """Return V(0): it came from a party, or all find the same."""
        settled = self.context.memory.recall(messages.StartCentroids)
        if settled is not None:
            return settled
        V = starts.without_messages(self.context, self.scale)
        return messages.StartCentroids(centroids=V)


def _at_start(start: messages.StartCentroids) -> messages.Centroids:
    return messages.Centroids(number=0, centroids=start.centroids, moved=None)


def _update(here: RowsRound, task: messages.Update, data: DataSource) -> Reply:
    _check_first(here, data)
    known = here.follow(task)
    if task.number != known.number + 1:
        raise ProtocolFailed("The analyst asks for an update out of order.")
    sums, weights = local_sums(here, data, known.centroids)
    words = here.encoding.encode(sums, weights)
    inputs = digest(known.centroids, known.number)
    here.hide(words, task.members, UPDATE_SUM, inputs)
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
    return Reply(
        contribution=contribution, remember=[here.start(), known], inputs=inputs
    )


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
    for batch in contiguous(data):
        if params.fuzzy:
            units = (encoding.sums.unit, float(encoding.weights.unit))
            kernels.fuzzy_sums(batch, *fixed, params.fuzzifier, *units, sums, weights)
        else:
            kernels.cmeans_sums(batch, *fixed, encoding.sums.unit, sums, weights)
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
    """Refuse rows outside the declared ranges, the first time that they are used."""
    if here.context.memory.recall(messages.Centroids) is None:
        check_ranges(here.scale, data)


def _close(here: RowsRound, task: messages.Close, data: DataSource) -> Reply:
    _check_first(here, data)
    known = here.follow(task)
    V = known.centroids
    rows, shares = closing.final_rows(here.params, data, here.scale, V)
    total_rows = rows_of(here.context.session, here.context.session.slots)
    words = closing.encode(here.scale, shares, V, total_rows)
    inputs = digest(V, known.number)
    here.hide(words, task.members, CLOSING_SUM, inputs)
    context = here.context
    share = messages.Closing(words=words, round=context.round, attempt=context.attempt)
    return Reply(
        contribution=share, remember=[here.start(), known, rows], inputs=inputs
    )


def _tell(here: RowsRound, task: messages.Tell) -> Reply:
    known = here.follow(task)
    totals = here.closing_totals(task, known)
    mark = digest(known.centroids, known.number) + totals.mark
    if task.members[0] == here.context.slot.name:
        shown = closing.published(here.context.session, here.scale, known, totals)
    else:
        shown = closing.nothing(here.scale.offset.size, known.number)
    told = messages.Told(**dict(shown), digest=sha256(mark).hexdigest())
    return Reply(contribution=told, remember=[known])


def _two_digits(moved: float | None) -> float | None:
    """Round what tells outsiders of progress: no more than they need to plot it."""
    return None if moved is None else float(f"{moved:.2g}")

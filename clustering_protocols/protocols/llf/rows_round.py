"""One party at one round of split rows: where it stands, and what it reads of totals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.shared_stages.checked_sums import CheckedSum
from clustering_protocols.shared_stages.masked_sums import MaskedSum

from . import closing_sums, messages, starts, steadiness
from .centroids import Encoding, check_counts, check_weights, move, nudge, rows_of
from .features import Scaler, scaler_of
from .params import FROM_PARTIES, LlfContext, LosslessFederated
from .participants import members_of


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
    def slack(self) -> steadiness.Slack:
        """Return by how much rounding may set totals over the same rows apart."""
        return steadiness.Slack.of(self.encoding, self.scale, self._all_rows())

    def means(
        self, task: messages.LabelTotals, known: messages.Centroids
    ) -> messages.FinalMeans:
        """Return the means of the final labels: as they were first read, or read now."""
        if before := self.context.memory.get(messages.FinalMeans):
            return before
        session = self.context.session
        n_words = closing_sums.n_words_of_labels(self.params, self.scale.offset.size)
        task.require({"closing": n_words})
        members = members_of(session, task.closed_by)
        of = self.sum_of(members, labels_sum(known), *map(int, task.closed_in))
        code = self.labels_encoding()
        sums, counts = code.decode(
            self._checked_sum.read(self.context, task.closing, of, code.fits)
        )
        check_counts(counts, rows_of(session, members))
        self._check_closing(known, sums, counts, members)
        return closing_sums.means_of(sums, counts, known.centroids)

    def totals(
        self, task: messages.FinalTotals, known: messages.Centroids
    ) -> closing_sums.ClosingTotals:
        """Return sizes and figures of the result."""
        session, means = self.context.session, self.means(task, known).means
        task.require({"gathered": closing_sums.n_words_around(self.params)})
        members = members_of(session, task.gathered_by)
        of = self.sum_of(members, around_sum(known), *map(int, task.gathered_in))
        code = self.around_encoding(known, means)
        words = self._checked_sum.read(self.context, task.gathered, of, code.fits)
        total = code.decode(words, rows_of(session, members))
        return closing_sums.totals_of(self.params, known, means, total)

    def labels_encoding(self) -> Encoding:
        """Return how sums of the final labels stand as ring elements."""
        k, n_rows = self.params.n_clusters, self._all_rows()
        return closing_sums.encoding_of_labels(self.scale, k, n_rows)

    def around_encoding(
        self, known: messages.Centroids, means: FloatArray
    ) -> closing_sums.AroundEncoding:
        """Return how sums around the means of the final labels do."""
        fixed = (self.scale, known.centroids, means, self._all_rows())
        return closing_sums.AroundEncoding.of(self.params, *fixed)

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
            steadiness.check_own(weights, known.own)
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
        now = steadiness.MemberSums(members=members, sums=sums, counts=counts)
        others = steadiness.of_same_members(self.of_other_runs(), now)
        last = steadiness.of_same_members([_total_of(known)], now)
        steadiness.check_same_rows([*others, *last], now, self.slack)
        for before in last:
            steadiness.check_no_farther(before, now, known.centroids, self.slack)

    def of_other_runs(self) -> list[steadiness.MemberSums]:
        """Return the total that was read last in each of the other runs."""
        session, memory = self.context.session, self.context.memory
        kept = [
            memory.scope_to_run(number).get(messages.Centroids)
            for number, run in enumerate(session.runs)
            if run != session.params
        ]
        return [_total_of(each) for each in kept if each is not None]

    def _check_closing(
        self,
        known: messages.Centroids,
        sums: FloatArray,
        counts: FloatArray,
        members: list[str],
    ) -> None:
        """Refuse a total by final labels that cannot follow the updates."""
        rows = self.context.memory.get(messages.FinalRows)
        if rows is not None:
            own = np.bincount(rows.labels, minlength=self.params.n_clusters)
            steadiness.check_own(counts, own.astype(np.float64))
        self._check_steady(known, sums, counts, members)

    def start(self) -> messages.StartCentroids:
        """Return V(0): it came from a party, or all find the same."""
        if self.params.start in FROM_PARTIES:
            V = self.context.recall(messages.StartCentroids).centroids
        elif settled := self.context.memory.get(messages.StartCentroids):
            V = settled.centroids
        else:
            V = starts.without_messages(self.context, self.scale)
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


def _total_of(known: messages.Centroids) -> steadiness.MemberSums:
    return steadiness.MemberSums(
        members=known.members, sums=known.sums, counts=known.weights
    )

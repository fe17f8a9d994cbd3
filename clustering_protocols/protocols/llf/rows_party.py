"""The party role for split rows: sums around the centroids that follow from totals."""

from __future__ import annotations

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import Outcome, PartyRole, Reply
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.masked_sums import check_members

from . import kernels, messages, participants, row_audit, rows_finalisation
from .centroids import stops
from .features import check_ranges
from .params import LlfContext, LosslessFederated
from .rows_round import RowsRound, update_sum

_Task = messages.Update | messages.Close | messages.Gather | messages.ReportDigest


class RowsParty(PartyRole[LosslessFederated, _Task, Record, messages.FinalTotals]):
    """Follows the centroids by the totals, and adds its share of the next ones."""

    def reply(self, context: LlfContext, task: _Task, data: DataSource) -> Reply:
        """Answer an update, a closing sum or the question for the result."""
        here = RowsRound.of(context)
        _check_members(here, task)
        if isinstance(task, messages.ReportDigest):
            return rows_finalisation.tell(here, task)
        _check_first(here, data)
        if isinstance(task, messages.Update):
            return _update(here, task, data)
        if isinstance(task, messages.Close):
            return rows_finalisation.close(here, task, data)
        return rows_finalisation.gather(here, task, data)

    def foresee(self, context: LlfContext) -> Outcome | None:
        """Return labels, sizes and centroids once all parties agree on them."""
        return rows_finalisation.foresee(RowsRound.of(context))

    def conclude(
        self, context: LlfContext, result: messages.FinalTotals, data: DataSource | None
    ) -> Outcome:
        """Return labels, sizes, centroids and figures."""
        return rows_finalisation.outcome(RowsRound.of(context), result, data)


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
        drawn = participants.draw_members(session, task.number)
    if task.members != drawn:
        raise ProtocolFailed("The analyst names other members than the terms draw.")


def _update(here: RowsRound, task: messages.Update, data: DataSource) -> Reply:
    known = here.follow(task)
    _check_order(here, task.number, known)
    history = row_audit.audit_sums(here, data, [known.centroids], task.number)
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
        moved=_two_digits(known.moved) if leads else None,
        stop=leads and stops(here.params, known.moved),
    )
    known = known.model_copy(
        update={"asked": task.number, "own": here.encoding.weights_of(weights)}
    )
    remember = [here.start(), known, *history]
    return Reply(contribution=contribution, remember=remember)


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


def _check_first(here: RowsRound, data: DataSource) -> None:
    """Refuse rows outside the ranges of the dictionary, when they are first used."""
    if here.context.memory.get(messages.Centroids) is None:
        check_ranges(here.context, data)


def _two_digits(moved: float | None) -> float | None:
    """Round what tells outsiders of progress: no more than they need to plot it."""
    return None if moved is None else float(f"{moved:.2g}")

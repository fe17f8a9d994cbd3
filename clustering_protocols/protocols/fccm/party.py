"""The party role: one site's share of the sums; memberships from the totals."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from clustering_protocols.algorithms.coincidence import n_alike, strongest
from clustering_protocols.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.contract import (
    Outcome,
    PartyRole,
    Reply,
)
from clustering_protocols.data import DataSource, sparse_matrix
from clustering_protocols.errors import InvalidData, ProtocolFailed
from clustering_protocols.preparation.alignment.digests import RowOrder
from clustering_protocols.preparation.secrets import group_mark
from clustering_protocols.preparation.sums import MaskedSum, read, share
from clustering_protocols.records import Record

from . import kernels, messages, shifts
from .messages import Memberships
from .params import CoClustering, FccmContext


class FccmParty(
    PartyRole[CoClustering, messages.Add | messages.Tell, Record, messages.Done]
):
    """Adds its share of the sums, and follows the memberships by the totals."""

    def reply(
        self, context: FccmContext, task: messages.Add | messages.Tell, data: DataSource
    ) -> Reply:
        """Return the next share, or at the end what may be told of the clusters."""
        if isinstance(task, messages.Tell):
            return _tell(context, task)
        R = _in_travelling_order(context, data)
        if context.memory.get(Memberships) is None:
            if task.number != 1 or task.overflowed or task.total.size:
                raise ProtocolFailed("The analyst asks for sums out of order.")
            _check_values(context, data)
            known = _first(context, R)
        else:
            known = _followed(context, task, R)
        return Reply(contribution=_share(context, known, R), remember=[known])

    def conclude(
        self, context: FccmContext, result: messages.Done, data: DataSource | None
    ) -> Outcome:
        """Return labels, memberships of objects and of this site's items."""
        known = context.recall(Memberships)
        U = context.recall(RowOrder).restore(known.objects)
        return Outcome(
            labels=strongest(U, kernels.TIE),
            cluster_sizes=_sizes(known),
            memberships=U,
            item_memberships=np.ascontiguousarray(known.items.T),
            report={
                "n_iterations": known.n_iterations,
                "n_coinciding": n_alike(U, kernels.TIE),
            },
        )


_OTHER_MACHINE: Final = 1e-9
"""How far sites may differ in what moved: their exp need not agree in the last digit."""


def _tell(context: FccmContext, task: messages.Tell) -> Reply:
    known = context.recall(Memberships)
    if not _rests(context, known, margin=_OTHER_MACHINE):
        raise ProtocolFailed(
            "The analyst asks for sizes before the memberships have come to rest."
        )
    if not task.overflowed:
        _read(context, task, known)  # noise if the last total was not the same for all
    sizes = _sizes(known)
    leads = context.session.slots[0] == context.slot.name
    large = np.flatnonzero(sizes >= context.session.params.min_cluster_rows)
    shown = large if leads else large[:0]
    told = messages.Told(
        clusters=shown,
        sizes=sizes[shown],
        n_iterations=known.n_iterations,
        digest=group_mark(context, "row", "told", sizes.tobytes()),
    )
    return Reply(contribution=told)


def _sizes(known: Memberships) -> IntArray:
    """Return how many objects belong most to each cluster (C,)."""
    clusters = strongest(known.objects, kernels.TIE)
    return np.bincount(clusters, minlength=known.objects.shape[1])


def _in_travelling_order(context: FccmContext, data: DataSource) -> csr_array:
    return csr_array(sparse_matrix(data)[context.recall(RowOrder).order])


def _check_values(context: FccmContext, data: DataSource) -> None:
    """Refuse co-occurrences outside [0, r_max], before anything of them is sent."""
    R, r_max = sparse_matrix(data), context.session.params.r_max
    outside = np.unique(R.indices[(R.data < 0) | (R.data > r_max)])
    if len(outside):
        named = ", ".join(np.array(data.columns)[outside[:5]])
        raise InvalidData(f"Values outside [0, {r_max:g}], for example in {named}.")


# Following the totals


class _Total(NamedTuple):
    """Sums over items (n, C), and normalisers (C,): all 1 where sites have their own."""

    sums: FloatArray
    Z: FloatArray


def _first(context: FccmContext, R: csr_array) -> Memberships:
    params = context.session.params
    n_rows, width = R.shape
    rng = context.session.generator("fccm", "start")
    U = kernels.first_memberships(n_rows, params.n_clusters, rng)
    nothing = np.zeros((width, params.n_clusters))
    known = Memberships(
        number=0,
        transcript=context.transcript,
        n_iterations=0,
        moved=None,
        repeats=0,
        objects=U,
        items=nothing,
        weights=nothing,
        shifts=np.zeros(params.n_clusters),
    )
    return _under_way(context, known, R, shifts.safe(context.session, U), repeats=0)


def _followed(context: FccmContext, asked: messages.Add, R: csr_array) -> Memberships:
    """Return memberships after a total, with the weights of the next sums."""
    known = context.recall(Memberships)
    if asked.number != known.number + 1:
        raise ProtocolFailed("The analyst asks for sums out of order.")
    if known.repeats > shifts.MAX_REPEATS:
        raise ProtocolFailed(
            "Item memberships are too crisp for the sums: choose a larger lambda_w."
        )
    session, again = context.session, known.repeats + 1
    if asked.overflowed:
        asked.require({"before": 0})
        safe = shifts.safe(session, known.objects)
        return _under_way(context, known, R, safe, repeats=again)
    total = _read(context, asked, known)
    if session.params.is_global and shifts.too_coarse(session, total.Z):
        lower = shifts.lowered(session, known.shifts, total.Z)
        return _under_way(context, known, R, lower, repeats=again)
    known = _iterated(context, known, total)
    return _under_way(
        context, known, R, shifts.tracking(known.shifts, total.Z), repeats=0
    )


def _iterated(context: FccmContext, known: Memberships, total: _Total) -> Memberships:
    """Return U (equation 2) and W (equation 3) of the iteration that a total ends."""
    params = context.session.params
    U = kernels.object_memberships(total.sums / total.Z, params.lambda_u)
    changes = {
        "n_iterations": known.n_iterations + 1,
        "moved": float(np.abs(U - known.objects).max()),
        "objects": U,
        "items": known.weights / total.Z,
    }
    return Memberships.model_validate(dict(known) | changes)


def _under_way(
    context: FccmContext,
    known: Memberships,
    R: csr_array,
    taken_off: FloatArray,
    *,
    repeats: int,
) -> Memberships:
    """Return the same with the weights from which the next sums come."""
    params = context.session.params
    exponents = kernels.item_exponents(R, known.objects, params.lambda_w)
    if params.is_global:
        with np.errstate(over="ignore"):  # a share that overflows says so
            weights = np.exp(exponents - taken_off)
        weights = np.minimum(weights, 1e300)
    else:
        weights = kernels.item_memberships(exponents)
    changes = {
        "number": known.number + 1,
        "transcript": context.transcript,
        "repeats": repeats,
        "weights": weights,
        "shifts": taken_off,
    }
    return Memberships.model_validate(dict(known) | changes)


def _read(context: FccmContext, asked: messages.Add, known: Memberships) -> _Total:
    """Return the total of the sums that were under way."""
    session, params = context.session, context.session.params
    n_rows, k = known.objects.shape
    asked.require({"before": n_words(params.is_global, n_rows, k)})
    of = _sum_of(context, known.number, known.transcript)
    of_sums, of_Z = shifts.encodings(session)

    def fits(words: WordArray) -> bool:
        return of_sums.fits(words[: n_rows * k]) and of_Z.fits(words[n_rows * k :])

    words = read(context, asked.total, of, "row", fits, blinded=params.blind)
    sums, Z = words[: n_rows * k], words[n_rows * k :]
    normalisers = of_Z.decode(Z) if params.is_global else np.ones(k)
    return _Total(of_sums.decode(sums).reshape(n_rows, k), normalisers)


def n_words(is_global: bool, n_rows: int, k: int) -> int:  # noqa: FBT001  a mode, named where it is called
    """Return the size of a share: its ring elements, and a tag."""
    return n_rows * k + (k if is_global else 0) + 1


# The share


def _share(context: FccmContext, known: Memberships, R: csr_array) -> messages.Share:
    params = context.session.params
    overflow = params.is_global and shifts.overflows(context.session, known.weights)
    weights = np.zeros_like(known.weights) if overflow else known.weights
    of = _sum_of(context, known.number, context.transcript)
    words = share(
        context,
        _encoded(context, R, weights),
        of,
        "row",
        blinded=params.blind,
    )
    if context.session.slots[0] != context.slot.name:
        return messages.Share(words=words, overflows=overflow)
    moved = known.moved
    return messages.Share(
        words=words,
        overflows=overflow,
        n_iterations=known.n_iterations,
        moved=None if moved is None else float(f"{moved:.2g}"),
        stop=_rests(context, known),
    )


def _rests(context: FccmContext, known: Memberships, margin: float = 0.0) -> bool:
    """Return whether no iteration follows: the memberships rest, or it was the last."""
    params = context.session.params
    if known.repeats > 0 or known.moved is None:
        return False
    last = known.n_iterations >= params.max_iter
    return last or known.moved <= params.tol + margin


def _encoded(context: FccmContext, R: csr_array, weights: FloatArray) -> WordArray:
    of_sums, of_Z = shifts.encodings(context.session)
    sums = of_sums.encode(kernels.aggregation(R, weights).reshape(-1))
    if not context.session.params.is_global:
        return sums
    return np.concatenate([sums, of_Z.encode(weights.sum(axis=0))])


def _sum_of(context: FccmContext, number: int, transcript: str) -> MaskedSum:
    return MaskedSum(
        members=context.session.slots, name=f"sums-{number}", transcript=transcript
    )

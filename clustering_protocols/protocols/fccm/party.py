"""The party role: one site's share of the sums; memberships from the totals."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from clustering_protocols.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.contract import Outcome, PartyContext, PartyRole, Reply
from clustering_protocols.data import DataSource, sparse_matrix
from clustering_protocols.errors import InvalidData, ProtocolFailed
from clustering_protocols.preparation.alignment import RowOrder
from clustering_protocols.preparation.sums import MaskedSum, blind, mask, unblind
from clustering_protocols.records import Record

from . import kernels, messages, shifts
from .messages import Memberships
from .shifts import params_of


class FccmParty(PartyRole):
    """Adds its share of the sums, and follows the memberships by the totals."""

    def reply(self, context: PartyContext, task: Record, data: DataSource) -> Reply:
        """Return the next share, or the sizes of the clusters at the end."""
        if isinstance(task, messages.Tell):
            return _tell(context, task)
        asked = messages.Add.narrow(task)
        R = _in_travelling_order(context, data)
        if asked.number == 1:
            _check_values(context, data)
            known = _first(context, R)
        else:
            known = _followed(context, asked, R)
        overflowed = bytes([asked.overflowed])
        inputs = sha256(overflowed + asked.total.tobytes()).digest()
        share = _share(context, known, R, inputs)
        return Reply(contribution=share, remember=[known], inputs=inputs)

    def conclude(
        self, context: PartyContext, result: Record, data: DataSource | None
    ) -> Outcome:
        """Return labels, memberships of objects and of this site's items."""
        done = messages.Done.narrow(result)
        known = context.recall(Memberships)
        if (done.sizes != _sizes(known)).any():
            raise ProtocolFailed("The analyst tells other sizes than memberships give.")
        order = context.recall(RowOrder).order
        U = np.empty_like(known.objects)
        U[order] = known.objects
        return Outcome(
            labels=kernels.clusters(U),
            cluster_sizes=done.sizes,
            memberships=U,
            item_memberships=np.ascontiguousarray(known.items.T),
            report={"n_iterations": known.n_iterations},
        )


def _tell(context: PartyContext, task: messages.Tell) -> Reply:
    known = context.recall(Memberships)
    if not task.overflowed:
        _read(context, task, known)  # noise if the last total was not the same for all
    told = messages.Told(sizes=_sizes(known), n_iterations=known.n_iterations)
    return Reply(contribution=told)


def _sizes(known: Memberships) -> IntArray:
    """Return how many objects belong most to each cluster (C,)."""
    clusters = kernels.clusters(known.objects)
    return np.bincount(clusters, minlength=known.objects.shape[1])


def _in_travelling_order(context: PartyContext, data: DataSource) -> csr_array:
    return csr_array(sparse_matrix(data)[context.recall(RowOrder).order])


def _check_values(context: PartyContext, data: DataSource) -> None:
    """Refuse co-occurrences outside [0, r_max], before anything of them is sent."""
    R, r_max = sparse_matrix(data), params_of(context.session).r_max
    outside = np.unique(R.indices[(R.data < 0) | (R.data > r_max)])
    if len(outside):
        named = ", ".join(np.array(data.columns)[outside[:5]])
        raise InvalidData(f"Values outside [0, {r_max:g}], for example in {named}.")


# Following the totals


class _Total(NamedTuple):
    """Sums over items (n, C), and normalisers (C,): all 1 where sites have their own."""

    sums: FloatArray
    Z: FloatArray


def _first(context: PartyContext, R: csr_array) -> Memberships:
    params = params_of(context.session)
    n_rows, width = R.shape
    rng = context.session.generator("fccm", "start")
    U = kernels.first_memberships(n_rows, params.n_clusters, rng)
    nothing = np.zeros((width, params.n_clusters))
    known = Memberships(
        number=0,
        round=context.round,
        attempt=context.attempt,
        n_iterations=0,
        moved=None,
        repeats=0,
        objects=U,
        items=nothing,
        weights=nothing,
        shifts=np.zeros(params.n_clusters),
    )
    return _under_way(context, known, R, shifts.safe(context.session, U), repeats=0)


def _followed(context: PartyContext, asked: messages.Add, R: csr_array) -> Memberships:
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
    if params_of(session).is_global and shifts.too_coarse(session, total.Z):
        lower = shifts.lowered(session, known.shifts, total.Z)
        return _under_way(context, known, R, lower, repeats=again)
    known = _iterated(context, known, total)
    return _under_way(
        context, known, R, shifts.tracking(known.shifts, total.Z), repeats=0
    )


def _iterated(context: PartyContext, known: Memberships, total: _Total) -> Memberships:
    """Return U (equation 2) and W (equation 3) of the iteration that a total ends."""
    params = params_of(context.session)
    U = kernels.object_memberships(total.sums / total.Z, params.lambda_u)
    changes = {
        "n_iterations": known.n_iterations + 1,
        "moved": float(np.abs(U - known.objects).max()),
        "objects": U,
        "items": known.weights / total.Z,
    }
    return Memberships.model_validate(dict(known) | changes)


def _under_way(
    context: PartyContext,
    known: Memberships,
    R: csr_array,
    taken_off: FloatArray,
    *,
    repeats: int,
) -> Memberships:
    """Return the same with the weights from which the next sums come."""
    params = params_of(context.session)
    exponents = kernels.item_exponents(R, known.objects, params.lambda_w)
    if params.is_global:
        with np.errstate(over="ignore"):  # a share that overflows says so
            weights = np.exp(exponents - taken_off)
        weights = np.minimum(weights, 1e300)
    else:
        weights = kernels.item_memberships(exponents)
    changes = {
        "number": known.number + 1,
        "round": context.round,
        "attempt": context.attempt,
        "repeats": repeats,
        "weights": weights,
        "shifts": taken_off,
    }
    return Memberships.model_validate(dict(known) | changes)


def _read(context: PartyContext, asked: messages.Add, known: Memberships) -> _Total:
    """Return the total of the sums that were under way."""
    session, params = context.session, params_of(context.session)
    n_rows, k = known.objects.shape
    asked.require({"before": n_words(params.is_global, n_rows, k)})
    of = _sum_of(context, known.number, known.round, known.attempt)
    words = unblind(context, asked.total, of, "row") if params.blind else asked.total
    of_sums, of_Z = shifts.encodings(session)
    sums, Z = words[: n_rows * k], words[n_rows * k :]
    if not (of_sums.fits(sums) and of_Z.fits(Z)):
        raise ProtocolFailed(
            "A total is larger than it can be: the sites did not add up the same."
        )
    normalisers = of_Z.decode(Z) if params.is_global else np.ones(k)
    return _Total(of_sums.decode(sums).reshape(n_rows, k), normalisers)


def n_words(is_global: bool, n_rows: int, k: int) -> int:  # noqa: FBT001  a mode, named where it is called
    """Return how many ring elements a share has."""
    return n_rows * k + (k if is_global else 0)


# The share


def _share(
    context: PartyContext, known: Memberships, R: csr_array, inputs: bytes
) -> messages.Share:
    params = params_of(context.session)
    overflow = params.is_global and shifts.overflows(context.session, known.weights)
    weights = np.zeros_like(known.weights) if overflow else known.weights
    words = _encoded(context, R, weights)
    of = _sum_of(context, known.number, context.round, context.attempt)
    if params.blind:
        blind(context, words, of, "row")
    mask(context, words, of, inputs=inputs)
    if context.session.slots[0] != context.slot.name:
        return messages.Share(words=words, overflows=overflow)
    moved = known.moved
    last = known.n_iterations >= params.max_iter and known.repeats == 0
    return messages.Share(
        words=words,
        overflows=overflow,
        n_iterations=known.n_iterations,
        moved=None if moved is None else float(f"{moved:.2g}"),
        stop=last or (known.repeats == 0 and moved is not None and moved <= params.tol),
    )


def _encoded(context: PartyContext, R: csr_array, weights: FloatArray) -> WordArray:
    of_sums, of_Z = shifts.encodings(context.session)
    sums = of_sums.encode(kernels.aggregation(R, weights).reshape(-1))
    if not params_of(context.session).is_global:
        return sums
    return np.concatenate([sums, of_Z.encode(weights.sum(axis=0))])


def _sum_of(context: PartyContext, number: int, round_: int, attempt: int) -> MaskedSum:
    here = MaskedSum.here(context, context.session.slots, f"sums-{number}")
    return replace(here, round=round_, attempt=attempt)

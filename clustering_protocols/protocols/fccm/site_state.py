"""A site between totals: memberships from the last, weights of the next sums, and shifts.

Σ_j exp(exponent) over all sites is what the exponents of equation 3 are divided by; it
may be as large as e^1000. So all sites take the same shift B_c off the exponents of a
cluster, chosen so that the sum lies between a coarse and an overflowing one. They all
know U and the totals, so all choose alike and nothing is said about it, but for the
lanes of which a site's own share would overflow.

Lanes are starts that share rounds and one masked vector, each in a block of C columns.
Those under way go in step: an iteration of one is an iteration of all, and sums are
asked for again of all, with other shifts for those alone that need them. A lane that has
come to rest keeps its memberships, and its words leave the vector with the next sums.
Which have is the leader's word, for the others' exp need not agree in the last digit;
each site knows it too, within a margin, and continues with no other lanes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp

from clustering_protocols.algorithms.coincidence import strongest
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.masked_sums import CheckedSum, MaskedSum

from . import maths, messages
from .messages import Memberships
from .params import CoClustering, FccmContext, FccmSession

HEADROOM: Final = 512.0
"""How much larger than before Σ exp may become without a repeat."""

FINE_BITS: Final = 40
"""Σ exp has at least so many bits; a smaller one is asked for again."""

MAX_REPEATS: Final = 64


def most_sums(params: CoClustering) -> int:
    """Return how often sums may be asked for: each iteration's with all its repeats."""
    return (params.max_iter + 1) * (MAX_REPEATS + 1)


def n_items(session: FccmSession) -> int:
    """Return the number of items of all sites."""
    return sum(session.member(slot).n_columns for slot in session.slots)


def encodings(session: FccmSession) -> tuple[FixedPoint, FixedPoint]:
    """Return the encodings of the sums over items, and of the normalisers.

    ``site``: of their logarithms, added up over the clusters of a lane.
    """
    params = session.params
    if not params.is_global:  # weights of a site sum to 1
        of_sums = FixedPoint.of(1.001 * len(session.slots) * params.r_max)
        return of_sums, FixedPoint.of(1.001 * _largest_logarithm(session))
    largest = largest_normaliser(session)
    return FixedPoint.of(1.001 * largest * params.r_max), FixedPoint.of(1.001 * largest)


def largest_normaliser(session: FccmSession) -> float:
    """Return the bound on Σ exp over all sites."""
    return max(float(n_items(session)), HEADROOM)


def _largest_logarithm(session: FccmSession) -> float:
    """Return the bound on Σ_t Σ_c log Σ_j exp(exponent_cj): no exponent is below 0."""
    params = session.params
    exponents = session.n_rows(session.slots[0]) / params.lambda_w
    widths = np.array([session.member(slot).n_columns for slot in session.slots])
    logarithms = float(np.log(widths).sum())
    return len(widths) * exponents + params.n_clusters * logarithms


def safe(session: FccmSession, U: FloatArray) -> FloatArray:
    """Return shifts (C,) with which no exponent is above 0: Σ_i u_ci / λ_w."""
    params = session.params
    bound: FloatArray = U.sum(axis=0) / params.lambda_w
    return bound * (1.0 + 1e-9)  # sites round U differently


def exceeds_share(session: FccmSession, weights: FloatArray) -> Mask:
    """Return of which lanes (A,) a site's weights (m_t, A·C) exceed its part of the bound.

    Its part is that of its items: with the safe shift no weight is above 1.
    """
    share = largest_normaliser(session) * len(weights) / n_items(session)
    fit = (weights.sum(axis=0) <= share).reshape(-1, session.params.n_clusters)
    over: Mask = ~fit.all(axis=1)
    return over


def too_coarse(session: FccmSession, Z: FloatArray) -> Mask:
    """Return of which lanes (A,) normalisers (A·C,) have too few bits in some cluster."""
    params = session.params
    unit = float(encodings(session)[1].unit)
    # bits with which memberships agree to 1e-6: sums are divided by lambda_u
    needed = math.log2(1.0 / (1e-6 * params.lambda_u)) + 4
    finest = 2.0 ** min(max(FINE_BITS, needed), math.log2(unit) - 3)
    few = (Z * unit < finest).reshape(-1, params.n_clusters)
    coarse: Mask = few.any(axis=1)
    return coarse


def lower_shifts(session: FccmSession, shifts: FloatArray, Z: FloatArray) -> FloatArray:
    """Return shifts with which Σ exp is at most 1, given a coarse total.

    Rounding may have lost half a unit of each item and site.
    """
    unit = float(encodings(session)[1].unit)
    lost = (n_items(session) + len(session.slots)) / unit
    return shifts + np.log(np.maximum(Z, 0.0) + lost)


def track_shifts(shifts: FloatArray, Z: FloatArray) -> FloatArray:
    """Return shifts with which Σ exp would be 1 if nothing moved."""
    return shifts + np.log(Z)


A = TypeVar("A", FloatArray, IntArray)


class ItemTotals(NamedTuple):
    """Sums over items (n, A·C), and what stands beside them (A·C,), or (A,) at ``site``."""

    sums: FloatArray
    beside: FloatArray


def sum_of(context: FccmContext, number: int, transcript: str) -> MaskedSum:
    """Return the masked sum of a number."""
    return MaskedSum(
        members=context.session.slots, name=f"sums-{number}", transcript=transcript
    )


SUMS: Final = CheckedSum(scope="row")
"""How sums are hidden and checked."""


def first(context: FccmContext, R: csr_array) -> Memberships:
    """Return U(0) of every start, with the weights of the first sums."""
    session, params = context.session, context.session.params
    n_rows, width = R.shape
    every, k = list(range(params.n_init)), params.n_clusters
    drawn = [session.public_stream("fccm", "start", lane) for lane in every]
    U = np.hstack([maths.first_memberships(n_rows, k, each) for each in drawn])
    nothing = np.zeros((width, U.shape[1]))
    known = Memberships(
        number=0,
        transcript=context.transcript,
        lanes=every,
        repeats=0,
        n_iterations=np.zeros(params.n_init, dtype=np.int64),
        moved=np.ones(params.n_init),
        criteria=np.zeros(params.n_init),
        objects=U,
        items=nothing,
        weights=nothing,
        shifts=np.zeros(U.shape[1]),
    )
    return under_way(context, known, R, safe(session, U), repeats=0)


def follow_total(
    context: FccmContext, asked: messages.Add, R: csr_array
) -> Memberships:
    """Return memberships after a total, with the weights of the next sums."""
    known = context.recall(Memberships)
    if asked.number != known.number + 1 or not asked.lanes:
        raise ProtocolFailed("The analyst asks for sums out of order.")
    total = check_total(context, asked, known)
    if known.repeats > MAX_REPEATS:
        raise ProtocolFailed(
            "Item memberships are too crisp for the sums: choose a larger lambda_w."
        )
    known, total = _select_lanes(context, known, total, asked.lanes)
    if total is None:
        U = lane_part(known.objects, known.lanes, context.session.params.n_clusters)
        over = np.isin(known.lanes, asked.overflowed)
        return _repeat_sums(
            context,
            known,
            R,
            _choose_columns(context, over, safe(context.session, U), known.shifts),
        )
    if not context.session.params.is_global:
        known = _iterate(context, known, total)
        return under_way(context, known, R, known.shifts, repeats=0)
    Z = total.beside
    coarse = too_coarse(context.session, Z)
    if coarse.any():
        lower = lower_shifts(context.session, known.shifts, Z)
        chosen = _choose_columns(context, coarse, lower, known.shifts)
        return _repeat_sums(context, known, R, chosen)
    known = _iterate(context, known, total)
    return under_way(context, known, R, track_shifts(known.shifts, Z), repeats=0)


def check_total(
    context: FccmContext, asked: messages.Add, known: Memberships
) -> ItemTotals | None:
    """Return the total of the sums that were under way; None where a share overflowed.

    Raises ProtocolFailed if it names other lanes than those under way, hides that a
        share of this site overflowed, or is not what the sites sent.
    """
    check_lanes(context, known, asked.lanes)
    own = np.asarray(known.lanes)[overflows(context, known)]
    if not set(own.tolist()) <= set(asked.overflowed) <= set(known.lanes):
        raise ProtocolFailed("The analyst says of other sums that they overflowed.")
    if not asked.overflowed:
        return _read(context, asked, known)
    asked.require({"before": 0})
    return None


def overflows(context: FccmContext, known: Memberships) -> Mask:
    """Return of which lanes (A,) this site's own share cannot be encoded."""
    if not context.session.params.is_global:  # weights sum to 1
        return np.zeros(len(known.lanes), dtype=bool)
    return exceeds_share(context.session, known.weights)


def _read(context: FccmContext, asked: messages.Add, known: Memberships) -> ItemTotals:
    session, params = context.session, context.session.params
    n_rows, n_columns = len(known.objects), len(known.shifts)
    asked.require({"before": n_words(params, n_rows, len(known.lanes))})
    of = sum_of(context, known.number, known.transcript)
    of_sums, of_beside = encodings(session)
    n_sums = n_rows * n_columns

    def fits(words: WordArray) -> bool:
        return of_sums.fits(words[:n_sums]) and of_beside.fits(words[n_sums:])

    words = SUMS.read(context, asked.total, of, fits)
    sums = of_sums.decode(words[:n_sums]).reshape(n_rows, n_columns)
    beside = of_beside.decode(words[n_sums:])
    own = known.weights.sum(axis=0) - 1.0 / of_beside.unit
    if (sums < 0).any() or (params.is_global and (beside < own).any()):
        raise ProtocolFailed("A total is less than this site's share: one lies.")
    return ItemTotals(sums, beside)


def _select_lanes(
    context: FccmContext, known: Memberships, total: ItemTotals | None, named: list[int]
) -> tuple[Memberships, ItemTotals | None]:
    """Return the same with what belongs to some of the lanes under way."""
    if named == known.lanes:
        return known, total
    params = context.session.params
    k = params.n_clusters
    kept = [known.lanes.index(lane) for lane in named]
    changes = {
        "lanes": named,
        "weights": lane_part(known.weights, kept, k),
        "shifts": lane_part(known.shifts, kept, k),
    }
    if total is not None:
        beside = lane_part(total.beside, kept, k if params.is_global else 1)
        total = ItemTotals(lane_part(total.sums, kept, k), beside)
    return Memberships.model_validate(dict(known) | changes), total


def _iterate(
    context: FccmContext, known: Memberships, total: ItemTotals
) -> Memberships:
    """Return U (equation 2) and W (equation 3) of the iteration that a total ends."""
    params, on = context.session.params, known.lanes
    Z = total.beside if params.is_global else np.ones(len(known.shifts))
    blocks = (len(known.objects), len(on), params.n_clusters)
    sums = (total.sums / Z).reshape(blocks)
    before = lane_part(known.objects, on, params.n_clusters).reshape(blocks)
    U = maths.object_memberships(sums, params.fuzziness[0])
    taken = known.n_iterations[on] + 1
    moved = np.abs(U - before).max(axis=(0, 2))
    criteria = np.zeros(len(on))
    rest = may_rest(params, taken, moved)
    if rest.any():
        logarithms = _logarithms(context, known, total)[rest]
        steps = (sums[:, rest], before[:, rest], U[:, rest])
        criteria[rest] = maths.criteria(*steps, logarithms, params.fuzziness)
    columns = lane_columns(on, params.n_clusters)
    changes = {
        "n_iterations": _replace_at(known.n_iterations, on, taken),
        "moved": _replace_at(known.moved, on, moved),
        "criteria": _replace_at(known.criteria, on, criteria),
        "objects": _replace_at(known.objects, columns, U.reshape(len(U), -1)),
        "items": _replace_at(known.items, columns, known.weights / Z),
    }
    return Memberships.model_validate(dict(known) | changes)


def _logarithms(
    context: FccmContext, known: Memberships, total: ItemTotals
) -> FloatArray:
    """Return the logarithms of all normalisers, added up, of each lane (A,)."""
    if not context.session.params.is_global:
        return total.beside
    each = np.log(total.beside) + known.shifts
    found: FloatArray = each.reshape(len(known.lanes), -1).sum(axis=1)
    return found


def _repeat_sums(
    context: FccmContext, known: Memberships, R: csr_array, taken_off: FloatArray
) -> Memberships:
    return under_way(context, known, R, taken_off, repeats=known.repeats + 1)


def under_way(
    context: FccmContext,
    known: Memberships,
    R: csr_array,
    taken_off: FloatArray,
    *,
    repeats: int,
) -> Memberships:
    """Return the same with the weights from which the next sums come."""
    params = context.session.params
    U = lane_part(known.objects, known.lanes, params.n_clusters)
    exponents = maths.item_exponents(R, U, params.fuzziness[1])
    if params.is_global:
        with np.errstate(over="ignore"):  # a share that overflows says so
            weights = np.exp(exponents - taken_off)
        weights = np.minimum(weights, 1e300)
    else:
        weights = maths.item_memberships(exponents)
        taken_off = logsumexp(exponents, axis=0)
    changes = {
        "number": known.number + 1,
        "transcript": context.transcript,
        "repeats": repeats,
        "weights": weights,
        "shifts": taken_off,
    }
    return Memberships.model_validate(dict(known) | changes)


def _choose_columns(
    context: FccmContext, mask: Mask, chosen: FloatArray, others: FloatArray
) -> FloatArray:
    """Return columns (A·C,) of the lanes of a mask (A,) from one array, else another."""
    return np.where(np.repeat(mask, context.session.params.n_clusters), chosen, others)


def _replace_at(array: A, places: Sequence[int] | IntArray, values: A) -> A:
    """Return an array with its last axis replaced at some places, in order."""
    if len(places) == array.shape[-1]:
        return values
    found = array.copy()
    found[..., places] = values
    return found


Mask = NDArray[np.bool_]

_OTHER_MACHINE: Final = 1e-9
"""How far sites may differ in what moved: their exp need not agree in the last digit."""


def n_words(params: CoClustering, n_rows: int, n_lanes: int) -> int:
    """Return the size of a share: its ring elements, and a tag.

    Sums of each object and cluster; ``global``: a normaliser of each cluster. ``site``:
    what no sums of others tell, and the criterion needs: one number of each lane.
    """
    beside = params.n_clusters if params.is_global else 1
    return n_lanes * (n_rows * params.n_clusters + beside) + 1


def lane_columns(lanes: Sequence[int], n_clusters: int) -> IntArray:
    """Return the columns of lanes, in their order."""
    first = np.asarray(lanes, dtype=np.int64)[:, None] * n_clusters
    return (first + np.arange(n_clusters)).reshape(-1)


def lane_part(array: FloatArray, lanes: Sequence[int], n_clusters: int) -> FloatArray:
    """Return the columns of lanes of an array (..., L·C): itself where these are all.

    Row by row in memory, since sums over it take their order from there: a lane shall
    have the same bits whichever others are under way.
    """
    if len(lanes) * n_clusters == array.shape[-1]:
        return array
    return np.take(array, lane_columns(lanes, n_clusters), axis=-1)


def lanes_under_way(context: FccmContext, known: Memberships) -> list[int]:
    """Return the lanes that continue."""
    resting = _find_resting_lanes(context.session.params, known)
    return [lane for lane, rests in zip(known.lanes, resting, strict=True) if not rests]


def check_lanes(context: FccmContext, known: Memberships, named: Sequence[int]) -> None:
    """Refuse other lanes than those that are still under way.

    Raises ProtocolFailed if one is named that has come to rest, or none of those under
        way, or one that is under way is left out: the leader allows no other list than
        its own.
    """
    params = context.session.params
    leads = context.session.slots[0] == context.slot.name
    margin = 0.0 if leads else _OTHER_MACHINE
    lanes = np.asarray(known.lanes, dtype=np.int64)
    goes_on = np.isin(lanes, named)
    if list(named) != lanes[goes_on].tolist():
        raise ProtocolFailed("The analyst names starts that are not under way.")
    if (goes_on & _find_resting_lanes(params, known, -margin)).any():
        raise ProtocolFailed(
            "The analyst continues with a start that has come to rest."
        )
    if (~goes_on & ~_find_resting_lanes(params, known, margin)).any():
        raise ProtocolFailed(
            "The analyst leaves out a start before its memberships have come to rest."
        )


def may_rest(params: CoClustering, taken: IntArray, moved: FloatArray) -> Mask:
    """Return which lanes (A,) the leader may see at rest, by their last iteration."""
    return _is_last(params, taken, moved, _OTHER_MACHINE)


def _find_resting_lanes(
    params: CoClustering, known: Memberships, margin: float = 0.0
) -> Mask:
    """Return of which lanes (A,) under way the last complete iteration was the last.

    Of none while sums are asked for again: that was said before.
    """
    taken, moved = known.n_iterations[known.lanes], known.moved[known.lanes]
    return _is_last(params, taken, moved, margin) & (known.repeats == 0)


def _is_last(
    params: CoClustering, taken: IntArray, moved: FloatArray, margin: float
) -> Mask:
    last = (taken >= params.max_iter) | (moved <= params.tol + margin)
    return last & (taken > 0)


def best_lane(known: Memberships) -> int:
    """Return the lane with the largest criterion; of equals the lowest."""
    return int(strongest(known.criteria[None], maths.TIE)[0])

"""A site's state between totals: memberships, shifts, and weights of the next sums.

Σ_j exp(exponent) over all sites is the normaliser of equation 3, and may be as large as
e^1000. So all sites subtract the same shift B_c from the exponents of a cluster, such
that the sum neither overflows nor has too few bits. All sites know U and the totals, so
all sites compute the same shifts. A site only announces the lanes in which its own
share would overflow.

A *lane* is one of several starts that share rounds and one masked vector; each lane has
a block of C columns in it. Lanes that are under way iterate together. If a sum must be
repeated, it is repeated for all lanes under way, but only the lanes that need new
shifts get them. A lane that has converged keeps its memberships, and takes no part in
later sums. The leader announces which lanes have converged, because exp may differ in
the last digit at other sites; each site checks the announcement, with a margin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from clustering_protocols.algorithms.coincidence import strongest_clusters
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.masked_sums import CheckedSum, MaskedSum

from . import maths, messages
from .messages import Memberships
from .params import CoClustering, FccmContext, FccmSession

HEADROOM: Final = 512.0
"""Factor by which Σ exp may grow from one sum to the next without a repeat."""

FINE_BITS: Final = 40
"""Minimum bits of Σ exp; a sum with fewer is repeated with a different shift."""

MAX_REPEATS: Final = 64


def n_items(session: FccmSession) -> int:
    """Return the number of items of all sites together."""
    return sum(session.member(slot).n_columns for slot in session.slots)


def encodings(session: FccmSession) -> tuple[FixedPoint, FixedPoint]:
    """Return the encodings of the sums over items, and of the normalisers."""
    largest = 1.001 * largest_normaliser(session)
    return FixedPoint.of(largest * session.params.r_max), FixedPoint.of(largest)


def largest_normaliser(session: FccmSession) -> float:
    """Return the upper bound of Σ exp(exponent - shift) over the items of all sites."""
    return max(float(n_items(session)), HEADROOM)


def safe_shifts(session: FccmSession, U: FloatArray) -> FloatArray:
    """Return the shifts Σ_i u_ci / λ_w (C,), with which no exponent exceeds 0."""
    params = session.params
    bound: FloatArray = U.sum(axis=0) / params.lambda_w
    return bound * (1.0 + 1e-9)  # a margin, because sites round U differently


def coarse_lanes(session: FccmSession, Z: FloatArray) -> Mask:
    """Return which of the lanes (A,) have a normaliser with too few bits."""
    params = session.params
    unit = float(encodings(session)[1].unit)
    # bits for memberships within 1e-6, since sums are divided by lambda_u
    bits = math.log2(1.0 / (1e-6 * params.lambda_u)) + 4
    finest = 2.0 ** min(max(FINE_BITS, bits), math.log2(unit) - 3)
    coarse: Mask = (Z * unit < finest).reshape(-1, params.n_clusters).any(axis=1)
    return coarse


def next_shifts(session: FccmSession, shifts: FloatArray, Z: FloatArray) -> FloatArray:
    """Return shifts that bring Σ exp to at most 1, given a total Z with too few bits.

    The shifts allow for the rounding errors of all items and sites in Z.
    """
    unit = float(encodings(session)[1].unit)
    rounding = (n_items(session) + len(session.slots)) / unit
    return shifts + np.log(np.maximum(Z, 0.0) + rounding)


A = TypeVar("A", FloatArray, IntArray)


class ItemTotals(NamedTuple):
    """Sums over items (n, A·C), and normalisers (A·C,)."""

    sums: FloatArray
    normalisers: FloatArray


def masked_sum(context: FccmContext, state: Memberships) -> MaskedSum:
    """Describe the latest sum; the masks of a share are bound to this description."""
    return MaskedSum(
        members=context.session.slots,
        name=f"sums-{state.number}",
        transcript=state.transcript,
    )


SUMS: Final = CheckedSum(scope="row")
"""How sums are hidden and checked."""


def start(context: FccmContext, R: csr_array) -> Memberships:
    """Return the state with U(0) of every start, and the weights of the first sums."""
    session, params = context.session, context.session.params
    n_rows, width = R.shape
    lanes, k = list(range(params.n_init)), params.n_clusters
    streams = [session.public_stream("fccm", "start", lane) for lane in lanes]
    U = np.hstack([maths.first_memberships(n_rows, k, stream) for stream in streams])
    zeros = np.zeros((width, U.shape[1]))
    state = Memberships(
        number=0,
        transcript=context.transcript,
        lanes=lanes,
        repeats=0,
        n_iterations=np.zeros(params.n_init, dtype=np.int64),
        moved=np.ones(params.n_init),
        criteria=np.zeros(params.n_init),
        objects=U,
        items=zeros,
        weights=zeros,
        shifts=np.zeros(U.shape[1]),
    )
    return _prepare_sums(context, state, R, safe_shifts(session, U), repeats=0)


def follow_total(context: FccmContext, task: messages.Add, R: csr_array) -> Memberships:
    """Return the state that follows from a task's total, with weights for the next sums."""
    session, params = context.session, context.session.params
    state = context.recall(Memberships)
    if task.number != state.number + 1 or not task.lanes:
        raise ProtocolFailed("The analyst asks for sums out of order.")
    total = check_total(context, task, state)
    if state.repeats > MAX_REPEATS:
        raise ProtocolFailed(
            "Item memberships are too crisp for the sums: choose a larger lambda_w."
        )
    state, total = _select_lanes(context, state, total, task.lanes)
    if total is None:
        U = lane_part(state.objects, state.lanes, params.n_clusters)
        repeat = np.isin(state.lanes, task.overflowed)
        shifts = safe_shifts(session, U)
    else:
        Z = total.normalisers
        repeat = coarse_lanes(session, Z)
        if not repeat.any():
            # this shift makes Σ exp equal to 1 if nothing moves
            shifts = state.shifts + np.log(Z)
            state = _iterate(context, state, total)
            return _prepare_sums(context, state, R, shifts, repeats=0)
        shifts = next_shifts(session, state.shifts, Z)
    columns = np.repeat(repeat, params.n_clusters)
    shifts = np.where(columns, shifts, state.shifts)
    return _prepare_sums(context, state, R, shifts, repeats=state.repeats + 1)


def check_total(
    context: FccmContext, task: messages.Add, state: Memberships
) -> ItemTotals | None:
    """Return the total that a task contains, or None if a share overflowed.

    Raises ProtocolFailed if the task names lanes that are not under way, conceals that
    a share of this site overflowed, or contains a total that is not the sum of the
    shares.
    """
    check_lanes(context, state, task.lanes)
    own = np.asarray(state.lanes)[overflows(context.session, state)]
    if not set(own.tolist()) <= set(task.overflowed) <= set(state.lanes):
        raise ProtocolFailed("The analyst reports the wrong sums as overflowed.")
    if not task.overflowed:
        return _read(context, task, state)
    task.require({"before": 0})
    return None


def overflows(session: FccmSession, state: Memberships) -> Mask:
    """Return in which of the lanes (A,) this site's share is too large to encode.

    Each site may use a part of the bound that is proportional to its number of items.
    This part suffices with :func:`safe_shifts`, because no weight exceeds 1 then.
    """
    part = largest_normaliser(session) * len(state.weights) / n_items(session)
    fit = (state.weights.sum(axis=0) <= part).reshape(-1, session.params.n_clusters)
    overflow: Mask = ~fit.all(axis=1)
    return overflow


def _read(context: FccmContext, task: messages.Add, state: Memberships) -> ItemTotals:
    params = context.session.params
    n_rows, n_columns = len(state.objects), len(state.shifts)
    task.require({"before": n_words(params, n_rows, len(state.lanes))})
    sum_encoding, encoding = encodings(context.session)
    n_sums = n_rows * n_columns

    def fits(words: WordArray) -> bool:
        return sum_encoding.fits(words[:n_sums]) and encoding.fits(words[n_sums:])

    words = SUMS.unmask(context, task.total, masked_sum(context, state), fits)
    sums = sum_encoding.decode(words[:n_sums]).reshape(n_rows, n_columns)
    normalisers = encoding.decode(words[n_sums:])
    own = state.weights.sum(axis=0) - 1.0 / encoding.unit
    if (sums < 0).any() or (normalisers < own).any():
        raise ProtocolFailed(
            "A total is less than this site's share: somebody sent false numbers."
        )
    return ItemTotals(sums, normalisers)


def _select_lanes(
    context: FccmContext, state: Memberships, total: ItemTotals | None, lanes: list[int]
) -> tuple[Memberships, ItemTotals | None]:
    if lanes == state.lanes:
        return state, total
    params = context.session.params
    k = params.n_clusters
    blocks = [state.lanes.index(lane) for lane in lanes]
    state = state.replace(
        lanes=lanes,
        weights=lane_part(state.weights, blocks, k),
        shifts=lane_part(state.shifts, blocks, k),
    )
    if total is not None:
        total = ItemTotals(*(lane_part(array, blocks, k) for array in total))
    return state, total


def _iterate(
    context: FccmContext, state: Memberships, total: ItemTotals
) -> Memberships:
    """Return the state with U (equation 2) and W (equation 3) computed from a total."""
    params, lanes = context.session.params, state.lanes
    Z = total.normalisers
    shape = (len(state.objects), len(lanes), params.n_clusters)
    sums = (total.sums / Z).reshape(shape)
    before = lane_part(state.objects, lanes, params.n_clusters).reshape(shape)
    U = maths.object_memberships(sums, params.fuzziness[0])
    n_iterations = state.n_iterations[lanes] + 1
    moved = np.abs(U - before).max(axis=(0, 2))
    criteria = np.zeros(len(lanes))
    converged = have_converged(params, n_iterations, moved)
    if converged.any():
        logarithms = (np.log(Z) + state.shifts).reshape(len(lanes), -1).sum(axis=1)
        criteria[converged] = maths.criteria(
            sums[:, converged],
            before[:, converged],
            U[:, converged],
            logarithms[converged],
            params.fuzziness,
        )
    columns = lane_columns(lanes, params.n_clusters)
    return state.replace(
        n_iterations=_replace_at(state.n_iterations, lanes, n_iterations),
        moved=_replace_at(state.moved, lanes, moved),
        criteria=_replace_at(state.criteria, lanes, criteria),
        objects=_replace_at(state.objects, columns, U.reshape(len(U), -1)),
        items=_replace_at(state.items, columns, state.weights / Z),
    )


def _prepare_sums(
    context: FccmContext,
    state: Memberships,
    R: csr_array,
    shifts: FloatArray,
    *,
    repeats: int,
) -> Memberships:
    """Return the state with the weights from which the next sums are computed."""
    params = context.session.params
    U = lane_part(state.objects, state.lanes, params.n_clusters)
    exponents = maths.item_exponents(R, U, params.fuzziness[1])
    with np.errstate(over="ignore"):  # an overflow is announced with the share
        weights = np.minimum(np.exp(exponents - shifts), 1e300)
    return state.replace(
        number=state.number + 1,
        transcript=context.transcript,
        repeats=repeats,
        weights=weights,
        shifts=shifts,
    )


def _replace_at(array: A, indices: Sequence[int] | IntArray, values: A) -> A:
    if len(indices) == array.shape[-1]:
        return values
    copy = array.copy()
    copy[..., indices] = values
    return copy


Mask = NDArray[np.bool_]

_ROUNDING_MARGIN: Final = 1e-9
"""Largest difference between sites' movements of memberships, because exp may differ."""


def n_words(params: CoClustering, n_rows: int, n_lanes: int) -> int:
    """Return the length of a share in 64-bit words: ring elements and a tag.

    In each lane, there is one sum for each object and cluster, and one normaliser for
    each cluster.
    """
    return n_lanes * params.n_clusters * (n_rows + 1) + 1


def lane_columns(lanes: Sequence[int], n_clusters: int) -> IntArray:
    """Return the column numbers of the given lanes, lane by lane."""
    first = np.asarray(lanes, dtype=np.int64)[:, None] * n_clusters
    return (first + np.arange(n_clusters)).reshape(-1)


def lane_part(array: FloatArray, lanes: Sequence[int], n_clusters: int) -> FloatArray:
    """Return the columns of some lanes of an array (..., L·C).

    If all lanes are given, the array itself is returned. The result is in row-major
    order, so that sums over it have the same bits whichever other lanes are under way.
    """
    if len(lanes) * n_clusters == array.shape[-1]:
        return array
    return np.take(array, lane_columns(lanes, n_clusters), axis=-1)


def lanes_under_way(context: FccmContext, state: Memberships) -> list[int]:
    """Return the lanes that have not converged."""
    resting = _resting_lanes(context.session.params, state)
    return [lane for lane, rests in zip(state.lanes, resting, strict=True) if not rests]


def check_lanes(context: FccmContext, state: Memberships, lanes: Sequence[int]) -> None:
    """Raise ProtocolFailed unless the given lanes are those that have not converged.

    The leader accepts only its own list. Other sites tolerate differences that are due
    to rounding.
    """
    params = context.session.params
    leads = context.session.slots[0] == context.slot.name
    margin = 0.0 if leads else _ROUNDING_MARGIN
    active = np.asarray(state.lanes, dtype=np.int64)
    continues = np.isin(active, lanes)
    if list(lanes) != active[continues].tolist():
        raise ProtocolFailed("The analyst names starts that are not under way.")
    if (continues & _resting_lanes(params, state, -margin)).any():
        raise ProtocolFailed("The analyst continues with a start that has converged.")
    if (~continues & ~_resting_lanes(params, state, margin)).any():
        raise ProtocolFailed("The analyst leaves out a start before it has converged.")


def have_converged(
    params: CoClustering,
    n_iterations: IntArray,
    moved: FloatArray,
    margin: float = _ROUNDING_MARGIN,
) -> Mask:
    """Return which lanes (A,) have converged.

    margin: tolerance for differences that are due to other sites' rounding.
    """
    last = (n_iterations >= params.max_iter) | (moved <= params.tol + margin)
    return last & (n_iterations > 0)


def _resting_lanes(
    params: CoClustering, state: Memberships, margin: float = 0.0
) -> Mask:
    """Return which lanes (A,) of the latest sum have converged.

    While a sum is repeated, no lane counts as converged, because only a completed
    iteration can end a lane.
    """
    n_iterations, moved = state.n_iterations[state.lanes], state.moved[state.lanes]
    return have_converged(params, n_iterations, moved, margin) & (state.repeats == 0)


def best_lane(state: Memberships) -> int:
    """Return the lane with the largest criterion, or the lowest-numbered of several."""
    return int(strongest_clusters(state.criteria[None], maths.TIE)[0])

"""Lanes: starts that share rounds and one masked vector, each in a block of columns.

Lanes under way go in step: an iteration of one is an iteration of all, and sums are
asked for again of all, with other shifts for those alone that need them. A lane that has
come to rest keeps its memberships, and its words leave the vector with the next sums.
Which have is the leader's word, for the others' exp need not agree in the last digit;
each site knows it too, within a margin, and continues with no other lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.algorithms.coincidence import strongest
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import maths
from .messages import Memberships
from .params import CoClustering, FccmContext

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


def columns(lanes: Sequence[int], n_clusters: int) -> IntArray:
    """Return the columns of lanes, in their order."""
    first = np.asarray(lanes, dtype=np.int64)[:, None] * n_clusters
    return (first + np.arange(n_clusters)).reshape(-1)


def part(array: FloatArray, lanes: Sequence[int], n_clusters: int) -> FloatArray:
    """Return the columns of lanes of an array (..., L·C): itself where these are all.

    Row by row in memory, since sums over it take their order from there: a lane shall
    have the same bits whichever others are under way.
    """
    if len(lanes) * n_clusters == array.shape[-1]:
        return array
    return np.take(array, columns(lanes, n_clusters), axis=-1)


def under_way(context: FccmContext, known: Memberships) -> list[int]:
    """Return the lanes that continue."""
    resting = _find_resting_lanes(context.session.params, known)
    return [lane for lane, rests in zip(known.lanes, resting, strict=True) if not rests]


def check(context: FccmContext, known: Memberships, named: Sequence[int]) -> None:
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


def best(known: Memberships) -> int:
    """Return the lane with the largest criterion; of equals the lowest."""
    return int(strongest(known.criteria[None], maths.TIE)[0])

"""Sums over few rows that follow from the totals of several sessions.

Each session releases the total of its rows. Rows that are in the same totals are one
class, and a combination of totals gives each class one coefficient. If the coefficients
of all classes but a few are zero, the combination is a sum over the rows of these few.

The smallest such sum is hard to find (it is the distance of a linear code). We compute a
reduced row echelon form, largest classes first, whose rows are combinations with few
rows. It contains every sum over a single class, and the smallest sum if the totals have
at most two independent combinations without large classes. For more, we repeat it
with the small classes in random orders, which may still overlook a sum over several
classes. Numbers are integers modulo a prime, so that no rounding error hides a zero.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray

_PRIME: Final = (1 << 31) - 1
_CHUNK: Final = 64
"""Classes that are searched for a pivot at once."""

_ORDERS: Final = 16


def reveals_few_rows(totals: Sequence[WordArray], minimum: int) -> bool:
    """Return whether the last total reveals a sum over few rows beside the others.

    totals: uint64 (n,) each; the marks of the rows of each total.
    minimum: fewest rows of a sum that may follow.
    """
    members, sizes = _classes(totals)
    rng, is_small = np.random.default_rng(0), sizes < minimum
    order = np.argsort(-sizes, kind="stable")
    for _ in range(_ORDERS):
        combinations, pivots = _echelon(members[:, order])
        is_new = combinations[:, -1] != 0
        if is_new[len(pivots) :].any():  # the last total follows from the others
            return False
        is_few = is_small[order[pivots]]
        for combination in combinations[: len(pivots)][is_few & is_new[: len(pivots)]]:
            sums = (combination.astype(np.float64) @ members) % _PRIME
            if sizes[sums != 0].sum() < minimum:
                return True
        if np.count_nonzero(is_few) <= 2:
            break
        order = np.append(
            order[~is_small[order]], rng.permutation(is_small.nonzero()[0])
        )
    return False


def _classes(totals: Sequence[WordArray]) -> tuple[FloatArray, IntArray]:
    """Return how often each total (t) contains each class (c), and the classes' sizes."""
    total = np.repeat(np.arange(len(totals)), [len(marks) for marks in totals])
    _, row = np.unique(np.concatenate(totals), return_inverse=True)
    # rows are in the same totals if the sums of these totals' words are equal
    words = np.frombuffer(secrets.token_bytes(8 * len(totals)), np.uint64)
    signatures = np.zeros(row.max(initial=-1) + 1, np.uint64)
    np.add.at(signatures, row, words[total])
    _, first, of_row, sizes = np.unique(
        signatures, return_index=True, return_inverse=True, return_counts=True
    )
    members = np.zeros((len(totals), len(sizes)))
    is_first = first[of_row[row]] == row
    np.add.at(members, (total[is_first], of_row[row[is_first]]), 1)
    return members, sizes


def _echelon(members: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the combinations (t, t) of totals that give a reduced row echelon form.

    The first of them have pivots, the returned classes (r,); the others are zero.
    """
    n_totals, n_classes = members.shape
    combinations, pivots = np.eye(n_totals, dtype=np.int64), list[int]()
    for begin in range(0, n_classes, _CHUNK):
        columns = members[:, begin : begin + _CHUNK]
        # products with small integers are exact in float64
        while (rank := len(pivots)) < n_totals:
            values = (combinations[rank:].astype(np.float64) @ columns) % _PRIME
            column = int((values != 0).any(axis=0).argmax())
            if not values[:, column].any():
                break
            row = rank + int(values[:, column].argmax())
            combinations[[rank, row]] = combinations[[row, rank]]
            factors = (combinations.astype(np.float64) @ columns[:, column]) % _PRIME
            factors = factors.astype(np.int64)
            inverse = pow(int(factors[rank]), -1, _PRIME)
            pivot = combinations[rank] * inverse % _PRIME
            combinations = (combinations - np.outer(factors, pivot)) % _PRIME
            combinations[rank] = pivot
            pivots.append(begin + column)
    return combinations, np.array(pivots, dtype=np.int64)

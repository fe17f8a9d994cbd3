"""Which rows follow exactly from sums over clusters of rows: those of leverage 1."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.records.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_NONE: Final = 1e-9  # of the length of the memberships
_ONE: Final = 1e-8

_MOST_SPANS: Final = 4
_MOST_BYTES: Final = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class _Span:
    """What the memberships of some partitions span.

    sizes: int64 (d,); rows of each class.
    basis: float64 (r, d); orthonormal; the entry of a class is that of each of its rows,
        times the root of its size.
    """

    n_partitions: int
    sizes: IntArray
    basis: FloatArray
    classes: dict[bytes, int] = field(repr=False)

    def parents(self, labels: NDArray[np.int32], sizes: IntArray) -> IntArray | None:
        """Return of which class each of the classes (d,) was a part; None of others."""
        if len(labels) < self.n_partitions:
            return None
        columns = _columns(labels[: self.n_partitions])
        parents = np.array([self.classes.get(column, -1) for column in columns])
        if (parents < 0).any():
            return None
        rows = np.bincount(parents, sizes, minlength=len(self.sizes))
        return parents if np.array_equal(rows, self.sizes) else None


_spans: Final[list[_Span]] = []
"""Of the last audits: the next one of a session has some partitions more."""


def n_of_leverage_one(labels: NDArray[np.int32], sizes: IntArray) -> int:
    """Return how many rows have leverage 1 in the span of all memberships.

    labels: int32 (t, d); the cluster of each class of rows in each partition; -1 for
        none.
    sizes: int64 (d,); rows of each class; they have one direction together, and no
        leverage of 1 but where they are one.
    """
    if not labels.size:
        return 0
    n_partitions, basis = _take(labels, sizes)
    if n_partitions < len(labels):
        rows = _memberships(labels[n_partitions:]) * np.sqrt(sizes)
        basis = np.vstack([basis, _directions_beyond(basis, rows)])
    _keep(labels, sizes, basis)
    leverage = np.square(basis).sum(axis=0)
    return int(np.count_nonzero((sizes == 1) & (leverage > 1.0 - _ONE)))


def _take(labels: NDArray[np.int32], sizes: IntArray) -> tuple[int, FloatArray]:
    """Return of how many of the first partitions a basis is known, and that (r, d)."""
    for span in tuple(_spans):
        parents = span.parents(labels, sizes)
        if parents is not None:
            with suppress(ValueError):  # another thread has taken it, which may be
                _spans.remove(span)
            shares = np.sqrt(sizes / span.sizes[parents])
            return span.n_partitions, span.basis[:, parents] * shares
    return 0, np.empty((0, len(sizes)))


def _keep(labels: NDArray[np.int32], sizes: IntArray, basis: FloatArray) -> None:
    if basis.nbytes > _MOST_BYTES:
        return
    classes = {column: place for place, column in enumerate(_columns(labels))}
    _spans.insert(0, _Span(len(labels), sizes, basis, classes))
    del _spans[_MOST_SPANS:]


def _columns(labels: NDArray[np.int32]) -> list[bytes]:
    return [column.tobytes() for column in np.ascontiguousarray(labels.T)]


def _directions_beyond(basis: FloatArray, rows: FloatArray) -> FloatArray:
    """Return orthonormal rows that span what of rows (s, d) a basis (r, d) does not."""
    with _blas().limit(limits=1, user_api="blas"):  # small: threads would only wait
        rest = rows
        for _ in range(2):  # of the first time, what rounding leaves is in the span
            rest = rest - (rest @ basis.T) @ basis
        _, values, directions = np.linalg.svd(rest, full_matrices=False)
    beyond: FloatArray = directions[values > _NONE * np.linalg.norm(rows)]
    return beyond


@cache
def _blas() -> ThreadpoolController:
    # not above: the contract is imported wherever a session is only shown
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _memberships(labels: NDArray[np.int32]) -> FloatArray:
    """Return different rows of zeros and ones (s, d) that span all memberships."""
    clusters = np.arange(labels.max(initial=-1) + 1)
    rows = (labels == clusters[:, None, None]).reshape(-1, labels.shape[1])
    different = {row.tobytes(): place for place, row in enumerate(rows)}
    memberships: FloatArray = rows[list(different.values())].astype(np.float64)
    return memberships

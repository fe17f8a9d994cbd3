"""The sums that contained each of a party's rows, and the rows that follow from them.

Parties answer with sums over clusters of rows. A reader of all sums of a party who
knows the clusters can solve them for a row exactly if the row has leverage 1 in the
span of all answered memberships: e_iᵀ M⁺ M e_i = 1, M the matrix of zeros and ones (sum
× own row). Linear algebra yields nothing more, whoever chose the clusters. This bound
does not cover side knowledge, nor small sums over whole numbers.

Rows with the same clusters in all sums are one class. Only a row that is alone in its
class can have leverage 1, and at most as many rows as there are independent sums. Both
numbers are bounds; a decomposition is needed only if both exceed what is allowed.

A separate bound covers the totals of many rounds. A party that knows how each total is
computed from the rows can read it as an equation whose unknowns are the values in other
parties' rows. At most half as many equations as unknowns are allowed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record

SHARE: Final = 0.25
"""The share of own rows that may follow from sums, unless the party sets another."""

MOST_ROWS: Final = 1 << 15
"""Larger tables have no history: each sum then counts as a row that follows."""

MOST_BYTES: Final = 1 << 22
"""A larger history is dropped: each of its sums then counts as a row that follows."""

_MOST_CODES: Final = 1 << 24  # pairs of class and cluster: one array item each

ClassArray = NDArray[np.int32]


class DegreeSums(Record):
    """Memory: what sums of degrees disclose about rows; they have no history.

    equations: how many there are per unknown number in the others' rows.
    """

    kind = "degree-sums"

    equations: float = Field(ge=0)


class RowHistory(Record):
    """Memory: the clusters of own rows in all sums that were answered.

    n_sums: an upper bound on the number of independent sums.
    all_rows: whether the sum of all rows is one of them, or follows from some of them.
    whole: whether ``labels`` holds all partitions.
    of_row: the class of each row.
    labels: the cluster of each class in each partition; -1 for rows in none.
    """

    kind = "row-history"

    n_sums: int = Field(ge=0)
    all_rows: bool
    whole: bool
    of_row: Annotated[ClassArray, Spec("n", low=0)]
    labels: Annotated[ClassArray, Spec("t", "classes", low=-1)]

    @classmethod
    def of_none(cls, n_rows: int) -> Self:
        """Return the history of rows that are in no sum."""
        n_classes = min(n_rows, 1)
        return cls(
            n_sums=0,
            all_rows=False,
            whole=n_rows <= MOST_ROWS,
            of_row=np.zeros(n_rows if n_rows <= MOST_ROWS else 0, np.int32),
            labels=np.empty((0, n_classes), np.int32),
        )

    def after(self, labels: IntArray) -> Self:
        """Return the history with one more partition: a sum of each cluster.

        labels: int64 (m,); the cluster of the first m rows, or -1 for a row in no sum;
            later rows are in no sum.
        """
        counts = np.bincount(labels + 1, minlength=1)
        n_clusters = int(np.count_nonzero(counts[1:]))
        all_rows = counts[0] == 0 and len(labels) >= len(self.of_row)
        # a second partition of all rows adds one independent sum fewer
        n_sums = self.n_sums + n_clusters - int(all_rows and self.all_rows)
        return self._rebuild(n_sums, self.all_rows or all_rows, self._split(labels))

    def _split(self, labels: IntArray) -> tuple[ClassArray, ClassArray] | None:
        """Return classes and their labels after a split by labels; None if too many."""
        width = int(labels.max(initial=-1)) + 2
        n_codes = self.labels.shape[1] * width
        if not self.whole or n_codes > _MOST_CODES:
            return None
        cluster_codes = np.zeros(len(self.of_row), np.int64)
        cluster_codes[: len(labels)] = labels + 1
        codes = self.of_row * np.int64(width) + cluster_codes
        codes_used = np.flatnonzero(np.bincount(codes, minlength=n_codes))
        n_bytes = 4 * (len(self.of_row) + (len(self.labels) + 1) * len(codes_used))
        if n_bytes > MOST_BYTES:
            return None
        classes = np.zeros(n_codes, np.int32)
        classes[codes_used] = np.arange(len(codes_used))
        new_labels = (codes_used % width - 1).astype(np.int32)
        return classes[codes], np.vstack(
            [self.labels[:, codes_used // width], new_labels]
        )

    def reindex(self, rows: IntArray) -> Self:
        """Return the history of rows; row i is row ``rows[i]`` here, or new if -1."""
        all_rows = self.all_rows and bool((rows >= 0).all())
        if not self.whole:
            return self.model_copy(update={"all_rows": all_rows})
        n_classes = self.labels.shape[1]
        of_row = np.append(self.of_row, np.int32(n_classes))[rows]
        no_cluster = np.full((len(self.labels), 1), -1, np.int32)
        return type(self)(
            n_sums=self.n_sums,
            all_rows=all_rows,
            whole=True,
            of_row=of_row.astype(np.int32),
            labels=np.hstack([self.labels, no_cluster]),
        )

    def merge(self, other: RowHistory) -> Self:
        """Return the history of the same rows with the sums of both."""
        classes = None
        if self.whole and other.whole:
            width = other.labels.shape[1]
            codes = self.of_row * np.int64(width) + other.of_row
            codes_used, of_row = np.unique(codes, return_inverse=True)
            both = (
                self.labels[:, codes_used // width],
                other.labels[:, codes_used % width],
            )
            classes = of_row.astype(np.int32), np.vstack(both)
        n_sums = self.n_sums + other.n_sums - int(self.all_rows and other.all_rows)
        return self._rebuild(n_sums, self.all_rows or other.all_rows, classes)

    def _rebuild(
        self,
        n_sums: int,
        all_rows: bool,  # noqa: FBT001  a field of the class, by its place
        classes: tuple[ClassArray, ClassArray] | None,
    ) -> Self:
        of_row, labels = classes or (self.of_row[:0], self.labels[:0, :0])
        return type(self)(
            n_sums=n_sums,
            all_rows=bool(all_rows),
            whole=classes is not None,
            of_row=of_row,
            labels=labels,
        )

    def n_following(self, enough: int = 0) -> int:
        """Return how many rows follow from the sums.

        An upper bound if it is at most ``enough``, or if there is no history.
        """
        if not self.whole:
            return self.n_sums
        sizes = np.bincount(self.of_row, minlength=self.labels.shape[1])
        limit = min(self.n_sums, int(np.count_nonzero(sizes == 1)))
        if limit <= enough:
            return limit
        return n_of_leverage_one(self.labels, sizes)


def most_following(share: float, n_rows: int) -> int:
    """Return how many of ``n_rows`` own rows may follow from sums."""
    return int(share * n_rows)


if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_ZERO: Final = 1e-9  # relative to the norm of the memberships
_ONE_TOLERANCE: Final = 1e-8

_MOST_SPANS: Final = 4
_MOST_BASIS_BYTES: Final = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class _Span:
    """The space that the memberships of some partitions span.

    labels: int32 (t, d); as in :func:`n_of_leverage_one`.
    sizes: int64 (d,); rows of each class.
    basis: float64 (d, r); orthonormal columns; the entry of a class is the entry
        of each of its rows, times the root of the class's size.
    n_following: how many rows have leverage 1.
    """

    labels: NDArray[np.int32] = field(repr=False)
    sizes: IntArray = field(repr=False)
    basis: FloatArray = field(repr=False)
    n_following: int

    def parents(self, labels: NDArray[np.int32], sizes: IntArray) -> IntArray | None:
        """Return the class here that contains each given class (d,).

        None if the given classes do not refine those here. Parts of one class stand side by
        side: see :meth:`RowHistory.after`.
        """
        before = labels[: len(self.labels)]
        begins = (before[:, 1:] != before[:, :-1]).any(axis=0)
        parents = np.append(0, np.cumsum(begins))
        if parents[-1] >= len(self.sizes):
            return None
        rows = np.bincount(parents, sizes, minlength=len(self.sizes))
        are_parts = np.array_equal(rows, self.sizes) and np.array_equal(
            self.labels[:, parents], before
        )
        return parents if are_parts else None


_spans: Final[list[_Span]] = []
"""Spans of the last audits: the next audit of a session only adds partitions."""


def n_of_leverage_one(labels: NDArray[np.int32], sizes: IntArray) -> int:
    """Return how many rows have leverage 1 in the span of all memberships.

    labels: int32 (t, d); the cluster of each class of rows in each partition; -1 for
        none.
    sizes: int64 (d,); rows of each class; they share one direction, so that only a class
        of a single row can have leverage 1.
    """
    if not labels.size:
        return 0
    n_partitions, basis = 0, np.empty((len(sizes), 0))
    for span in tuple(_spans):
        parents = span.parents(labels, sizes)
        if parents is None:
            continue
        n_partitions = len(span.labels)
        if n_partitions == len(labels):
            return span.n_following
        basis = span.basis[parents]
        basis *= np.sqrt(sizes / span.sizes[parents])[:, None]
        with suppress(ValueError):  # another thread may have removed it
            _spans.remove(span)
        break
    rows = _memberships(labels[n_partitions:]) * np.sqrt(sizes)
    # threads do not pay for small matrices
    with _blas().limit(limits=1, user_api="blas"):
        residual = rows
        for _ in range(2):  # one projection leaves a rounding error in the span
            residual = residual - (residual @ basis) @ basis.T
        _, values, directions = np.linalg.svd(residual, full_matrices=False)
    new_directions = directions[values > _ZERO * np.linalg.norm(rows)]
    basis = np.hstack([basis, new_directions.T])
    leverage = np.square(basis).sum(axis=1)
    n_following = int(
        np.count_nonzero((sizes == 1) & (leverage > 1.0 - _ONE_TOLERANCE))
    )
    if basis.nbytes <= _MOST_BASIS_BYTES:
        _spans.insert(0, _Span(labels, sizes, basis, n_following))
        del _spans[_MOST_SPANS:]
    return n_following


@cache
def _blas() -> ThreadpoolController:
    # imported late: programs that only show a session import the contract, too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _memberships(labels: NDArray[np.int32]) -> FloatArray:
    """Return the distinct rows of zeros and ones (s, d) that span all memberships."""
    clusters = np.arange(labels.max(initial=-1) + 1)
    rows = (labels == clusters[:, None, None]).reshape(-1, labels.shape[1])
    first_index = {row.tobytes(): index for index, row in enumerate(rows)}
    memberships: FloatArray = rows[list(first_index.values())].astype(np.float64)
    return memberships


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundBound:
    """The equations that a party reads, and the fewest unknowns that they have.

    per_round: equations of one round, of all runs together.
    further: rounds with equations besides the updates.
    unknowns: the fewest values of other parties' rows that a party does not know.
    """

    per_round: int
    further: int
    unknowns: int

    @property
    def most_rounds(self) -> int:
        """Return the largest number of updates that fits; 0 if none does."""
        return max(self.unknowns // (2 * self.per_round) - self.further, 0)

    def needed(self, rounds: int) -> int:
        """Return how many unknowns this number of updates requires."""
        return 2 * self.per_round * (rounds + self.further)

    def excess(self, rounds: int, reads: str, takes: str, single: RoundBound) -> str:
        """Return why there are too many updates, with a remedy; empty if there are not.

        reads: the beginning of a sentence: what a party reads.
        takes: the remedy, with the number of :meth:`needed`.
        single: the bound for one start.
        """
        if self.needed(rounds) <= self.unknowns:
            return ""
        alternative = "fewer clusters"
        if self.most_rounds:
            alternative = f"max_iter of at most {self.most_rounds}"
        elif single.most_rounds:
            alternative = f"n_init 1 with max_iter of at most {single.most_rounds}"
        return (
            f"{reads} in up to {rounds} rounds, and could solve them for the rows. It "
            f"takes {takes}, or {alternative}. With small_cohorts 'allow' the risk is accepted."
        )

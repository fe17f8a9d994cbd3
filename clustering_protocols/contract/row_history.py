"""A history of the sums over a party's rows, and a bound on the rows they reveal.

Parties answer with sums over clusters of rows. A reader who has all sums of a party and
knows the clusters can solve them exactly for a row if the row has leverage 1 in the
span of all answered memberships: e_iᵀ M⁺ M e_i = 1, where M is the matrix of zeros and
ones (sum × own row). Linear algebra yields nothing more, however the clusters were
chosen. This bound does not cover background knowledge, nor small sums of integers.

Rows with the same clusters in all sums form one class. Only a row that is alone in its
class can have leverage 1, and there are at most as many such rows as independent sums.
The number of these rows and that of the sums are both upper bounds on the number of
rows that can be derived; a matrix decomposition is needed only if both exceed the
limit.

A separate bound covers the totals of many rounds. A party that knows how each total is
computed from the rows can read it as an equation whose unknowns are the values in other
parties' rows. At most half as many equations as unknowns are allowed. A total has as
many bits as a real number. A column with few distinct values carries fewer bits. If all
columns are like this, only a few different rows are possible, and non-negative least
squares can recover how many of the other parties' rows equal each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.fixed_point import RING_BITS
from clustering_protocols.terms.session_risks import SUMS_LIMIT

SHARE: Final = 0.25
"""The default fraction of a party's rows that may be derivable from its sums."""

MOST_ROWS: Final = 1 << 15
"""The largest table with a history; in larger ones, each sum counts as a derivable row."""

MOST_BYTES: Final = 1 << 22
"""The largest history. A larger one is dropped; each sum counts as a derivable row."""

MARGIN: Final = 2
"""The minimum number of unknown numbers per equation."""

_NEARLY_ALL: Final = 0.95
"""Columns with a larger fraction of distinct values are treated as real numbers."""

_MOST_DISTINCT: Final = 1 << 16
"""The distinct values of a column are counted up to this number, to limit memory."""

_MOST_CODES: Final = 1 << 24  # possible pairs of a class and a cluster

ClassArray = NDArray[np.int32]

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

    from .party import PartyContext


class DegreeSums(Record):
    """A record in memory of how much a run's sums of degrees of membership disclose.

    equations: the number of equations per unknown number in the other parties' rows.
    unknowns: the number of these unknown numbers, as :func:`count_unknowns` counts them.
    """

    kind = "degree-sums"

    equations: float = Field(ge=0)
    unknowns: float = Field(gt=0)


def count_bits(data: DataSource) -> FloatArray:
    """Return the bits of information (m,) in a row's value of each column.

    They are at most 16 in tables of more than ``_MOST_DISTINCT`` / ``_NEARLY_ALL`` rows.
    """
    enough = _NEARLY_ALL * data.n_rows
    distinct = [np.empty(0)] * len(data.columns)
    for batch in data.batches():
        distinct = [
            values
            if len(values) >= min(enough, _MOST_DISTINCT)
            else np.union1d(values, column)[:_MOST_DISTINCT]
            for values, column in zip(distinct, batch.T, strict=True)
        ]
    counts = np.array([len(values) for values in distinct])
    bits: FloatArray = np.where(
        counts >= enough, RING_BITS, np.log2(np.maximum(counts, 1))
    )
    return bits


def count_unknowns(bits: Sequence[float] | FloatArray, n_rows: int) -> float:
    """Return the information in n_rows rows, in unknown numbers of ``RING_BITS`` bits.

    bits: the bits of information in a row's value of each column or category.
    """
    per_row = sum(map(float, bits))
    if max(bits, default=0.0) >= RING_BITS:
        return n_rows * per_row / RING_BITS
    # if only a few different rows are possible, their frequencies determine all rows
    counts = 2.0 ** min(per_row, 60.0) * math.log2(n_rows + 1)
    return min(n_rows * per_row, counts) / RING_BITS


def audit_degrees(
    context: PartyContext[Any],
    equations: int,
    unknowns: Callable[[], float],
    remedy: Callable[[float], str] | None,
    later: int = 0,
) -> DegreeSums:
    """Return this run's sums of degrees, with the equations of the next sum added.

    Over all runs, at most one equation for every ``MARGIN`` unknown numbers is allowed,
    and proportionally fewer if ``sums_limit`` is below ``SHARE``.

    equations: the number of equations in the next sum.
    unknowns: counts the unknown numbers of others; called once for each run.
    remedy: returns a sentence that says what would be allowed, given the number of
        unknown numbers, reduced in proportion to a lower ``sums_limit``. None if the
        terms accept any number of equations.
    later: the number of equations in later sums that must be allowed as well.

    Raises GuardRefused if there would be more equations.
    """
    own = context.memory.get(DegreeSums)
    n_unknown = max(unknowns(), 1e-9) if own is None else own.unknowns
    runs = range(len(context.session.runs))
    audits = [context.memory.scope_to_run(run).get(DegreeSums) for run in runs]
    total = sum(sums.equations for sums in audits if sums is not None)
    limit = read_sums_limit(context)
    allowed = min(limit / SHARE, 1.0)
    needed = MARGIN * (total + (equations + later) / n_unknown)
    if remedy is not None and needed > allowed + 1e-9:
        reason = f"'{SUMS_LIMIT}' is {limit:g}"
        if limit >= SHARE:  # real numbers would have been enough
            reason = "Columns repeat their values"
        advice = remedy(n_unknown * allowed) if allowed else f"Raise '{SUMS_LIMIT}'."
        raise GuardRefused(
            f"{reason}: totals would show which rows the parties have. {advice}"
        )
    before = 0.0 if own is None else own.equations
    return DegreeSums(equations=before + equations / n_unknown, unknowns=n_unknown)


def read_sums_limit(context: PartyContext[Any]) -> float:
    """Return the party's ``sums_limit``; raise GuardRefused unless it is from 0 to 1."""
    limit = context.choices.get(SUMS_LIMIT, SHARE)
    if not isinstance(limit, int | float) or not 0 <= limit <= 1:
        raise GuardRefused(f"{SUMS_LIMIT!r} must be a number from 0 to 1.")
    return float(limit)


class RowHistory(Record):
    """A record in memory of the clusters of a party's own rows in all answered sums.

    n_sums: an upper bound on the number of independent sums.
    all_rows: whether the sum over all rows is one of the sums, or follows from them.
    whole: whether ``of_row`` and ``labels`` cover all answered sums. They are dropped
        when they become too large.
    of_row: int32 (n,); the class of each row.
    labels: int32 (t, classes); the cluster of each class in each partition, or -1.
    """

    kind = "row-history"

    n_sums: int = Field(ge=0)
    all_rows: bool
    whole: bool
    of_row: Annotated[ClassArray, Spec("n", low=0)]
    labels: Annotated[ClassArray, Spec("t", "classes", low=-1)]

    @classmethod
    def empty(cls, n_rows: int) -> Self:
        """Return the history of a table before any sum was answered."""
        n_classes = min(n_rows, 1)
        return cls(
            n_sums=0,
            all_rows=False,
            whole=n_rows <= MOST_ROWS,
            of_row=np.zeros(n_rows if n_rows <= MOST_ROWS else 0, np.int32),
            labels=np.empty((0, n_classes), np.int32),
        )

    def after_partition(self, labels: IntArray) -> Self:
        """Return the history after one more partition, with one sum for each cluster.

        labels: int64 (m,); the cluster of each of the first m rows, or -1 for a row in
            no sum. Later rows are in no sum.
        """
        counts = np.bincount(labels + 1, minlength=1)
        n_clusters = int(np.count_nonzero(counts[1:]))
        all_rows = counts[0] == 0 and len(labels) >= len(self.of_row)
        # All clusters of a partition of all rows add up to a sum that is already known.
        n_sums = self.n_sums + n_clusters - int(all_rows and self.all_rows)
        classes = self._split_by(labels)
        of_row, cluster_labels = classes or (self.of_row[:0], self.labels[:0, :0])
        return type(self)(
            n_sums=n_sums,
            all_rows=self.all_rows or bool(all_rows),
            whole=classes is not None,
            of_row=of_row,
            labels=cluster_labels,
        )

    def _split_by(self, labels: IntArray) -> tuple[ClassArray, ClassArray] | None:
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

    def count_derivable_rows(self, enough: int = 0) -> int:
        """Return how many rows can be derived from the sums.

        The number is only an upper bound if it is at most ``enough``, or if the history
        was dropped because it was too large.
        """
        if not self.whole:
            return self.n_sums
        limit = min(self.n_sums, int(np.count_nonzero(self._sizes == 1)))
        if limit <= enough:
            return limit
        return int(np.count_nonzero(find_leverage_one(self.labels, self._sizes)))

    @property
    def _sizes(self) -> IntArray:
        return np.bincount(self.of_row, minlength=self.labels.shape[1])

    @property
    def are_alone(self) -> NDArray[np.bool_]:
        """Return whether each row (n,) is alone in its class, as all derivable rows are."""
        are_alone: NDArray[np.bool_] = self._sizes[self.of_row] == 1
        return are_alone

    def find_derivable_rows(self) -> NDArray[np.bool_]:
        """Return whether each row (n,) can be derived; the history must be whole."""
        return find_leverage_one(self.labels, self._sizes)[self.of_row]


def most_derivable_rows(share: float, n_rows: int) -> int:
    """Return how many of a party's ``n_rows`` rows its sums are allowed to determine."""
    return int(share * n_rows)


_ZERO: Final = 1e-9  # singular values below this fraction of the norm are zero
_ONE_TOLERANCE: Final = 1e-8

_MOST_SPANS: Final = 4
_MOST_BASIS_BYTES: Final = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class _Span:
    """The space that is spanned by the memberships of some partitions.

    labels: int32 (t, d); as in :func:`find_leverage_one`.
    sizes: int64 (d,); the number of rows in each class.
    basis: float64 (d, r); orthonormal columns. The entry of a class is the entry of
        each of its rows, multiplied by the square root of the class's size.
    derivable: bool (d,); whether the class is a single row of leverage 1.
    """

    labels: NDArray[np.int32] = field(repr=False)
    sizes: IntArray = field(repr=False)
    basis: FloatArray = field(repr=False)
    derivable: NDArray[np.bool_] = field(repr=False)

    def find_parent_classes(
        self, labels: NDArray[np.int32], sizes: IntArray
    ) -> IntArray | None:
        """Return the class of this span that contains each of the new classes (d,).

        Returns None if a new class contains rows of several classes of this span. The
            parts of one class must be adjacent, as in
            :meth:`RowHistory.after_partition`.
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
"""Spans of recent audits, which the next audit of the same session can extend."""


def find_leverage_one(labels: NDArray[np.int32], sizes: IntArray) -> NDArray[np.bool_]:
    """Return which classes (d,) are a row of leverage 1 in the span of all memberships.

    labels: int32 (t, d); the cluster of each class of rows in each partition, or -1 for
        none.
    sizes: int64 (d,); the number of rows in each class. Rows of a class share one
        direction, so only the row of a class of size 1 can have leverage 1.
    """
    if not labels.size:
        return np.zeros(len(sizes), np.bool_)
    n_partitions, basis = 0, np.empty((len(sizes), 0))
    for span in tuple(_spans):
        parents = span.find_parent_classes(labels, sizes)
        if parents is None:
            continue
        n_partitions = len(span.labels)
        if n_partitions == len(labels):
            return span.derivable[parents]
        basis = span.basis[parents]
        basis *= np.sqrt(sizes / span.sizes[parents])[:, None]
        with suppress(ValueError):  # another thread may have removed the span
            _spans.remove(span)
        break
    rows = _distinct_memberships(labels[n_partitions:]) * np.sqrt(sizes)
    # Multiple threads do not pay off for small matrices.
    with _blas_controller().limit(limits=1, user_api="blas"):
        residual = rows
        for _ in range(2):  # project twice: rounding errors remain after one
            residual = residual - (residual @ basis) @ basis.T
        _, values, directions = np.linalg.svd(residual, full_matrices=False)
    new_directions = directions[values > _ZERO * np.linalg.norm(rows)]
    basis = np.hstack([basis, new_directions.T])
    leverage = np.square(basis).sum(axis=1)
    derivable: NDArray[np.bool_] = (sizes == 1) & (leverage > 1.0 - _ONE_TOLERANCE)
    if basis.nbytes <= _MOST_BASIS_BYTES:
        _spans.insert(0, _Span(labels, sizes, basis, derivable))
        del _spans[_MOST_SPANS:]
    return derivable


@cache
def _blas_controller() -> ThreadpoolController:
    # A late import: programs that only display a session import this module, too.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _distinct_memberships(labels: NDArray[np.int32]) -> FloatArray:
    clusters = np.arange(labels.max(initial=-1) + 1)
    rows = (labels == clusters[:, None, None]).reshape(-1, labels.shape[1])
    first_index = {row.tobytes(): index for index, row in enumerate(rows)}
    memberships: FloatArray = rows[list(first_index.values())].astype(np.float64)
    return memberships


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundBound:
    """The number of equations that a party can read, and their number of unknowns.

    per_round: the number of equations of one round, over all runs.
    further: the number of rounds with equations in addition to the updates.
    unknowns: the minimum number of values in other parties' rows that a party does not
        know.
    """

    per_round: int
    further: int
    unknowns: int

    @property
    def most_rounds(self) -> int:
        """Return the largest permitted number of updates; 0 if none is permitted."""
        return max(self.unknowns // (MARGIN * self.per_round) - self.further, 0)

    def required_unknowns(self, rounds: int) -> int:
        """Return how many unknowns are required for this number of updates."""
        return MARGIN * self.per_round * (rounds + self.further)

    def explain_excess(
        self, rounds: int, reads: str, takes: str, single: RoundBound | None = None
    ) -> str:
        """Return a sentence with a remedy if there are too many updates, or else "".

        reads: the beginning of the sentence, which says what a party reads.
        takes: the remedy, with the number that :meth:`required_unknowns` returns.
        single: the bound for a session with a single start, if it has several.
        """
        if self.required_unknowns(rounds) <= self.unknowns:
            return ""
        alternative = "fewer clusters"
        if self.most_rounds:
            alternative = f"max_iter of at most {self.most_rounds}"
        elif single is not None and single.most_rounds:
            alternative = f"n_init 1 with max_iter of at most {single.most_rounds}"
        return (
            f"{reads} in up to {rounds} rounds, and could solve them for the rows. It "
            f"takes {takes}, or {alternative}. With small_cohorts 'allow' the risk is accepted."
        )

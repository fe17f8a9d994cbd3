"""Data sources, which read a party's rows in batches, and their transformations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.records.arrays import FloatArray, IntArray

# SciPy is slow to import, and few processes use sparse matrices.
if TYPE_CHECKING:
    from scipy.sparse import csr_array

BATCH_ROWS = 65_536
_BATCH_NUMBERS = 4_000_000
_BATCH_ITEMS = 1 << 22


@runtime_checkable
class DataSource(Protocol):
    """Rows that can be read repeatedly, each time in the same order."""

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """Return the column names, in the order of the columns of a batch."""
        ...

    @property
    def ids(self) -> Sequence[str] | None:
        """Return one id per row, or None if rows are identified only by position.

        Several rows may have the same id; the session's terms define how they are
        handled.
        """
        ...

    def batches(self) -> Iterator[FloatArray]:
        """Yield the rows as finite float64 arrays of shape (batch, n_columns)."""
        ...


@runtime_checkable
class RandomAccess(DataSource, Protocol):
    """A data source whose rows can be read in any order."""

    def take(self, rows: IntArray) -> FloatArray:
        """Return a copy of the rows with these indices, of shape (k, n_columns)."""
        ...


def find_original_source(source: DataSource) -> DataSource:
    """Return the source that has the names and cells of the party's own table.

    It is the attribute ``original`` of a transformed source, or else the source itself.
    """
    return getattr(source, "original", source)


class _Matrix:
    """A matrix with names of its columns and, perhaps, an id of each row."""

    def __init__(
        self,
        shape: tuple[int, ...],
        columns: Sequence[str] | None,
        ids: Sequence[str] | None,
    ) -> None:
        if len(shape) != 2 or 0 in shape:
            raise InvalidData("The data must be a matrix with rows and columns.")
        self.n_rows, width = shape
        self.columns = tuple(columns or (f"x{index}" for index in range(width)))
        self.ids = None if ids is None else tuple(ids)
        if not len(self.columns) == len(set(self.columns)) == width:
            raise InvalidData(f"The {width} columns need {width} different names.")
        if ids is not None and len(ids) != self.n_rows:
            raise InvalidData(f"The {self.n_rows} rows need {self.n_rows} ids.")


class MatrixSource(_Matrix):
    """A data source over one matrix in memory.

    X: array-like of shape (n_rows, n_columns); finite numbers, converted to float64.
    columns: names of the columns; by default ``x0``, ``x1`` and so on.
    ids: one id per row, or None.
    gaps: whether NaN is accepted as a missing value.

    Raises InvalidData if X is not a non-empty matrix of finite numbers, or if the names
        or ids do not fit its shape.
    """

    def __init__(
        self,
        X: ArrayLike,
        columns: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
        *,
        gaps: bool = False,
    ) -> None:
        self._X = np.ascontiguousarray(X, dtype=np.float64)
        super().__init__(self._X.shape, columns, ids)
        finite = np.isfinite(self._X) | (np.isnan(self._X) & gaps)
        if not finite.all():
            names = [
                self.columns[index] for index in np.flatnonzero(~finite.all(axis=0))
            ]
            rows = int(np.count_nonzero(~finite.all(axis=1)))
            raise InvalidData(
                f"{rows} rows have missing or infinite values, in {', '.join(names)}."
            )

    def batches(self) -> Iterator[FloatArray]:
        """Yield the rows in batches of at most ``BATCH_ROWS`` rows."""
        for begin in range(0, self.n_rows, BATCH_ROWS):
            yield self._X[begin : begin + BATCH_ROWS]

    def take(self, rows: IntArray) -> FloatArray:
        """Return a copy of the rows with these indices."""
        return self._X[rows]


def check_column_count(new: DataSource, width: int) -> None:
    """Raise InvalidData unless new rows have as many columns as the session."""
    if len(new.columns) != width:
        raise InvalidData(
            f"The table has {len(new.columns)} columns; the session had {width}."
        )


def matrix(source: DataSource) -> FloatArray:
    """Read all rows into one array of shape (n_rows, n_columns)."""
    X, begin = np.empty((source.n_rows, len(source.columns))), 0
    for batch in source.batches():  # keep no batch: it may be a memory-mapped file
        X[begin : begin + len(batch)] = batch
        begin += len(batch)
    return X


def iterate_batches(data: DataSource, k: int = 1) -> Iterator[tuple[slice, FloatArray]]:
    """Yield slices of at most ``_BATCH_ITEMS / k`` row indices, and the rows of each.

    The size is limited so that an array of k numbers per row of a slice stays small.
    """
    begin, size = 0, max(_BATCH_ITEMS // k, 1)
    for batch in data.batches():
        for first in range(0, len(batch), size):
            rows = batch[first : first + size]
            yield slice(begin, begin + len(rows)), rows
            begin += len(rows)


class SparseSource(_Matrix):
    """A data source over a sparse matrix, which is never made dense as a whole.

    R: scipy sparse array or matrix of shape (n_rows, n_columns); finite numbers,
        converted to float64; duplicate entries are summed.
    columns: names of the columns; by default ``x0``, ``x1`` and so on.
    ids: one id per row, or None.

    Raises InvalidData if R is empty, a value is not finite, or the names or ids do not
        fit its shape.
    """

    def __init__(
        self,
        R: Any,
        columns: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        from scipy.sparse import csr_array

        super().__init__(R.shape, columns, ids)
        self.sparse = csr_array(R, dtype=np.float64)
        if not self.sparse.has_canonical_format:  # do not modify R
            self.sparse = self.sparse.copy()
            self.sparse.sum_duplicates()
        if not np.isfinite(self.sparse.data).all():
            raise InvalidData("Values are missing or infinite.")

    def batches(self) -> Iterator[FloatArray]:
        """Yield dense batches of at most ``BATCH_ROWS`` rows and 4,000,000 numbers."""
        size = _rows_per_batch(len(self.columns))
        for begin in range(0, self.n_rows, size):
            yield self.sparse[begin : begin + size].toarray()


def _rows_per_batch(width: int) -> int:
    return max(1, min(BATCH_ROWS, _BATCH_NUMBERS // width))


def sparse_matrix(source: DataSource) -> csr_array:
    """Read all rows into one sparse array of shape (n_rows, n_columns)."""
    from scipy.sparse import csr_array, vstack

    if isinstance(source, SparseSource):
        return source.sparse
    return csr_array(vstack([csr_array(batch) for batch in source.batches()]))


def check_unique_ids(ids: Sequence[str] | None) -> None:
    """Raise :class:`InvalidData`, which names the first two rows with equal ids."""
    first_rows: dict[str, int] = {}
    for row, name in enumerate(ids or ()):
        first = first_rows.setdefault(name, row)
        if first != row:
            raise InvalidData(f"Rows {first + 1} and {row + 1} have the same id.")


def find_first_rows(ids: Sequence[str]) -> IntArray:
    """Return the index of the first row of each distinct id, ascending."""
    numbers: dict[str, int] = {}
    for row, name in enumerate(ids):
        numbers.setdefault(name, row)
    return np.array(list(numbers.values()), dtype=np.int64)


# Sources that select or reorder the rows or columns of another source


S = TypeVar("S", bound=DataSource)


class _TakenRows(Generic[S]):
    """Some rows of another source."""

    def __init__(self, source: S, rows: IntArray) -> None:
        self._source = source
        self._rows = rows
        self.n_rows = len(rows)
        self.columns = source.columns

    @cached_property
    def ids(self) -> Sequence[str] | None:
        """Return the ids of these rows."""
        return _take_ids(self._source, self._rows)


class RowSelection(_TakenRows[DataSource]):
    """A selection of a source's rows, read batch by batch in the source's order."""

    def batches(self) -> Iterator[FloatArray]:
        """Yield the selected rows of each batch of the source."""
        begin = 0
        for batch in self._source.batches():
            first, last = np.searchsorted(self._rows, [begin, begin + len(batch)])
            if first < last:
                yield batch[self._rows[first:last] - begin]
            begin += len(batch)


def keep_rows(source: DataSource, rows: IntArray) -> DataSource:
    """Return a source with a selection of rows; a sparse source stays sparse.

    rows: int64 (k,); the indices of the rows, ascending.
    """
    if not isinstance(source, SparseSource):
        return RowSelection(source, rows)
    return _take_sparse_rows(source, rows)


class OrderedRows(_TakenRows[RandomAccess]):
    """Rows of a random-access source in a new order, read batch by batch."""

    @property
    def original(self) -> DataSource:
        """Return the same rows of the party's own table, in the new order."""
        source = find_original_source(self._source)
        return self if source is self._source else order_rows(source, self._rows)

    def batches(self) -> Iterator[FloatArray]:
        """Yield copies of at most ``BATCH_ROWS`` rows and 4,000,000 numbers each."""
        size = _rows_per_batch(len(self.columns))
        for begin in range(0, self.n_rows, size):
            yield self._source.take(self._rows[begin : begin + size])

    def take(self, rows: IntArray) -> FloatArray:
        """Return a copy of the rows at these positions in the new order."""
        return self._source.take(self._rows[rows])


def order_rows(source: DataSource, rows: IntArray) -> DataSource:
    """Return a source with these rows in this order.

    A sparse source stays sparse. A source without random access is read into memory.

    rows: int64 (k,); indices of some or all rows, in any order.
    """
    if isinstance(source, SparseSource):
        return _take_sparse_rows(source, rows)
    if not isinstance(source, RandomAccess):
        source = MatrixSource(matrix(source), columns=source.columns, ids=source.ids)
    return OrderedRows(source, rows)


class MappedRows:
    """A source that applies a function to each batch, which produces other columns."""

    def __init__(
        self,
        source: DataSource,
        columns: Sequence[str],
        function: Callable[[FloatArray], FloatArray],
    ) -> None:
        self._source, self._function = source, function
        self.n_rows, self.columns = source.n_rows, columns

    @property
    def ids(self) -> Sequence[str] | None:
        """Return the ids of the underlying source."""
        return self._source.ids

    def batches(self) -> Iterator[FloatArray]:
        """Yield the function's result for each batch of the underlying source."""
        return map(self._function, self._source.batches())


def keep_columns(source: DataSource, numbers: IntArray) -> DataSource:
    """Return a source with a selection of columns; a sparse source stays sparse.

    numbers: int64 (m,); the indices of the columns, in the new order.
    """
    names = tuple(source.columns[number] for number in numbers)
    if not isinstance(source, SparseSource):
        return MappedRows(source, names, lambda batch: batch[:, numbers])
    return SparseSource(source.sparse[:, numbers], columns=names, ids=source.ids)


def _take_sparse_rows(source: SparseSource, rows: IntArray) -> SparseSource:
    ids = _take_ids(source, rows)
    return SparseSource(source.sparse[rows], columns=source.columns, ids=ids)


def _take_ids(source: DataSource, rows: IntArray) -> Sequence[str] | None:
    ids = source.ids
    if ids is None:
        return None
    # Ids that are stored in an array have `take`, which creates no Python strings.
    take: Callable[[IntArray], Sequence[str]] | None = getattr(ids, "take", None)
    return tuple(ids[row] for row in rows) if take is None else take(rows)

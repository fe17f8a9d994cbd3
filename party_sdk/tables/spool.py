"""The rows of a table as float64 in a file without a name, and its ids as Arrow."""

from __future__ import annotations

import errno
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.data import BATCH_ROWS
from clustering_protocols.errors import StorageFull


class Spool:
    """Rows of float64 that are written once and then read any number of times.

    The file has no name: nothing is left behind, however the process ends. It lies where
    ``TMPDIR`` says.
    """

    def __init__(self, width: int) -> None:
        self.n_rows, self.width = 0, width
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the table
        weakref.finalize(self, self._file.close)

    def write(self, X: FloatArray) -> None:
        """Append a batch of rows; :class:`StorageFull` if there is no room."""
        try:
            self._file.write(np.ascontiguousarray(X).data)
            self._file.flush()
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            raise StorageFull(
                "The folder for temporary files has no room for the rows as numbers "
                f"({8 * self.width} bytes each); TMPDIR names another folder."
            ) from None
        self.n_rows += len(X)

    def batches(self) -> Iterator[FloatArray]:
        """Yield the rows in pieces of at most ``BATCH_ROWS``.

        They are maps of the file, for nobody else to see: a role may write into them,
        each pass reads anew, and what was read is given back with the piece. One map of
        all would count as this process's memory until another needs it.
        """
        for begin in range(0, self.n_rows, BATCH_ROWS):
            yield np.memmap(
                self._file,
                np.float64,
                mode="c",
                offset=8 * self.width * begin,
                shape=(min(BATCH_ROWS, self.n_rows - begin), self.width),
            ).view(np.ndarray)

    def take(self, rows: IntArray) -> FloatArray:
        """Return a copy of the rows with these numbers, in this order."""
        shape = (self.n_rows, self.width)
        return np.array(np.memmap(self._file, np.float64, mode="r", shape=shape)[rows])


class ArrowIds(Sequence[str]):
    """Ids as Arrow keeps them: one buffer, and a Python text when one is asked for."""

    def __init__(self, pieces: Sequence[pa.Array]) -> None:
        self._ids = pa.chunked_array(pieces, pa.large_string())

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: Any) -> Any:
        found = self._ids[place]
        return ArrowIds(found.chunks) if isinstance(place, slice) else found.as_py()

    def __iter__(self) -> Iterator[str]:
        for piece in self._ids.chunks:
            yield from piece.to_pylist()

    def take(self, rows: IntArray) -> ArrowIds:
        """Return the ids of the rows with these numbers."""
        return ArrowIds(self._ids.take(pa.array(rows)).chunks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(
            one == another for one, another in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]  # equal to other sequences of the same ids

    @property
    def arrow(self) -> pa.ChunkedArray:
        """Return the ids as Arrow has them."""
        return self._ids

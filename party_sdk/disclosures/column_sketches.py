"""Sketches of columns, by which a table is known again when other columns are read.

A sketch holds the 256 values of a column whose keyed hashes are least, and how often each
occurs. Of two columns it tells how far they agree as multisets. Two samples of one
population agree too, the more the fewer values a column takes; so two columns count as
the same where they differ by less than half of what two such samples do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, WordArray

LENGTH: Final = 256
MOST_COLUMNS: Final = 64
FEWEST_VALUES: Final = 20
"""Columns of fewer different values look alike in any two tables."""


class Sketches:
    """Gathers a sketch (2, m) of hashes and counts of each column.

    Of more than 64 columns those are kept whose marks come first.

    key: marks the names of columns.
    salts: uint64 (F,); of each column's hashes.
    """

    def __init__(self, key: bytes, columns: Sequence[str], salts: WordArray) -> None:
        marks = [
            sha256(key + b"column" + name.encode()).hexdigest()[:16] for name in columns
        ]
        self._marks, self._salts = sorted(marks)[:MOST_COLUMNS], salts
        places = {mark: place for place, mark in enumerate(self._marks)}
        self._places = np.array([places.get(mark, -1) for mark in marks])
        self._least = np.zeros((len(places), 2, LENGTH), dtype=np.uint64)
        self._sizes = np.zeros(len(places), dtype=np.int64)

    def add(self, rows: FloatArray, totals: WordArray) -> None:
        """Add the values of rows (b, F), and to totals (b,) the hashes of each row.

        NaN is no value of a column, and one of a row.
        """
        # not above: numba is imported once there are rows
        from party_sdk.disclosures.hash_kernels import hash_rows

        words = np.ascontiguousarray(rows).view(np.uint64)
        hash_rows(words, self._salts, self._places, self._least, self._sizes, totals)

    @property
    def found(self) -> dict[str, WordArray]:
        """Return the sketches by the marks of their columns."""
        pairs = zip(self._marks, self._least, self._sizes, strict=True)
        return {mark: least[:, :size].copy() for mark, least, size in pairs}


def have_one_in_common(
    one: Mapping[str, WordArray], other: Mapping[str, WordArray]
) -> bool:
    """Return whether two tables have a column of (nearly) the same values."""
    return any(_are_alike(one[mark], other[mark]) for mark in one.keys() & other.keys())


def _are_alike(one: WordArray, other: WordArray) -> bool:
    """Return whether two columns differ by less than half of what two samples would."""
    if min(one.shape[1], other.shape[1]) < FEWEST_VALUES:
        return False
    ends = [each[0, -1] for each in (one, other) if each.shape[1] == LENGTH]
    end = min(ends, default=np.uint64(2**64 - 1))
    before, now = (each[:, each[0] <= end] for each in (one, other))
    values, place = np.unique(np.concatenate([before[0], now[0]]), return_inverse=True)
    counts = np.zeros((2, len(values)))
    counts[0, place[: before.shape[1]]] = before[1]
    counts[1, place[before.shape[1] :]] = now[1]
    most = counts.max(axis=0)
    differing = 1 - counts.min(axis=0).sum() / most.sum()
    by_chance = np.sqrt(4 / np.pi * most).sum() / most.sum()
    return bool(differing < min(1.0, by_chance) / 2)

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

from clustering_protocols.records.arrays import WordArray

LENGTH: Final = 256
MOST_COLUMNS: Final = 64
FEWEST_VALUES: Final = 20
"""Columns of fewer different values look alike in any two tables."""

_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Sketches:
    """Gathers a sketch (2, m) of hashes and counts of each column.

    Of more than 64 columns those are kept whose marks come first.

    key: marks the names of columns.
    """

    def __init__(self, key: bytes, columns: Sequence[str]) -> None:
        marks = [_name_mark(key, name) for name in columns]
        chosen = set(sorted(marks)[:MOST_COLUMNS])
        self._marks = [mark if mark in chosen else None for mark in marks]
        self.found = {mark: np.empty((2, 0), dtype=np.uint64) for mark in chosen}

    def add(self, place: int, hashes: WordArray) -> None:
        """Add the keyed hashes (b,) of values of a column."""
        mark = self._marks[place]
        if mark is not None:
            self.found[mark] = _merge_hashes(self.found[mark], hashes)


def have_one_in_common(
    one: Mapping[str, WordArray], other: Mapping[str, WordArray]
) -> bool:
    """Return whether two tables have a column of (nearly) the same values."""
    return any(_are_alike(one[mark], other[mark]) for mark in one.keys() & other.keys())


def _name_mark(key: bytes, name: str) -> str:
    return sha256(key + b"column" + name.encode()).hexdigest()[:16]


def _merge_hashes(sketch: WordArray, hashes: WordArray) -> WordArray:
    """Return a sketch of what was seen before and of more hashes (b,)."""
    if sketch.shape[1] == LENGTH:
        hashes = hashes[hashes <= sketch[0, -1]]
    if sketch.shape[1]:  # what was seen before is looked up, not sorted
        place = np.searchsorted(sketch[0, :-1], hashes)
        is_seen = sketch[0, place] == hashes
        more = np.bincount(place[is_seen], minlength=sketch.shape[1])
        sketch = np.stack([sketch[0], sketch[1] + more.astype(np.uint64)])
        hashes = hashes[~is_seen]
    if not hashes.size:
        return sketch
    found, counts = np.unique(hashes, return_counts=True)
    new = np.stack([found, counts.astype(np.uint64)])  # a float would round hashes
    together = np.concatenate([sketch, new], axis=1)
    return together[:, np.argsort(together[0])[:LENGTH]]


def mix_words(words: WordArray) -> WordArray:
    """Return words (n,) mixed so that their order tells nothing.

    It is the last step of splitmix64, and of different words different.
    """
    found = words.copy()
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        found ^= found >> shift
        found *= factor
    found ^= found >> _SHIFTS[-1]
    return found


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

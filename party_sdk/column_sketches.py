"""Sketches of columns, by which a table is known again when other columns are read.

A sketch holds the 256 values of a column whose keyed hashes are least, and how often each
occurs. Of two columns it tells how far they agree as multisets. Two samples of one
population agree too, the more the fewer values a column takes; so two columns count as
the same where they differ by less than half of what two such samples do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import numpy as np

from clustering_protocols.arrays import FloatArray, WordArray
from clustering_protocols.data import DataSource

LENGTH: Final = 256
MOST_COLUMNS: Final = 64
FEWEST_VALUES: Final = 20
"""Columns of fewer different values look alike in any two tables."""

_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def sketches_of(key: bytes, data: DataSource) -> dict[str, WordArray]:
    """Return a sketch (2, m) of hashes and counts of each column, by a mark of its name.

    Of more than 64 columns those whose marks come first.
    """
    marks = {_name_mark(key, name): i for i, name in enumerate(data.columns)}
    chosen = sorted(marks)[:MOST_COLUMNS]
    salt = np.frombuffer(sha256(key + b"values").digest()[:8], dtype="<u8")[0]
    found = {mark: np.empty((2, 0), dtype=np.uint64) for mark in chosen}
    for batch in data.batches():
        for mark in chosen:
            found[mark] = _joined(found[mark], batch[:, marks[mark]], salt)
    return found


def have_one_in_common(
    one: Mapping[str, WordArray], other: Mapping[str, WordArray]
) -> bool:
    """Return whether two tables have a column of (nearly) the same values."""
    return any(_are_alike(one[mark], other[mark]) for mark in one.keys() & other.keys())


def _name_mark(key: bytes, name: str) -> str:
    return sha256(key + b"column" + name.encode()).hexdigest()[:16]


def _joined(sketch: WordArray, values: FloatArray, salt: np.uint64) -> WordArray:
    """Return a sketch of what was seen before and of more values (b,)."""
    there = values[~np.isnan(values)] + 0.0  # one form of zero
    hashes = _hashed(there.view(np.uint64) ^ salt)
    if sketch.shape[1] == LENGTH:
        hashes = hashes[hashes <= sketch[0, -1]]
    new, counts = np.unique(hashes, return_counts=True)
    together = np.concatenate([sketch[0], new])
    found, place = np.unique(together, return_inverse=True)
    weights = np.concatenate([sketch[1], counts.astype(np.uint64)])
    totals = np.bincount(place, weights.astype(np.float64), minlength=len(found))
    return np.stack([found, totals.astype(np.uint64)])[:, :LENGTH]


def _hashed(words: WordArray) -> WordArray:
    """Return words mixed so that their order tells nothing (splitmix64's last step)."""
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        words = (words ^ (words >> shift)) * factor
    return words ^ (words >> _SHIFTS[-1])


def _are_alike(one: WordArray, other: WordArray) -> bool:
    """Return whether two columns differ by less than half of what two samples would."""
    if min(one.shape[1], other.shape[1]) < FEWEST_VALUES:
        return False
    ends = [each[0, -1] for each in (one, other) if each.shape[1] == LENGTH]
    end = min(ends, default=np.uint64(2**64 - 1))
    before, now = (
        dict(zip(*each[:, each[0] <= end].tolist(), strict=True))
        for each in (one, other)
    )
    pairs = [(before.get(v, 0), now.get(v, 0)) for v in before.keys() | now.keys()]
    most = sum(map(max, pairs))
    differing = 1 - sum(map(min, pairs)) / most
    by_chance = sum(math.sqrt(4 / math.pi * max(pair)) for pair in pairs) / most
    return bool(differing < min(1.0, by_chance) / 2)

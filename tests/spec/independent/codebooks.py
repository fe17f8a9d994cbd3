"""Section 12: pqmds, codebooks: which centres is a choice, their coordinates are not."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_STEPS: Final = 20
_ROUNDING: Final = 16 * 2.0**-52


class Codebook(NamedTuple):
    """Section 12, pqmds, codes, 1: centres, and how many rows each has."""

    centres: Floats
    counts: Floats

    def assign(self, rows: Floats) -> NDArray[np.int64]:
        """Section 12, pqmds, codes, 2: the nearest centre of each row."""
        return _assign(rows, self.centres)

    def place(self, weights: Floats, width: int, *, minmax: bool) -> Floats:
        """Section 12, pqmds, codes, 3 to 5: coordinates of centres."""
        mean = (weights[:, None] * self.centres).sum(axis=0) / weights.sum()
        apart = self.centres - mean
        _, values, axes = np.linalg.svd(
            np.sqrt(weights)[:, None] * apart, full_matrices=False
        )
        largest = np.abs(self.centres).max() * np.sqrt(weights.sum())
        placed = np.zeros((len(self.centres), width))
        for i in range(min(width, len(values))):
            if values[i] > _ROUNDING * largest:
                axis = axes[i]
                sign = np.sign(axis[np.abs(axis).argmax()])
                placed[:, i] = apart @ (sign * axis)
        if minmax:
            placed -= placed.min(axis=0)
            placed /= placed.max() or 1.0
        return placed


def choose_codebook(rows: Floats, size: int) -> Codebook:
    """Section 12, pqmds, codes, 1: the different rows, or a choice of centres."""
    different, counts = np.unique(rows, axis=0, return_counts=True)
    if len(different) <= size:
        return Codebook(different, counts.astype(np.float64))
    centres = different[:1]
    for _ in range(size - 1):
        away = _squares(different, centres).min(axis=1)
        centres = np.vstack([centres, different[away.argmax()]])
    for _ in range(_STEPS):
        nearest = _assign(rows, centres)
        there = np.unique(nearest)
        centres = np.array([rows[nearest == c].mean(axis=0) for c in there])
    sizes = np.bincount(_assign(rows, centres), minlength=len(centres))
    used = sizes > 0
    return Codebook(centres[used], sizes[used].astype(np.float64))


def _squares(rows: Floats, centres: Floats) -> Floats:
    """Section 12, pqmds, codes, 2: squared distances of rows to centres."""
    found: Floats = np.square(rows[:, None, :] - centres[None]).sum(axis=2)
    return found


def _assign(rows: Floats, centres: Floats) -> NDArray[np.int64]:
    """Section 12, pqmds, codes, 2: the nearest of some centres."""
    return _squares(rows, centres).argmin(axis=1)

"""Sets whose number of clusters is known: drawn here, or real ones.

Those that are drawn follow the forms of the fundamental clustering problem suite (A.
Ultsch, 2005) and of the benchmarks of P. Fränti and S. Sieranoja ("K-means properties on
six clustering benchmark datasets", 2018), but copy no row of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import MissingDataError, load
from clustering_protocols.records.arrays import FloatArray

REAL: Final = ("iris", "wine", "breast_cancer", "digits", "pendigits", "s1_deric",
               "xclara", "waveform", "heart", "banknote")  # fmt: skip
"""Sets of `benchmarks.datasets`, taken to have as many clusters as classes."""

Rng = np.random.Generator


class KnownSet(NamedTuple):
    """A set: rows in common units, and how many clusters it has (1 if it has none)."""

    name: str
    X: FloatArray
    k: int


def _draw_around(rng: Rng, centres: FloatArray, size: int, sd: float) -> FloatArray:
    rows = np.repeat(centres, size, axis=0)
    return rows + rng.normal(0.0, sd, size=rows.shape)


def seven_far(rng: Rng) -> FloatArray:
    """Return six clusters around one."""
    axes = np.vstack([np.eye(3), -np.eye(3), np.zeros((1, 3))])
    return _draw_around(rng, 3 * axes, 30, 0.4)


def four_near(rng: Rng) -> FloatArray:
    """Return four clusters that nearly touch."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=float)
    return _draw_around(rng, corners, 100, 0.35)


def three_forms(rng: Rng) -> FloatArray:
    """Return two bars and a ball."""
    bar = np.column_stack([rng.uniform(0, 4, 100), rng.uniform(0, 0.6, 100)])
    post = np.column_stack([rng.uniform(0, 0.6, 100), rng.uniform(1.2, 4.5, 100)])
    return np.vstack([bar, post, _draw_around(rng, np.array([[3.0, 3.0]]), 200, 0.35)])


def fifteen(rng: Rng) -> FloatArray:
    """Return one cluster in a ring of seven in a larger ring of seven."""
    turns = 2 * np.pi * np.arange(7) / 7
    ring = np.column_stack([np.cos(turns), np.sin(turns)])
    centres = np.vstack([np.zeros((1, 2)), 2.5 * ring, 7 * ring])
    return _draw_around(rng, centres, 40, 0.35)


def thirty_one(rng: Rng) -> FloatArray:
    """Return 31 clusters at random places."""
    return _draw_around(rng, rng.uniform(0, 30, (31, 2)), 25, 0.5)


def cube(rng: Rng) -> FloatArray:
    """Return a cluster at each corner of a cube."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    return _draw_around(rng, corners.astype(float), 60, 0.12)


def unequal(rng: Rng) -> FloatArray:
    """Return one large cluster and three small ones."""
    large = _draw_around(rng, np.zeros((1, 2)), 500, 1.0)
    small = _draw_around(rng, np.array([[8.0, 0.0], [0.0, 8.0], [8.0, 8.0]]), 60, 1.0)
    return np.vstack([large, small])


def square(rng: Rng) -> FloatArray:
    """Return four equal clusters."""
    corners = np.array([[0.0, 0.0], [0.0, 7.0], [7.0, 0.0], [7.0, 7.0]])
    return _draw_around(rng, corners, 150, 1.2)


def wide(rng: Rng) -> FloatArray:
    """Return ten clusters in forty columns."""
    return _draw_around(rng, rng.normal(0, 1, (10, 40)), 50, 0.8)


def ball(rng: Rng) -> FloatArray:
    """Return one ball: no clusters."""
    drawn = rng.normal(size=(500, 3))
    radius = np.cbrt(rng.uniform(size=(500, 1)))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * radius


DRAWN: Final[dict[str, tuple[Callable[[Rng], FloatArray], int]]] = {
    "7 far": (seven_far, 7), "4 near": (four_near, 4), "3 forms": (three_forms, 3),
    "15 in rings": (fifteen, 15), "31 at random": (thirty_one, 31), "cube": (cube, 8),
    "unequal": (unequal, 4), "square": (square, 4), "10 in 40 columns": (wide, 10),
    "ball": (ball, 1),
}  # fmt: skip


NAMES: Final = (*DRAWN, *REAL)


@dataclass(frozen=True, slots=True)
class Sets:
    """Chosen sets, with at most `most_rows` rows of each.

    Iterating yields them standardised; it prints which are not on this machine.
    """

    most_rows: int
    names: Sequence[str]

    def __iter__(self) -> Iterator[KnownSet]:
        for place, name in enumerate(NAMES):
            if name not in self.names:
                continue
            try:
                X, k = _draw(name, place) if name in DRAWN else _load(name)
            except MissingDataError as missing:
                print(f"left out: {missing}")
                continue
            yield KnownSet(name, _standardise(X, self.most_rows), k)


def _draw(name: str, place: int) -> tuple[FloatArray, int]:
    draw, k = DRAWN[name]
    return draw(np.random.default_rng(place)), k


def _load(name: str) -> tuple[FloatArray, int]:
    X, classes = load(name)
    return X, len(np.unique(classes))


def _standardise(X: FloatArray, most_rows: int) -> FloatArray:
    kept = np.random.default_rng(7).permutation(len(X))[:most_rows]
    scaled: FloatArray = StandardScaler().fit_transform(X[kept])
    return scaled

"""Own rows on their two principal axes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from coterie_pages.models import Points


class Axes(NamedTuple):
    """Rows on two axes.

    places: float64 array of shape (n, 2).
    labels: int64 array of shape (n,).
    explained: the share of the spread that each axis shows.
    """

    places: FloatArray
    labels: IntArray
    explained: tuple[float, float]

    def to_points(self, n_rows: int) -> Points:
        """Return what is drawn of a table of so many rows, to four digits."""
        return Points(
            x=tuple(self.places[:, 0].round(4).tolist()),
            y=tuple(self.places[:, 1].round(4).tolist()),
            labels=tuple(self.labels.tolist()),
            explained=self.explained,
            n_rows=n_rows,
        )


def principal_axes(
    data: DataSource,
    labels: IntArray,
    *,
    units: FloatArray | None = None,
    most: int,
) -> Axes:
    """Return rows on the axes along which they vary most.

    units: float64 (m,); by what each column is divided; its own standard deviation by
        default.
    most: of larger tables so many rows at most, evenly spread over the table.
    """
    X, shown = _some_rows(data, labels, most)
    units = X.std(axis=0) if units is None else units
    Z = (X - X.mean(axis=0)) / np.where(units > 0, units, 1.0)
    _, strengths, axes = np.linalg.svd(Z, full_matrices=False)
    width = min(2, len(axes))
    places = np.zeros((len(Z), 2))
    places[:, :width] = Z @ axes[:width].T
    shares = np.zeros(2)
    shares[:width] = strengths[:width] ** 2 / max(
        np.sum(strengths**2), np.finfo(float).tiny
    )
    return Axes(places, shown, (float(shares[0]), float(shares[1])))


def _some_rows(
    data: DataSource, labels: IntArray, most: int
) -> tuple[FloatArray, IntArray]:
    step = max(1, -(-data.n_rows // most))
    parts, begin = [], 0
    for batch in data.batches():
        parts.append(batch[(-begin) % step :: step])
        begin += len(batch)
    X = np.concatenate(parts)
    return X, labels[::step][: len(X)]

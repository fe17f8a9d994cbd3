"""A party's rows, drawn on two axes for a report or as a separate picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import numpy as np

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from coterie_pages import svg
from coterie_pages.models import Outline, Points
from party_sdk.results.output_files import write_atomically

if TYPE_CHECKING:
    from party_sdk.results.results import Result

_MOST_POINTS = 20_000
_OUTLINE_POINTS = 49


@dataclass(frozen=True)
class Picture:
    """A picture as SVG, which notebooks display.

    svg: a complete document, in the colours of the pages.
    """

    svg: str = field(repr=False)

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file, and return its path.

        Raises InvalidParameters if the path does not end in .svg, or cannot be written.
        """
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise InvalidParameters(
                f"No picture is written as {path.suffix!r}: name a file that ends in .svg."
            )
        write_atomically(self.svg.encode(), path)
        return path

    def _repr_html_(self) -> str:
        """Return an image element, which keeps the picture's styles out of the page."""
        return f'<img alt="" src="data:image/svg+xml,{quote(self.svg)}"/>'


def draw_rows(data: DataSource, result: Result) -> Picture:
    """Draw rows on their first two principal axes, coloured by cluster."""
    axes = principal_axes(
        data,
        result.labels,
        limit=_MOST_POINTS,
        means=result.centroids,
        covariances=result.covariances,
    )
    points = axes.to_points(data.n_rows)
    picture = svg.draw_scatter("rows", "Your rows on two axes", points)
    return Picture(svg.standalone(picture))


class Axes(NamedTuple):
    """The positions of rows on two axes.

    positions: float64 array of shape (n, 2).
    labels: int64 array of shape (n,).
    explained: the share of the variance that each axis explains.
    outlines: float64 array of shape (k, points, 2); ellipses at two standard deviations
        around each mean of a mixture; empty for other models.
    """

    positions: FloatArray
    labels: IntArray
    explained: tuple[float, float]
    outlines: FloatArray

    def to_points(self, n_rows: int) -> Points:
        """Return the points to draw, rounded to four decimals, of a table of n rows."""
        return Points(
            x=tuple(self.positions[:, 0].round(4).tolist()),
            y=tuple(self.positions[:, 1].round(4).tolist()),
            labels=tuple(self.labels.tolist()),
            explained=self.explained,
            n_rows=n_rows,
            outlines=tuple(
                Outline(cluster=cluster, x=tuple(x.tolist()), y=tuple(y.tolist()))
                for cluster, (x, y) in enumerate(self.outlines.round(4).swapaxes(1, 2))
            ),
        )


def principal_axes(
    data: DataSource,
    labels: IntArray,
    *,
    units: FloatArray | None = None,
    limit: int,
    means: FloatArray | None = None,
    covariances: FloatArray | None = None,
) -> Axes:
    """Project rows on the two axes along which they vary most.

    units: float64 (m,); the divisor of each column, by default its standard deviation.
    limit: the maximum number of rows; larger tables are sampled at even spacing.
    means, covariances: float64 (k, m) and (k, m, m); those of a mixture.
    """
    X, sample_labels = _sample_rows(data, labels, limit)
    units = X.std(axis=0) if units is None else units
    units = np.where(units > 0, units, 1.0)
    Z = (X - X.mean(axis=0)) / units
    _, singular_values, axes = np.linalg.svd(Z, full_matrices=False)
    width = min(2, len(axes))
    positions = np.zeros((len(Z), 2))
    positions[:, :width] = Z @ axes[:width].T
    shares = np.zeros(2)
    shares[:width] = singular_values[:width] ** 2 / max(
        np.sum(singular_values**2), np.finfo(float).tiny
    )
    outlines = np.empty((0, 0, 2))
    if (
        covariances is not None
        and means is not None
        and means.shape[1] == X.shape[1] > 1
    ):
        projection = axes[:width].T / units[:, None]
        values, directions = np.linalg.eigh(projection.T @ covariances @ projection)
        angles = np.linspace(0.0, 2 * np.pi, _OUTLINE_POINTS)
        circle = (
            2
            * np.sqrt(np.maximum(values, 0.0))[:, None]
            * np.column_stack([np.cos(angles), np.sin(angles)])
        )
        centres = (means - X.mean(axis=0)) @ projection
        outlines = centres[:, None] + circle @ directions.swapaxes(1, 2)
    return Axes(
        positions, sample_labels, (float(shares[0]), float(shares[1])), outlines
    )


def _sample_rows(
    data: DataSource, labels: IntArray, limit: int
) -> tuple[FloatArray, IntArray]:
    step = max(1, -(-data.n_rows // limit))
    parts, begin = [], 0
    for batch in data.batches():
        parts.append(batch[(-begin) % step :: step])
        begin += len(batch)
    X = np.concatenate(parts)
    return X, labels[::step][: len(X)]

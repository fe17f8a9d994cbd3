"""A party's rows, drawn on two axes for a report or as a separate picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
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
                f"Pictures cannot be written as {path.suffix!r}: use a name that ends in .svg."
            )
        write_atomically(self.svg.encode(), path)
        return path

    def _repr_html_(self) -> str:
        """Return an image element, which keeps the picture's styles out of the page."""
        return f'<img alt="" src="data:image/svg+xml,{quote(self.svg)}"/>'


def draw_rows(data: DataSource, result: Result) -> Picture:
    """Draw rows on their first two principal axes, coloured by cluster."""
    points = project_rows(
        data,
        result.labels,
        limit=_MOST_POINTS,
        means=result.centroids,
        covariances=result.covariances,
    )
    picture = svg.draw_scatter("rows", "Your rows on two axes", points)
    return Picture(svg.standalone(picture))


def project_rows(
    data: DataSource,
    labels: IntArray,
    *,
    units: FloatArray | None = None,
    limit: int,
    n_rows: int | None = None,
    means: FloatArray | None = None,
    covariances: FloatArray | None = None,
) -> Points:
    """Project rows on the two axes along which they vary most, to four decimals.

    The outlines of a mixture are ellipses at two standard deviations around each mean.

    units: float64 (m,); the divisor of each column, by default its standard deviation.
    limit: the maximum number of rows; larger tables are sampled at even spacing.
    n_rows: the number of rows in the table, by default all of these.
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
    outlines = np.empty((0, 2, 0))
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
        outlines = (centres[:, None] + circle @ directions.swapaxes(1, 2)).round(4)
        outlines = outlines.swapaxes(1, 2)
    x, y = positions.round(4).T.tolist()
    return Points(
        x=tuple(x),
        y=tuple(y),
        labels=tuple(sample_labels.tolist()),
        explained=(float(shares[0]), float(shares[1])),
        n_rows=len(labels) if n_rows is None else n_rows,
        outlines=tuple(
            Outline(cluster=cluster, x=tuple(x), y=tuple(y))
            for cluster, (x, y) in enumerate(outlines.tolist())
        ),
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

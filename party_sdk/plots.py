"""Pictures of a party's own result, for those who would rather look than read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.data import DataSource, sparse_matrix
from clustering_protocols.errors import InvalidParameters
from clustering_protocols.extras import require_extra
from party_sdk.axes import principal_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_POINTS = 20_000
_MOST_CELLS = 4_000_000


class Clustered(Protocol):
    """What is drawn of a result; see :class:`~party_sdk.results.Result`."""

    @property
    def labels(self) -> IntArray:
        """Return the cluster of each row."""
        ...

    @property
    def memberships(self) -> FloatArray | None:
        """Return how much each row belongs to each cluster."""
        ...

    @property
    def item_memberships(self) -> FloatArray | None:
        """Return how much each column belongs to each cluster."""
        ...


def draw(
    data: DataSource,
    result: Clustered,
    path: Path,
    *,
    units: FloatArray | None = None,
) -> Path:
    """Write a picture of a result, by the ending of the path (png, svg, pdf).

    See :func:`draw_on` for what is drawn, and for ``units``.

    Raises
    ------
    InvalidParameters
        If matplotlib is not installed, or does not know the ending.
    """
    figure = new_figure(8, 6)
    draw_on(figure.subplots(), data, result, units)
    return save(figure, path)


def draw_on(
    axes: Any, data: DataSource, result: Clustered, units: FloatArray | None = None
) -> None:
    """Draw a result on axes of matplotlib.

    Where items were clustered too: the matrix, objects and items sorted by cluster.
    Otherwise the rows on their two principal axes, coloured by cluster.

    Parameters
    ----------
    units : float64 array of shape (m,), optional
        By what each column of rows is divided; its own standard deviation by default.
    """
    if result.item_memberships is not None:
        _draw_blocks(axes, data, result, result.item_memberships)
    else:
        _draw_points(axes, data, result.labels, units)


def shown_axes() -> Any:
    """Return new axes that a notebook shows by itself.

    Raises
    ------
    InvalidParameters
        If matplotlib is not installed.
    """
    require_pictures()
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(8, 6))[1]


def block_order(result: Clustered) -> tuple[IntArray, IntArray]:
    """Return rows and columns sorted by cluster, the surest members first.

    Raises
    ------
    InvalidParameters
        If the result holds no item memberships.
    """
    W = result.item_memberships
    if W is None or result.memberships is None:
        raise InvalidParameters("This protocol does not cluster items.")
    rows = np.lexsort((-result.memberships.max(axis=1), result.labels))
    clusters = W.argmax(axis=0)
    columns = np.lexsort((-W.max(axis=0), clusters))
    return rows.astype(np.int64), columns.astype(np.int64)


def require_pictures() -> None:
    """Raise :class:`InvalidParameters` where no picture can be drawn."""
    require_extra("pictures", "Pictures are drawn by matplotlib", "matplotlib")


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches.

    Raises
    ------
    InvalidParameters
        If matplotlib is not installed.
    """
    require_pictures()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def save(figure: Figure, path: Path) -> Path:
    """Write a figure by the ending of the path; :class:`InvalidParameters` if unknown."""
    try:
        figure.savefig(path, dpi=150, bbox_inches="tight")
    except ValueError:
        raise InvalidParameters(f"No picture is written as {path.suffix!r}.") from None
    return path


def _draw_blocks(axes: Any, data: DataSource, result: Clustered, W: FloatArray) -> None:
    rows, columns = block_order(result)
    R = csr_array(sparse_matrix(data)[rows][:, columns])
    if R.shape[0] * R.shape[1] <= _MOST_CELLS:
        axes.imshow(R.toarray(), aspect="auto", cmap="Greys", interpolation="nearest")
    else:
        axes.spy(R, markersize=0.2, aspect="auto")
    for labels, line in (
        (result.labels[rows], axes.axhline),
        (W.argmax(axis=0)[columns], axes.axvline),
    ):
        for border in np.flatnonzero(np.diff(labels)):
            line(float(border) + 0.5, color="tab:red", linewidth=0.8)
    axes.set(xlabel="items, by cluster", ylabel="objects, by cluster")


def _draw_points(
    axes: Any, data: DataSource, labels: IntArray, units: FloatArray | None
) -> None:
    points, shown, _ = principal_axes(data, labels, units=units, most=_MOST_POINTS)
    for cluster in np.unique(shown):
        there = shown == cluster
        axes.scatter(*points[there].T, s=8, label=_named(int(cluster)))
    axes.legend(loc="best", markerscale=2)
    axes.set(xlabel="first principal axis of your rows", ylabel="second")


def _named(cluster: int) -> str:
    return "no cluster" if cluster < 0 else f"cluster {cluster}"

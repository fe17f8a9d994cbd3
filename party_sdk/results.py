"""What a party gets: labels, in the order of its table, and files of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import issparse

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import Outcome
from clustering_protocols.data import DataSource
from clustering_protocols.errors import GuardRefused, InvalidData
from clustering_protocols.extras import require_extra
from clustering_protocols.figures import Figures
from clustering_protocols.profiles import Profile
from clustering_protocols.recipe import Preparation
from clustering_protocols.schema import Schema
from party_sdk.own_rows import beside, check_ids, check_size, drawable, free_name
from party_sdk.result_html import summary
from party_sdk.tables import IdColumns, Table, open_table

_PARQUET = frozenset({".parquet", ".pq"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """What a party gets, in the order of its table.

    Attributes
    ----------
    labels : int64 array of shape (n_rows,)
        Cluster of each row, from 0; -1 for rows of no cluster, or that did not take part.
    cluster_sizes : int64 array of shape (n_clusters,) or None
        Rows of all parties in each cluster.
    centroids, coordinates, memberships : float64 arrays or None
        Where the protocol and the terms give them out; coordinates are the rows in the
        space of the centroids.
    item_memberships : float64 array of shape (n_clusters, n_columns) or None
        How much each column belongs to each cluster, where columns are clustered too.
    ids : sequence of str or None
    naming : tuple of str
        The columns of the table that hold the ids.
    columns : tuple of str
        The columns that were clustered, in the order of the session.
    figures : tuple of Figures
        Of each run of the session, where the protocol computes them.
    chosen : int
        Which of the runs this is the result of.
    profiles : tuple of Profile
        What the clusters are like, where the terms release it: over the own fields
        first, exactly, then what everybody was told.
    report : mapping
        What else the protocol tells the operator.
    """

    labels: IntArray = field(repr=False)
    cluster_sizes: IntArray | None
    centroids: FloatArray | None = field(repr=False)
    coordinates: FloatArray | None = field(repr=False)
    memberships: FloatArray | None = field(repr=False)
    item_memberships: FloatArray | None = field(repr=False)
    ids: Sequence[str] | None = field(repr=False)
    naming: tuple[str, ...]
    columns: tuple[str, ...]
    figures: tuple[Figures, ...] = field(repr=False)
    chosen: int
    profiles: tuple[Profile, ...] = field(repr=False)
    report: Mapping[str, Any]
    _predict: Callable[[DataSource], IntArray] | None = field(repr=False)
    _schema: Schema | None = field(repr=False)
    _preparation: Preparation | None = field(repr=False)
    _doubt: Callable[[DataSource], str] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        data: DataSource | None,
        columns: Sequence[str] = (),
        schema: Schema | None = None,
        preparation: Preparation | None = None,
    ) -> Result:
        """Return an outcome with the ids of the party's rows beside it.

        ``schema`` and ``preparation`` are those by which new rows have to be read.
        """
        return cls(
            labels=outcome.labels,
            cluster_sizes=outcome.cluster_sizes,
            centroids=outcome.centroids,
            coordinates=outcome.coordinates,
            memberships=outcome.memberships,
            item_memberships=outcome.item_memberships,
            ids=None if data is None else data.ids,
            naming=naming_of(data),
            columns=tuple(columns),
            figures=tuple(outcome.figures),
            chosen=outcome.chosen,
            profiles=tuple(outcome.profiles),
            report=outcome.report,
            _predict=outcome.predict,
            _schema=schema,
            _preparation=preparation,
        )

    def predict(
        self,
        table: Any,
        *,
        id_column: IdColumns = None,
        agree: Callable[[str], bool] | None = None,
    ) -> IntArray:
        """Label new rows at home, with what the terms let out; nothing is sent.

        Parameters
        ----------
        table, id_column
            As for :func:`open_table`. The columns of the session are found by name, in
            whichever order the table has them; a matrix has no names, and its columns
            have to stand as in the session.
        agree : callable, optional
            Called where the rows look like other units than those of the session, with
            why; True labels them all the same.

        Raises
        ------
        GuardRefused
            If the terms let nothing out from which a label could be told, or the rows
            look like other units and nobody agrees.
        InvalidData
            If a column of the session is missing, or the table is not as it was agreed.
        """
        if self._predict is None:
            raise GuardRefused(
                "The terms of this session let nothing out from which new rows could be "
                "labelled. For `dc` that is the parameter 'predictor'."
            )
        is_matrix = isinstance(table, np.ndarray | DataSource) or issparse(table)
        columns = None if is_matrix or not self.columns else self.columns
        data = open_table(
            table,
            id_column=id_column,
            columns=columns,
            schema=self._schema,
            preparation=self._preparation,
        )
        if isinstance(table, Table) and data.columns != self.columns:
            raise InvalidData(
                f"The session clustered the columns {', '.join(self.columns[:20])}, in "
                "this order."
            )
        doubt = "" if self._doubt is None else self._doubt(data)
        if doubt and not (agree is not None and agree(doubt)):
            raise GuardRefused(doubt)
        return self._predict(data)

    @property
    def own_sizes(self) -> IntArray:
        """Return how many of the party's rows are in each cluster."""
        known = 0 if self.cluster_sizes is None else len(self.cluster_sizes)
        clustered = self.labels[self.labels >= 0]
        counts: IntArray = np.bincount(clustered, minlength=known).astype(np.int64)
        return counts

    def to_frame(self, table: Any) -> Any:
        """Return a party's table with the labels beside its own columns.

        Parameters
        ----------
        table : table of pandas, polars or pyarrow
            The rows of the session, in the order in which they took part.

        Returns
        -------
        table of the same kind
            With a column ``label``, and ``membership_0 …`` where there are memberships;
            a name that is taken gets ``_`` behind it.

        Raises
        ------
        InvalidData
            If these are other rows: another number of them or, where they have ids,
            other ids or another order.
        """
        self._check_ids(table)
        return beside(table, {"label": self.labels, **self._by_cluster()})

    def plot(self, table: Any, *, axes: Any = None) -> Any:
        """Draw a party's own rows by cluster; return the axes of matplotlib.

        Rows stand on their two principal axes. Where columns were clustered too, the
        matrix is drawn, rows and columns sorted by cluster.

        Parameters
        ----------
        table : path, matrix, data frame or data source
            The rows of the session, in the order in which they took part. Where a
            preparation was agreed, fields with levels are left out, and a gap stands at
            the mean of its field.
        axes : matplotlib.axes.Axes, optional
            Where to draw; on a new figure by default.

        Raises
        ------
        InvalidParameters
            If matplotlib is not installed.
        InvalidData
            As of :meth:`to_frame`.
        """
        from party_sdk.plots import draw_on, shown_axes

        data = drawable(table, self.columns, self._schema, self._preparation)
        check_size(data.n_rows, len(self.labels))
        self._check_ids(table)
        axes = shown_axes() if axes is None else axes
        draw_on(axes, data, self)
        return axes

    def _check_ids(self, table: Any) -> None:
        """Refuse other rows, or another order, where rows have ids by name."""
        if self.ids is not None and self.naming:
            check_ids(table, self.ids, self.naming, self.columns)

    def _repr_html_(self) -> str:
        """Return sizes and figures as HTML, for notebooks; no row is in it."""
        return summary(self.labels, self.cluster_sizes, self.figures, self.chosen)

    def _by_cluster(self) -> dict[str, FloatArray]:
        """Return the memberships of each cluster by their name in files and frames."""
        columns = [] if self.memberships is None else list(self.memberships.T)
        return {f"membership_{k}": column for k, column in enumerate(columns)}

    def top_items(self, columns: Sequence[str], n: int = 10) -> list[list[str]]:
        """Return the n items that belong most to each cluster, the surest first.

        Empty where the protocol does not cluster items.
        """
        if self.item_memberships is None:
            return []
        order = np.argsort(-self.item_memberships, axis=1, kind="stable")[:, :n]
        return [[columns[item] for item in items] for items in order]

    def save(self, path: str | Path) -> Path:
        """Write labels (and memberships): CSV, or Parquet or Excel by the path's ending."""
        path = Path(path)
        return write_labels(
            path, self.labels, self.ids, self.naming, self._by_cluster()
        )


def naming_of(data: DataSource | None) -> tuple[str, ...]:
    """Return the columns that hold a source's ids, where they have names."""
    return data.naming if isinstance(data, Table) else ()


def write_labels(
    path: Path,
    labels: IntArray,
    ids: Sequence[str] | None,
    naming: Sequence[str],
    more: Mapping[str, FloatArray],
) -> Path:
    """Write one line per row: its id or number, its label, and more columns.

    The file is there as a whole or not at all; a link is replaced, not followed.
    """
    columns = _id_columns(labels, ids, naming)
    for name, values in {"label": labels, **more}.items():
        columns[free_name(name, columns)] = pa.array(values)
    table = pa.table(columns)
    fresh = path.with_name(f".{path.name}.new")
    try:
        _write(table, fresh, path.suffix.lower())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return path


def _id_columns(
    labels: IntArray, ids: Sequence[str] | None, naming: Sequence[str]
) -> dict[str, Any]:
    if ids is None:
        return {"id": pa.array(range(len(labels)))}
    if len(naming) < 2:
        return {(naming or ("id",))[0]: pa.array(ids, pa.large_string())}
    parts = zip(*map(json.loads, ids), strict=True)
    return {name: pa.array(part) for name, part in zip(naming, parts, strict=True)}


def _write(table: pa.Table, path: Path, ending: str) -> None:
    if ending in _PARQUET:
        from pyarrow import parquet  # as with csv below: most parties write neither

        parquet.write_table(table, path)
    elif ending == ".xlsx":
        _write_sheet(table, path)
    else:
        from pyarrow import csv

        csv.write_csv(table, path)


def _write_sheet(table: pa.Table, path: Path) -> None:
    """Write a sheet in which texts are texts: an id such as =1+1 is no formula."""
    book = workbook(path)
    sheet = book.add_worksheet("labels")
    sheet.write_row(0, 0, table.column_names)
    for place, column in enumerate(table.columns):
        sheet.write_column(1, place, column.to_pylist())
    book.close()


def require_excel() -> None:
    """Raise :class:`InvalidParameters` where Excel's files cannot be written."""
    require_extra("excel", "Files of Excel are written by XlsxWriter", "xlsxwriter")


def workbook(path: Path) -> Any:
    """Return a new file of Excel; see :func:`require_excel`."""
    require_excel()
    from xlsxwriter import Workbook

    plain = {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True}
    return Workbook(str(path), plain)

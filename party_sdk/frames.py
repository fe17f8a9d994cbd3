"""Tables in, labels out.

Files are read by pyarrow; data frames of pandas, polars and pyarrow by narwhals, so
that one piece of code serves all of them and none has to be installed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
from scipy.sparse import issparse

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import Outcome
from clustering_protocols.data import DataSource, MatrixSource, SparseSource
from clustering_protocols.errors import GuardRefused, InvalidData
from clustering_protocols.preparation.alignment.identifiers import join
from party_sdk.long_form import LongForm, occurrences
from party_sdk.parquet import ParquetSource, n_bytes, numeric_columns

_PARQUET = frozenset({".parquet", ".pq"})
IN_MEMORY_BYTES = 1 << 30
"""Parquet files with larger columns are read batch by batch, again in every pass."""

IdColumns = str | Sequence[str] | None


def open_table(
    table: Any,
    *,
    id_column: IdColumns = None,
    columns: Sequence[str] | None = None,
    in_memory_bytes: int = IN_MEMORY_BYTES,
) -> DataSource:
    """Return a table as a source of rows.

    Parameters
    ----------
    table : path, matrix, data frame or data source
        CSV or Parquet file, numpy array, scipy sparse matrix, pandas, polars or pyarrow
        table.
    id_column : str or sequence of str, optional
        The column, or columns together, that name the rows. Ids are texts, normalised
        to NFKC; of several columns the JSON list of their texts.
    columns : sequence of str, optional
        The columns to cluster, in this order; all but the id by default.
    in_memory_bytes : int
        A Parquet file whose columns would be larger in memory is read batch by batch.

    Raises
    ------
    InvalidData
        If the table cannot be read, or a column is missing, not numeric or has gaps.
    """
    naming = _naming(id_column)
    if isinstance(table, str | Path):
        path = Path(table)
        large = _if_large(path, naming, columns, in_memory_bytes)
        table = _read_file(path, naming) if large is None else large
    if isinstance(table, DataSource):
        return table
    if issparse(table):
        return SparseSource(table, columns=columns)
    if isinstance(table, np.ndarray):
        if naming or columns is not None:
            raise InvalidData("An array has no named columns; use a data frame.")
        if table.dtype.kind not in "biuf":
            raise InvalidData(f"An array of {table.dtype} holds no numbers.")
        return MatrixSource(table)
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise InvalidData(
            f"{type(table).__name__} is no table that coterie knows: use a path, a "
            "numpy array, or a pandas, polars or pyarrow table."
        ) from None
    except nw.exceptions.DuplicateError:
        raise InvalidData("Two columns have the same name.") from None
    return _from_frame(frame, naming, columns)


def _naming(id_column: IdColumns) -> tuple[str, ...]:
    """Return the columns that name the rows; none where they have no names."""
    if id_column is None or isinstance(id_column, str):
        return () if id_column is None else (id_column,)
    if len(set(id_column)) < len(id_column):
        raise InvalidData("A column names the rows twice.")
    return tuple(id_column)


def open_long(
    path: Path, form: LongForm, objects: Sequence[str] | None = None
) -> SparseSource:
    """Return a file of co-occurrences in long form as a source of sparse rows.

    Parameters
    ----------
    path : Path
        CSV or Parquet file with one line per object and item.
    form, objects
        As for :func:`~party_sdk.long_form.occurrences`.
    """
    return occurrences(_read_file(path, [form.object]), form, objects)


def read_column(path: Path, name: str) -> list[Any]:
    """Return one column of a file as values, for example the true classes."""
    table = _read_file(path, [])
    if name not in table.column_names:
        raise InvalidData(f"There is no column {name!r}.")
    values: list[Any] = table[name].to_pylist()
    return values


def column_names(path: Path) -> list[str]:
    """Return the names of a file's columns."""
    names: list[str] = _read_file(path, []).column_names
    return names


def _read_file(path: Path, naming: Sequence[str]) -> Any:
    try:
        if path.suffix.lower() in _PARQUET:
            return parquet.read_table(path)
        # Ids are texts: '007' must not become 7.
        types = dict.fromkeys(naming, pa.string()) or None
        return csv.read_csv(
            path, convert_options=csv.ConvertOptions(column_types=types)
        )
    except FileNotFoundError:
        raise InvalidData(f"There is no file {path.name!r}.") from None
    except (pa.ArrowInvalid, OSError):
        raise InvalidData(
            f"{path.name!r} is no readable CSV or Parquet file."
        ) from None


def _if_large(
    path: Path,
    naming: Sequence[str],
    columns: Sequence[str] | None,
    in_memory_bytes: int,
) -> DataSource | None:
    """Return a Parquet file as a source of batches, if it is large."""
    if path.suffix.lower() not in _PARQUET or not path.exists():
        return None
    try:
        numeric = numeric_columns(path)
        size = n_bytes(path, len(columns or numeric))
    except (pa.ArrowInvalid, OSError):
        return None  # reading it as a whole says what is wrong
    if size <= in_memory_bytes:
        return None
    wanted = _chosen(numeric, naming, columns)
    ids = None
    if naming:
        frame = nw.from_native(parquet.read_table(path, columns=list(naming)))
        ids = _ids(frame, naming)
    return ParquetSource(path, wanted, ids)


def _chosen(
    numeric: Mapping[str, bool], naming: Sequence[str], columns: Sequence[str] | None
) -> Sequence[str]:
    """Return the columns to cluster, given which ones hold numbers."""
    wanted = columns or [name for name in numeric if name not in naming]
    named = [*wanted, *naming]
    if absent := [name for name in named if name not in numeric]:
        raise InvalidData(f"There is no column {', '.join(map(repr, absent))}.")
    if not wanted:
        raise InvalidData("There is no column to cluster.")
    texts = [name for name in wanted if not numeric[name]]
    if texts:
        raise InvalidData(
            f"{', '.join(map(repr, texts))} holds no numbers: name it as --id-column, or "
            "choose the numeric ones with --columns."
        )
    return wanted


def _from_frame(
    frame: nw.DataFrame[Any], naming: Sequence[str], columns: Sequence[str] | None
) -> DataSource:
    schema = frame.schema
    numeric = {n: kind.is_numeric() or kind == nw.Boolean for n, kind in schema.items()}
    wanted = _chosen(numeric, naming, columns)
    gaps = {name: frame[name].null_count() for name in wanted}
    if any(gaps.values()):
        found = ", ".join(
            f"{count} in {name!r}" for name, count in gaps.items() if count
        )
        raise InvalidData(f"Values are missing: {found}.")
    X: FloatArray = np.column_stack(
        [frame[name].to_numpy().astype(np.float64) for name in wanted]
    )
    return MatrixSource(X, columns=wanted, ids=_ids(frame, naming))


def _ids(frame: nw.DataFrame[Any], naming: Sequence[str]) -> list[str] | None:
    if not naming:
        return None
    parts = [_texts(frame, name) for name in naming]
    return (
        parts[0] if len(parts) == 1 else [join(row) for row in zip(*parts, strict=True)]
    )


def _texts(frame: nw.DataFrame[Any], name: str) -> list[str]:
    values = frame[name].to_list()
    if frame[name].null_count() or "" in values:
        raise InvalidData(f"Rows without an id in {name!r}.")
    return [unicodedata.normalize("NFKC", str(value)) for value in values]


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
    report: Mapping[str, Any]
    _predict: Callable[[DataSource], IntArray] | None = field(repr=False)

    @classmethod
    def of(cls, outcome: Outcome, ids: Sequence[str] | None) -> Result:
        """Return an outcome with the party's ids beside it."""
        return cls(
            labels=outcome.labels,
            cluster_sizes=outcome.cluster_sizes,
            centroids=outcome.centroids,
            coordinates=outcome.coordinates,
            memberships=outcome.memberships,
            item_memberships=outcome.item_memberships,
            ids=ids,
            report=outcome.report,
            _predict=outcome.predict,
        )

    def predict(
        self,
        table: Any,
        *,
        id_column: IdColumns = None,
        columns: Sequence[str] | None = None,
    ) -> IntArray:
        """Label new rows at home, with what the terms let out; nothing is sent.

        Parameters
        ----------
        table, id_column, columns
            As for :func:`open_table`; the same columns as in the session.

        Raises
        ------
        GuardRefused
            If the terms let nothing out from which a label could be told.
        """
        if self._predict is None:
            raise GuardRefused(
                "The terms of this session let nothing out from which new rows could be "
                "labelled. For `dc` that is the parameter 'predictor'."
            )
        return self._predict(open_table(table, id_column=id_column, columns=columns))

    def top_items(self, columns: Sequence[str], n: int = 10) -> list[list[str]]:
        """Return the n items that belong most to each cluster, the surest first.

        Empty where the protocol does not cluster items.
        """
        if self.item_memberships is None:
            return []
        order = np.argsort(-self.item_memberships, axis=1, kind="stable")[:, :n]
        return [[columns[item] for item in items] for items in order]

    def save(self, path: str | Path) -> Path:
        """Write labels (and memberships) as CSV, or Parquet by the ending of the path."""
        path = Path(path)
        memberships = [] if self.memberships is None else list(self.memberships.T)
        named = {f"membership_{k}": column for k, column in enumerate(memberships)}
        return write_labels(path, self.labels, self.ids, named)


def write_labels(
    path: Path,
    labels: IntArray,
    ids: Sequence[str] | None,
    more: Mapping[str, FloatArray],
) -> Path:
    """Write one line per row: its id or number, its label, and more columns."""
    columns: dict[str, Any] = {"id": pa.array(ids or range(len(labels)))}
    columns |= {"label": pa.array(labels), **{k: pa.array(v) for k, v in more.items()}}
    table = pa.table(columns)
    if path.suffix.lower() in _PARQUET:
        parquet.write_table(table, path)
    else:
        csv.write_csv(table, path)
    return path

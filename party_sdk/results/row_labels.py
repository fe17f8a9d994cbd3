"""A party's own table again, once there are labels: beside them, and in a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.data_source import DataSource, MatrixSource, matrix
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Schema
from party_sdk.tables import How, open_table, read_table
from party_sdk.tables.mapping import TableMapping


def check_size(n_rows: int, labelled: int) -> None:
    """Refuse a table of another length than the labels; :class:`InvalidData`."""
    if n_rows != labelled:
        raise InvalidData(
            f"The table has {n_rows} rows and the result {labelled}: bring the rows that "
            "took part."
        )


def is_sparse(table: Any) -> bool:
    """Return whether it is a sparse matrix, without importing what makes them."""
    return hasattr(table, "tocsr")


def check_ids(
    table: Any,
    ids: Sequence[str],
    naming: Sequence[str],
    columns: Sequence[str],
    mapping: TableMapping | None,
) -> None:
    """Refuse a table whose ids are not these, in this order; :class:`InvalidData`."""
    if isinstance(table, np.ndarray) or is_sparse(table):
        return  # which has no ids
    if isinstance(table, DataSource):
        found = table.ids
    else:
        how = How(id_column=naming, columns=columns[:1], mapping=mapping)
        found = read_table(table, how).ids
    if found is not None and list(found) != list(ids):
        raise InvalidData(
            "The ids of the table are not those of the result, in the same order. Use "
            "the rows that took part, in the order in which they did."
        )


def append_columns(table: Any, more: Mapping[str, FloatArray | IntArray]) -> Any:
    """Return a table of pandas, polars or pyarrow with more columns at its end.

    The library and, in pandas, the index stay. A name that is taken gets ``_`` behind it.

    Raises InvalidData if it is no such table, or has another number of rows.
    """
    import narwhals as nw

    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise InvalidData(
            f"{type(table).__name__} is no table of pandas, polars or pyarrow."
        ) from None
    taken = {str(name) for name in frame.columns}
    fresh = []
    for name, values in more.items():
        check_size(len(frame), len(values))
        free = free_name(name, taken)
        taken.add(free)
        fresh.append(nw.new_series(free, values, backend=frame.implementation))
    return frame.with_columns(*fresh).to_native()


def free_name(name: str, taken: Mapping[str, Any] | set[str]) -> str:
    """Return a name that is not taken."""
    while name in taken:
        name += "_"
    return name


def drawable(
    table: Any,
    columns: Sequence[str],
    schema: Schema | None,
    preparation: Preparation | None,
    mapping: TableMapping | None,
) -> DataSource:
    """Return the rows of a session as numbers to draw.

    Of prepared fields those with levels are left out, and a gap stands at the mean.

    Raises InvalidData if the table cannot be read, or nothing of it is a number.
    """
    is_matrix = isinstance(table, np.ndarray | DataSource)
    data = open_table(
        table,
        columns=None if is_matrix or not columns else columns,
        schema=None if is_matrix else schema,
        preparation=preparation,
        mapping=None if is_matrix else mapping,
    )
    if schema is None or preparation is None:
        return data
    numbers = [not schema.field(name).is_category for name in data.columns]
    if not any(numbers):
        raise InvalidData("No field of the table is a number that could be drawn.")
    X = matrix(data)[:, numbers]
    means = np.nan_to_num(np.nanmean(X, axis=0))
    return MatrixSource(np.where(np.isnan(X), means, X))

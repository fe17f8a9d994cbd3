"""One way in: a file, a frame or a matrix becomes a source of rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.data_source import (
    DataSource,
    MatrixSource,
    SparseSource,
)
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Schema
from party_sdk.tables import table_examination
from party_sdk.tables.isolation import parent
from party_sdk.tables.mapping import TableMapping, load_mapping
from party_sdk.tables.names import IdColumns
from party_sdk.tables.parsing.dialect import from_mapping
from party_sdk.tables.read_options import How
from party_sdk.tables.report import CheckReport, Findings
from party_sdk.tables.scratch import new_scratch
from party_sdk.tables.source_opening import file_of, name_of, open_source
from party_sdk.tables.table import Table


def open_table(
    table: Any,
    *,
    id_column: IdColumns = None,
    columns: Sequence[str] | None = None,
    schema: Schema | None = None,
    preparation: Preparation | None = None,
    dialect: Any = None,
    mapping: TableMapping | str | os.PathLike[str] | None = None,
    allow: Sequence[str] = (),
    match_columns: Sequence[str] = (),
) -> DataSource:
    """Return a table as a source of rows, without gaps where no preparation meets them.

    table: a file (text, Excel, Parquet, SPSS, SAS, Stata), a numpy array, a scipy
        sparse matrix, or a table of pandas, polars or pyarrow.
    id_column, columns, schema, preparation, allow, match_columns: as for :class:`How`.
    dialect: Dialect, mapping or sequence of 'name=value'; how a text file is written,
        where it should not be found out.
    mapping: TableMapping, or its file; how the table becomes what the dictionary
        describes.

    Raises InvalidData if the table cannot be read, or holds what no preparation is
        agreed for: gaps, words, dates. The sentence names lines and columns, and no
        value.
    """
    if isinstance(table, DataSource):
        return table
    if (array := _of_array(table, id_column, columns, mapping)) is not None:
        return array
    how = How(
        id_column=id_column,
        columns=columns,
        schema=schema,
        preparation=preparation,
        dialect=from_mapping(dialect),
        mapping=load_mapping(mapping),
        allow=allow,
        match_columns=match_columns,
    )
    return open_as(table, how)


def open_as(table: Any, how: How) -> Table:
    """Return a table that can take part as it is; for the rest see :func:`open_table`."""
    read = read_table(table, how)
    if read.unfit:
        raise read.report.refusal(read.unfit.shown, read.unfit.more)
    return read


def read_table(table: Any, how: How) -> Table:
    """Return a table with its gaps and categories, for preparation.

    Raises InvalidData if it cannot be read.
    """
    report, read = examine(table, how)
    report.require_none()
    if read is None:  # a report without problems comes with a table
        raise ValueError("a table that could not be read has no problem")
    return read


def examine(table: Any, how: How) -> tuple[CheckReport, Table | None]:
    """Return how a table is read, and the table unless there are problems.

    What is no plain text is read in a process of its own: see
    :mod:`~party_sdk.tables.isolation.parent`.
    """
    try:
        with new_scratch() as scratch:
            if (file := parent.find_isolated_file(table)) is not None:
                return parent.examine(file, how, scratch)
            with open_source(table, how, scratch.folder) as source:
                return table_examination.examine(source, how, file_of(table), scratch)
    except InvalidData as refused:
        findings = Findings()
        findings.add(refused.detail)
        problems = tuple(findings.shown)
        return CheckReport(file=name_of(table), problems=problems), None


def _of_array(
    table: Any, id_column: IdColumns, columns: Sequence[str] | None, mapping: Any
) -> DataSource | None:
    """Return a matrix as a source; it has no names, and nothing to find out."""
    if isinstance(table, np.ndarray):
        if id_column or columns is not None or mapping is not None:
            raise InvalidData("An array has no named columns; use a data frame.")
        if table.dtype.kind not in "biuf":
            raise InvalidData(f"An array of {table.dtype} holds no numbers.")
        # what is masked is no value
        return MatrixSource(np.ma.filled(table.astype(np.float64, copy=False), np.nan))
    if isinstance(table, str | os.PathLike):
        return None
    from scipy.sparse import issparse

    return SparseSource(table, columns=columns) if issparse(table) else None

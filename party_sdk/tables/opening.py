"""One way in: a file, a query, a frame or a matrix becomes a source of rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from clustering_protocols.data import DataSource, MatrixSource, SparseSource
from clustering_protocols.errors import InvalidData
from clustering_protocols.explaining import did_you_mean
from clustering_protocols.recipe import Preparation
from clustering_protocols.schema import Schema
from party_sdk.tables import duck, guards, names as named
from party_sdk.tables.columns import Column
from party_sdk.tables.decoding import kind_of
from party_sdk.tables.dialect import Dialect, from_mapping
from party_sdk.tables.reading import Reading
from party_sdk.tables.report import CheckReport, Findings
from party_sdk.tables.source import Again, Cells, Source
from party_sdk.tables.study_files import STUDIES, study_source
from party_sdk.tables.table import Table

_SQL = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How a table is to be read.

    Attributes
    ----------
    id_column : str or sequence of str, optional
        The column, or columns together, that name the rows. Ids are texts, normalised
        to NFKC; of several columns the JSON list of their texts.
    columns : sequence of str, optional
        The columns to cluster, in this order; the dictionary's by default, or all but
        the id.
    schema : Schema, optional
        The dictionary: what columns mean. Columns are found by name, in any order.
    preparation : Preparation, optional
        What becomes of the dictionary's fields: of categories, and where a value is
        missing.
    dialect : Dialect
        What is known of how a text file is written.
    query : str, optional
        Of a database.
    allow : sequence of str
        Guards to switch off, of :data:`~party_sdk.tables.guards.SWITCHES`.
    """

    id_column: named.IdColumns = None
    columns: Sequence[str] | None = None
    schema: Schema | None = None
    preparation: Preparation | None = None
    dialect: Dialect = field(default_factory=Dialect)
    query: str | None = None
    allow: Sequence[str] = ()


def open_table(
    table: Any,
    *,
    id_column: named.IdColumns = None,
    columns: Sequence[str] | None = None,
    schema: Schema | None = None,
    preparation: Preparation | None = None,
    dialect: Any = None,
    query: str | None = None,
    allow: Sequence[str] = (),
) -> DataSource:
    """Return a table as a source of rows, without gaps where no preparation meets them.

    Parameters
    ----------
    table : path, matrix, data frame or data source
        A file (text, Excel, Parquet, JSON, SPSS, SAS, Stata), the address of a
        PostgreSQL database, a numpy array, a scipy sparse matrix, or a table of pandas,
        polars or pyarrow.
    id_column, columns, schema, preparation, query, allow
        As for :class:`How`.
    dialect : Dialect, mapping or sequence of 'name=value', optional
        How a text file is written, where it should not be found out.

    Raises
    ------
    InvalidData
        If the table cannot be read, or holds what no preparation is agreed for: gaps,
        words, dates. The sentence names lines and columns, and no value.
    """
    if isinstance(table, DataSource):
        return table
    if (array := _of_array(table, id_column, columns)) is not None:
        return array
    how = How(
        id_column=id_column,
        columns=columns,
        schema=schema,
        preparation=preparation,
        dialect=from_mapping(dialect),
        query=query,
        allow=allow,
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

    Raises
    ------
    InvalidData
        If it cannot be read.
    """
    report, read = examine(table, how)
    report.require_none()
    if read is None:  # a report without problems comes with a table
        raise ValueError("a table that could not be read has no problem")
    return read


def examine(table: Any, how: How) -> tuple[CheckReport, Table | None]:
    """Return how a table is read, and the table unless there are problems."""
    allow = guards.check_switches(how.allow)
    file = _file_of(table)
    try:
        with opened(table, how) as source:
            return _read(source, how, allow, file)
    except InvalidData as refused:
        findings = Findings()
        findings.add(refused.detail)
        problems = tuple(findings.shown)
        return CheckReport(file=_called(table), problems=problems), None


@contextmanager
def opened(table: Any, how: How) -> Iterator[Source]:
    """Lend a table as a source of cells; copies are gone afterwards."""
    from party_sdk.tables.typed import FrameSource

    if isinstance(table, str) and table.startswith(_SQL):
        from party_sdk.tables.postgres import query_source

        with _folder() as folder:
            yield query_source(table, how.query, how.dialect, folder)
        return
    if not isinstance(table, str | os.PathLike):
        yield FrameSource(table)
        return
    path = Path(table)
    before = _state(path)
    with _folder() as folder:
        yield _of_file(path, how.dialect, folder)
    if _state(path) != before:
        raise InvalidData(f"{path.name!r} was changed while it was read.")


def _of_file(path: Path, said: Dialect, folder: Path) -> Source:
    from party_sdk.tables.text import CopiedSource, TextSource
    from party_sdk.tables.typed import ParquetSource

    kind = kind_of(path)
    if kind == "parquet":
        return ParquetSource(path, folder)
    if kind == "excel":
        from party_sdk.tables.sheets import sheet_source

        return sheet_source(path, said, folder)
    if kind in STUDIES:
        return study_source(path, said, folder)
    if kind == "json":
        copy = folder / "objects.csv"
        try:
            with duck.connected(path.absolute(), folder) as connection:
                duck.json_to_text(connection, path.absolute(), copy)
        except duckdb.Error as error:
            raise duck.unreadable(path, error) from None
        return CopiedSource(copy, said)
    return TextSource(path, kind, said, folder)


def read_again(
    source: Source, columns: Sequence[Column], naming: Sequence[str]
) -> list[tuple[Cells, Cells]]:
    """Return all batches of a few columns, from the pass that needed no other."""
    while True:
        try:
            return list(source.batches(columns, naming))
        except Again:
            continue


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="coterie-") as folder:
        yield Path(folder)


def _state(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return found.st_ino, found.st_size, found.st_mtime_ns


def _file_of(table: Any) -> Path | None:
    is_path = isinstance(table, str | os.PathLike) and not str(table).startswith(_SQL)
    return Path(table) if is_path else None


def _called(table: Any) -> str:
    file = _file_of(table)
    if file is not None:
        return file.name
    return "a query" if isinstance(table, str) else type(table).__name__


def _of_array(
    table: Any, id_column: named.IdColumns, columns: Sequence[str] | None
) -> DataSource | None:
    """Return a matrix as a source; it has no names, and nothing to find out."""
    if isinstance(table, np.ndarray):
        if id_column or columns is not None:
            raise InvalidData("An array has no named columns; use a data frame.")
        if table.dtype.kind not in "biuf":
            raise InvalidData(f"An array of {table.dtype} holds no numbers.")
        # what is masked is no value
        return MatrixSource(np.ma.filled(table.astype(np.float64, copy=False), np.nan))
    if isinstance(table, str | os.PathLike):
        return None
    from scipy.sparse import issparse

    return SparseSource(table, columns=columns) if issparse(table) else None


def _read(
    source: Source, how: How, allow: frozenset[str], file: Path | None
) -> tuple[CheckReport, Table | None]:
    naming = named.naming(how.id_column)
    columns = _columns(source, how, naming)
    while True:
        try:
            reading = Reading(source, columns, naming, allow, how.preparation)
            reading.run()
            break
        except Again:
            continue
    return reading.result(file)


def _columns(source: Source, how: How, naming: Sequence[str]) -> list[Column]:
    """Return the columns to read: the dictionary's, those chosen, or all but the ids."""
    said = how.columns
    if how.schema is not None:
        if unknown := sorted(set(said or ()) - set(how.schema.names)):
            hint = did_you_mean(unknown[0], how.schema.names)
            raise InvalidData(f"The dictionary does not describe {unknown[0]!r}.{hint}")
        said = said or how.schema.names
    wanted = named.chosen(source.names, naming, said)
    kinds = dict(zip(source.names.all, source.kinds, strict=True))
    codes = frozenset({*how.dialect.codes})
    return [Column.of(name, kinds[name], how.schema, codes) for name in wanted]

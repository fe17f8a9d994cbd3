"""Open files, data frames and matrices as sources of rows, or read some columns."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, Self
from unicodedata import normalize

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.data_source import (
    DataSource,
    MatrixSource,
    SparseSource,
)
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Schema, normalise_text
from party_sdk.tables.arrow_tables import file_source, frame_source
from party_sdk.tables.cells import dialect_from, is_date
from party_sdk.tables.columns import Column, is_numeric, to_numbers, to_texts
from party_sdk.tables.files import LARGE_FILE, STATISTICS, file_kind, temporary_folder
from party_sdk.tables.mapped_source import MappedSource
from party_sdk.tables.mapping import TableMapping, load_mapping
from party_sdk.tables.read_options import DEFAULTS, IdColumns, ReadOptions
from party_sdk.tables.report import CheckReport, Finding, join_findings
from party_sdk.tables.source import RowLocations, Source
from party_sdk.tables.table import ColumnSpool, Table
from party_sdk.tables.table_reading import examine_source
from party_sdk.tables.unpacking import COPY, Labels, Question, Unpacked, unpack_file

_MOST_ROWS: Final = 200
_WHOLE_OR_WORD: Final = re.compile(r"\d+|.*[^\d.,+-].*")


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
    match_key_columns: Sequence[str] = (),
) -> DataSource:
    """Open a table as a source of rows.

    table: a file (text, Excel, Parquet, SPSS, SAS or Stata), a numpy array, a scipy
        sparse matrix, or a table of pandas, polars or pyarrow.
    id_column, columns, schema, preparation, allow, match_key_columns: as in
        :class:`ReadOptions`.
    dialect: the format of a text file, as a Dialect, mapping or sequence of
        'name=value'. Settings that are not given are detected.
    mapping: TableMapping or its file; translates the table to the dictionary's terms.

    Raises InvalidData if the table cannot be read, or has missing values, words or
        dates for which no preparation is agreed. The message names lines and columns,
        but quotes no value.
    """
    options = ReadOptions(
        id_column=id_column,
        columns=columns,
        schema=schema,
        preparation=preparation,
        dialect=dialect_from(dialect),
        mapping=load_mapping(mapping),
        allow=allow,
        match_key_columns=match_key_columns,
    )
    return open_source_of(table, options)


def open_source_of(table: Any, options: ReadOptions) -> DataSource:
    """Open a table as :func:`open_table` does, with its arguments as one object."""
    if isinstance(table, DataSource):
        return table
    if isinstance(table, np.ndarray):
        if options.id_columns or options.columns is not None or options.mapping:
            raise InvalidData("An array has no named columns; use a data frame.")
        if table.dtype.kind not in "biuf":
            raise InvalidData(f"An array of {table.dtype} contains no numbers.")
        # masked values become NaN, which means missing
        return MatrixSource(np.ma.filled(table.astype(np.float64, copy=False), np.nan))
    if file_of(table) is None:
        from scipy.sparse import issparse

        if issparse(table):
            return SparseSource(table, columns=options.columns)
    return open_clusterable(table, options)


def open_clusterable(table: Any, options: ReadOptions) -> Table:
    """Read a table; raise InvalidData if a value lacks an agreed preparation."""
    data = read_table(table, options)
    report = data.report
    if report.obstacles:
        raise report.build_error(report.obstacles, report.more_obstacles)
    return data


def read_table(table: Any, options: ReadOptions) -> Table:
    """Read a table, which may still have missing values or categories to prepare.

    Raises InvalidData if the table cannot be read.
    """
    report, data = examine_table(table, options)
    report.raise_for_problems()
    if data is None:  # a report without problems comes with a table
        raise ValueError("there is no table, and its report has no problem")
    return data


def examine_table(table: Any, options: ReadOptions) -> tuple[CheckReport, Table | None]:
    """Read a table and return its report, with the table if there are no problems."""
    path = file_of(table)
    name = "" if path is None else path.name
    try:
        with open_source(table, options) as source:
            return examine_source(source, options, name)
    except InvalidData as refused:
        return CheckReport(file=name, problems=(Finding(what=refused.detail),)), None


# Sources


def file_of(table: Any) -> Path | None:
    """Return the path of a table in a file, or None if the table is in memory."""
    return Path(table) if isinstance(table, str | os.PathLike) else None


@contextmanager
def open_source(
    table: Any, options: ReadOptions, columns: Collection[str] | None = None
) -> Iterator[Source]:
    """Open a table as a source of cells, to which the mapping is applied.

    columns: the session's columns that will be requested; by default those that the
        options or their dictionary name, otherwise all.

    Raises InvalidData if the table cannot be read, does not fit the mapping, or is
        changed while it is read.
    """
    path = file_of(table)
    state = path and _file_state(path)
    ids = *options.id_columns, *options.match_key_columns
    if columns is None and (options.columns is not None or options.schema is not None):
        field_names = () if options.schema is None else options.schema.used.names
        columns = [*(options.columns or field_names), *ids]
    with temporary_folder() as folder:
        if path is None:
            source: Source = frame_source(table, options.file_dialect, ids)
        else:
            source = _open_file(path, options, folder, columns)
        if options.mapping is not None:
            source = MappedSource(source, options, options.mapping)
        yield source
    if path is not None and _file_state(path) != state:
        raise InvalidData(f"{path.name!r} was changed while it was read.")


def _open_file(
    path: Path, options: ReadOptions, folder: Path, columns: Collection[str] | None
) -> Source:
    kind, dialect = file_kind(path), options.file_dialect
    if kind == "text":
        from party_sdk.tables.text_files import TextSource  # loads DuckDB

        return TextSource(path, dialect, folder, options.allow)
    if columns is not None:
        columns = [normalise_text(name) for name in columns]
        if options.mapping is not None:
            columns = [options.mapping.source_of(name) for name in columns]
            columns += options.mapping.leave_out.values
    question = Question(
        path=path,
        kind=kind,
        dialect=dialect,
        columns=None if columns is None else tuple(columns),
        large=LARGE_FILE in options.allow,
    )
    unpacked = unpack_file(question, folder)
    return file_source(path, unpacked, folder / COPY, dialect)


def _file_state(path: Path) -> tuple[int, int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0, 0)
    return status.st_ino, status.st_size, status.st_mtime_ns


def read_labels(table: Any) -> Labels:
    """Return the column titles and value labels of a statistics file.

    Both are empty for other tables. Raises InvalidData if the file cannot be read.
    """
    path = file_of(table)
    has_labels = path is not None and file_kind(path) in STATISTICS
    return _unpack_part(path, "labels").labels if path and has_labels else Labels()


def read_sheet_names(path: Path) -> tuple[str, ...]:
    """Return a workbook's sheets that are not empty; no sheets for other files.

    Raises InvalidData if the workbook cannot be read.
    """
    return _unpack_part(path, "sheets").sheets if file_kind(path) == "excel" else ()


def _unpack_part(path: Path, part: Literal["sheets", "labels"]) -> Unpacked:
    with temporary_folder() as folder:
        return unpack_file(Question(path=path, kind=file_kind(path), part=part), folder)


# Some columns, without checks


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some of a table's columns.

    batches: the columns that were requested, in order, followed by those in ``naming``.
    locations: line or row numbers of the rows.
    left_out: problems of the lines and cells that could not be read.
    """

    batches: list[pa.RecordBatch]
    locations: RowLocations
    left_out: Sequence[Finding]


def read_excerpt(
    source: Source, columns: Sequence[Column] = (), naming: Sequence[str] = ()
) -> Excerpt:
    """Read some columns of a table without checking their values.

    columns: columns to read, whose numbers are parsed.
    naming: columns to read as they are, including codes of missing values.

    Raises InvalidData if the table cannot be read, or has no column of a given name.
    """
    source.names.require([*(column.name for column in columns), *naming])
    spool = ColumnSpool()
    forms = dict(zip(source.names.all, source.forms, strict=True))
    columns = [replace(c, form=forms[normalise_text(c.name)]) for c in columns]
    for batch in source.batches(columns, naming):
        cells = map(_parse_numeric, columns, batch.cells)
        spool.write([*cells, *batch.names])
    left_out = source.findings() if columns else ()
    return Excerpt(spool.close(), source.locations(), left_out)


def _parse_numeric(column: Column, cells: pa.Array) -> pa.Array:
    if not column.is_numeric or is_numeric(cells.type):
        return to_texts(cells) if types.is_dictionary(cells.type) else cells
    values, faults = to_numbers(column, cells)
    if faults:
        raise InvalidData(f"{column.name!r}: {faults[0].problem}.")
    return pa.array(values, from_pandas=True)


def list_columns(path: Path, options: ReadOptions = DEFAULTS) -> list[str]:
    """Return the names of all columns of a file."""
    with open_source(path, options, ()) as source:
        return list(source.names.all)


def first_rows(path: Path, options: ReadOptions) -> tuple[list[str], list[list[str]]]:
    """Return column names and the first five rows, as a preview for the operator.

    The preview has at most 40 columns, none of which are or might be ids.
    """
    ids = options.id_columns
    with open_source(path, replace(options, columns=None, schema=None)) as source:
        names = [name for name in source.names.all if name not in ids][:40]
        batches = read_excerpt(source, naming=names).batches if names else []
    if not batches:
        return names, []
    columns = [to_texts(c).to_pylist() for c in batches[0].slice(0, _MOST_ROWS).columns]
    pairs = zip(names, columns, strict=True)
    shown = {name: cells[:5] for name, cells in pairs if not _may_be_ids(cells)}
    rows = zip(*shown.values(), strict=True)
    return list(shown), [[cell or "" for cell in row] for row in rows]


def _may_be_ids(cells: Sequence[str | None]) -> bool:
    """Return whether the cells are words or whole numbers that all differ, like ids."""
    present = [cell for cell in cells if cell]
    is_id = any(
        _WHOLE_OR_WORD.fullmatch(cell) and not is_date(cell) for cell in present
    )
    return is_id and 1 < len(present) == len(set(present))


def read_column(path: Path, name: str, options: ReadOptions = DEFAULTS) -> list[str]:
    """Return a column as texts, for example the true classes; a missing cell is empty."""
    with open_source(path, options, [name]) as source:
        return column_texts(source, name)


def column_texts(source: Source, name: str) -> list[str]:
    """Return a column of an open table as texts; a missing cell is empty."""
    return [
        text or ""
        for batch in read_excerpt(source, naming=[name]).batches
        for text in to_texts(batch.column(0)).to_pylist()
    ]


@dataclass(frozen=True, slots=True)
class LongForm:
    """Names of the columns of objects, items and counts; a count is 1 by default."""

    object: str
    item: str
    count: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a text of the form ``object,item`` or ``object,item,count``."""
        names = [name.strip() for name in text.split(",")]
        if len(names) not in {2, 3} or not all(names):
            raise InvalidData("The long form is OBJECT,ITEM or OBJECT,ITEM,COUNT.")
        return cls(*names)


def open_long_form(
    path: Path,
    form: LongForm,
    objects: Sequence[str] | None = None,
    options: ReadOptions = DEFAULTS,
) -> SparseSource:
    """Open a file of co-occurrences in long form as a source of sparse rows.

    objects: the ids of all objects, in the order of rows that all parties agreed; an
        object without a line gets an empty row. By default the objects of the file,
        sorted.

    Raises InvalidData if the file cannot be read, if a column does not exist or has
        empty cells, or if a line names an object that is not in ``objects``.
    """
    from scipy.sparse import coo_array

    columns = [Column(form.object, "words"), Column(form.item, "words")]
    columns += [Column(form.count, "number")] if form.count else []
    plain_options = replace(
        options, id_column=None, match_key_columns=(), columns=None, schema=None
    )
    with open_source(path, plain_options, [c.name for c in columns]) as source:
        excerpt = read_excerpt(source, columns)
    if excerpt.left_out:
        raise InvalidData(join_findings(excerpt.left_out, excerpt.locations.word))
    if not excerpt.batches:
        raise InvalidData(f"{path.name!r} has no rows.")
    table = pa.Table.from_batches(excerpt.batches)
    for column, cells in zip(columns, table.columns, strict=True):
        if cells.null_count:
            raise InvalidData(f"{cells.null_count} lines have no {column.name!r}.")
    rows, names = _encode_names(table.column(0), form.object)
    positions, items = _encode_names(table.column(1), form.item)
    counts = np.ones(len(table))
    if form.count:
        counts = table.column(2).cast(pa.float64()).to_numpy()
    if objects is None:
        order = {name: index for index, name in enumerate(sorted(names))}
    else:
        order = {normalize("NFKC", name): index for index, name in enumerate(objects)}
    n_unknown = sum(name not in order for name in names)
    if n_unknown:
        raise InvalidData(f"{n_unknown} objects are not in the list of objects.")
    indices = np.array([order[name] for name in names], dtype=np.int64)
    item_ranks = np.argsort(np.argsort(np.array(items)))
    shape = (len(order), len(items))
    R = coo_array((counts, (indices[rows], item_ranks[positions])), shape=shape)
    return SparseSource(R, columns=sorted(items), ids=list(order))


def _encode_names(
    column: pa.ChunkedArray, name: str
) -> tuple[np.ndarray[Any, Any], list[str]]:
    coded = compute.cast(column, pa.string()).combine_chunks().dictionary_encode()
    names = [normalize("NFKC", text) for text in coded.dictionary.to_pylist()]
    if len(set(names)) < len(names):
        raise InvalidData(f"Two spellings of one name in {name!r}.")
    return coded.indices.to_numpy(), names


def read_ids(path: Path) -> list[str]:
    """Read the ids of objects from a text file with one id per line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InvalidData(f"{path.name!r} is not a readable list of objects.") from None
    return [line.strip() for line in lines if line.strip()]

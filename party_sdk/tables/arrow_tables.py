"""Sources backed by Arrow columns: data frames, and files converted to Arrow.

Numbers in sheets, statistics files and Parquet files keep their types. Other cells of
sheets and statistics files become text, which is parsed like the cells of a text file.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from clustering_protocols.common.errors import InvalidData
from party_sdk.tables.cells import (
    Dialect,
    Kind,
    as_text,
    column_warnings,
    find_forms,
    guess_kind,
    resolve_dialect,
)
from party_sdk.tables.columns import PLAIN, kind_of_type, to_texts
from party_sdk.tables.files import MOST_CELL, rows_per_batch
from party_sdk.tables.read_options import Names
from party_sdk.tables.report import Finding
from party_sdk.tables.source import RowLocations, TableSource
from party_sdk.tables.unpacking import (
    NUMBER_BYTES,
    TEXT_BYTES,
    Question,
    Unpacked,
    invalid_answer_error,
)

_SAMPLE: Final = 1_000
"""Number of rows from which a column's number and date format is detected."""


class ArrowSource(TableSource):
    """A source that reads from an Arrow table.

    names, kinds: names and kinds of all columns of the original table.
    table: the columns that can be requested, each named by its index among all columns.
    dialect: the operator's settings for text cells.
    unpacked: the description of the file from which ``table`` was copied.
    """

    def __init__(
        self,
        names: Names,
        kinds: Sequence[Kind],
        table: pa.Table,
        dialect: Dialect,
        unpacked: Unpacked = Unpacked(),  # noqa: B008  frozen
    ) -> None:
        self.names, self.kinds = names, kinds
        self._table, self._unpacked = table, unpacked
        sample_cells = [list[str]() for _ in kinds]
        for name, column in zip(table.column_names, table.columns, strict=True):
            if kinds[int(name)] == "words":
                texts = to_texts(column.slice(0, _SAMPLE).combine_chunks())
                sample_cells[int(name)] = texts.drop_null().to_pylist()
        pointed, mixed = {*unpacked.pointed}, {*unpacked.mixed}
        form_samples = [
            [] if index in pointed else cells
            for index, cells in enumerate(sample_cells)
        ]
        self.forms = [
            replace(PLAIN, codes=form.codes)
            if index in pointed
            else replace(form, has_numbers=index in mixed)
            for index, form in enumerate(find_forms(form_samples, dialect))
        ]
        self._dialect = resolve_dialect(dialect, self.forms)
        self._format_warnings = list(unpacked.warnings)
        if unpacked.is_text:
            self.kinds = [
                guess_kind(cells, form) if kind == "words" else kind
                for kind, cells, form in zip(
                    kinds, sample_cells, self.forms, strict=True
                )
            ]
            self._format_warnings += column_warnings(
                names.all, self.kinds, sample_cells, self.forms
            )

    def locations(self) -> RowLocations:
        """Return the row numbers of the table, without empty rows."""
        first, empty = self._unpacked.first, np.array(self._unpacked.empty, np.int64)
        end = first + len(self._table) + len(empty)
        return RowLocations(
            "row",
            lambda: np.setdiff1d(np.arange(first, end), empty, assume_unique=True),
        )

    @property
    def format_description(self) -> dict[str, Any]:
        """The sheet that was read, and the decimal sign and date order of its texts."""
        dialect = self._dialect
        decimal = {"decimal": dialect.decimal} if dialect.decimal != "." else {}
        dates = {"dates": dialect.dates} if dialect.dates else {}
        return self._unpacked.format | decimal | dates

    def _read(self, positions: Sequence[int]) -> Iterable[pa.RecordBatch]:
        table = self._table.select([str(position) for position in positions])
        batches: list[pa.RecordBatch] = table.to_batches(rows_per_batch(len(positions)))
        return batches

    def findings(self) -> list[Finding]:
        """Return the problems of the file, and text columns with ambiguous numbers."""
        findings = [Finding(what=problem) for problem in self._unpacked.problems]
        return [*findings, *self._sign_findings()]


def frame_source(
    table: Any, dialect: Dialect, naming: Sequence[str] = ()
) -> ArrowSource:
    """Wrap a pandas, polars or pyarrow table in memory as a source.

    naming: columns with the row ids. An index level of a pandas table with one of
        these names is read as a column.

    Raises InvalidData if ``table`` has another type or a column cannot be read.
    """
    import narwhals as nw  # imported here, because reading a file does not need it

    if nw.dependencies.is_pandas_dataframe(table):
        levels = [name for name in table.index.names if name in naming]
        if levels := [name for name in levels if name not in table.columns]:
            table = table.reset_index(level=levels)
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise InvalidData(
            f"{type(table).__name__} is not a table that Coterie can read: use a path, "
            "a numpy array, or a pandas, polars or pyarrow table."
        ) from None
    except nw.exceptions.DuplicateError:
        raise InvalidData("Two columns have the same name.") from None
    names = Names(str(name) for name in frame.columns)
    # to_arrow appends the index of a pandas table after the columns
    positions = list(range(len(frame.columns)))
    try:
        arrow: pa.Table = frame.to_arrow().select(positions)
    except (pa.ArrowException, TypeError, ValueError):
        raise InvalidData(_explain_unknown_kind(frame)) from None
    arrow = pa.table(
        [_to_local_time(column) for column in arrow.columns],
        [str(position) for position in positions],
    )
    kinds = [kind_of_type(kind) for kind in arrow.schema.types]
    return ArrowSource(names, kinds, arrow, dialect)


def _to_local_time(cells: Any) -> Any:
    """Convert timestamps with a time zone to local time; return other values unchanged."""
    if not types.is_timestamp(cells.type) or cells.type.tz is None:
        return cells
    try:
        return compute.local_timestamp(cells)
    except pa.ArrowInvalid:
        raise InvalidData(
            "A column contains timestamps in a time zone that this machine does not "
            "know: write them as dates."
        ) from None


def _explain_unknown_kind(frame: Any) -> str:
    for name in frame.columns:
        try:
            frame.select(name).to_arrow()
        except (pa.ArrowException, TypeError, ValueError):
            return (
                f"{name!r}: its values are of several kinds, or of a kind that cannot be "
                "read, such as sparse: convert the column to numbers."
            )
    return "A column has values of several kinds, or of a kind that cannot be read."


def file_source(
    path: Path, unpacked: Unpacked, copy: Path, dialect: Dialect
) -> ArrowSource:
    """Open the reader process's copy of a file's columns as a source.

    Raises InvalidData if the copy is damaged or lacks columns that ``unpacked`` names.
    """
    try:
        with copy.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with pa.ipc.open_stream(pa.py_buffer(mapped)) as stream:
            table = stream.read_all()
        table.validate(full=True)
    except (FileNotFoundError, pa.ArrowException, ValueError):
        raise invalid_answer_error(path) from None
    names, copied = Names(unpacked.names), {*unpacked.columns}
    positions = [i for i in range(len(names.all)) if i in copied]
    if [*map(str, positions)] != table.column_names or len(unpacked.kinds) != len(
        names.all
    ):
        raise invalid_answer_error(path)
    return ArrowSource(names, unpacked.kinds, table, dialect, unpacked)


def write_rows(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    copy: Path,
    numeric: Collection[int],
    mixed: Collection[int] = (),
    first: int = 1,
) -> Unpacked:
    """Write rows as an Arrow stream: numbers as float64, all other cells as text.

    Empty rows are skipped.

    numeric: indices of the columns whose cells are all numbers or empty.
    mixed: indices of the columns with both numbers and texts. Their numbers are written
        without a decimal sign, because the texts may use either sign.
    first: the row number of the first row.

    Raises InvalidData if a cell is too long.
    """
    width, empty, is_whole = len(names), list[int](), dict.fromkeys(numeric, True)
    kinds = [
        pa.float64() if index in numeric else pa.large_string()
        for index in range(width)
    ]
    schema = pa.schema(list(zip(map(str, range(width)), kinds, strict=True)))

    def batches() -> Iterator[pa.RecordBatch]:
        begin, remaining = first, iter(rows)
        while piece := list(islice(remaining, rows_per_batch(width))):
            columns = [
                _to_arrow(cells, index in numeric, index in mixed)
                for index, cells in enumerate(zip(*piece, strict=True))
            ]
            for index in numeric:
                values = columns[index].drop_null().to_numpy()
                is_whole[index] &= bool(
                    ((values == np.trunc(values)) & (np.abs(values) < 2**53)).all()
                )
            is_filled = reduce(compute.or_, map(compute.is_valid, columns))
            indices = np.flatnonzero(~is_filled.to_numpy(zero_copy_only=False))
            empty.extend((begin + indices).tolist())
            begin += len(piece)
            yield pa.record_batch(columns, schema).filter(is_filled)

    write_stream(batches(), schema, copy)
    number_kinds: dict[int, Kind] = {
        index: "integer" if whole else "number" for index, whole in is_whole.items()
    }
    return Unpacked(
        names=tuple(names),
        kinds=tuple(number_kinds.get(index, "words") for index in range(width)),
        columns=tuple(range(width)),
        is_text=True,
        first=first,
        empty=tuple(empty),
    )


def _to_arrow(cells: Sequence[Any], is_numeric: bool, is_mixed: bool) -> pa.Array:  # noqa: FBT001  one caller
    if is_numeric:
        values = [None if cell == "" else cell for cell in cells]
        return pa.array(values, pa.float64(), from_pandas=True)
    words = [as_text(cell) for cell in cells]
    for row, (cell, text) in enumerate(zip(cells, words, strict=True)):
        if is_mixed and isinstance(cell, float) and "." in text:
            # 5125e-3 for 5.125 means the same number with either decimal sign
            _, digits, exponent = Decimal(text).as_tuple()
            words[row] = f"{'-' * (cell < 0)}{''.join(map(str, digits))}e{exponent}"
    return pa.array([text or None for text in words], pa.large_string())


def write_stream(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, copy: Path
) -> None:
    """Write batches to a file. Raises InvalidData if a cell is longer than 2 MiB."""
    with copy.open("wb") as file, pa.ipc.new_stream(file, schema) as stream:
        for batch in batches:
            batch.validate(full=True)
            for column in batch.columns:
                if types.is_large_string(column.type):
                    longest = compute.max(compute.binary_length(column)).as_py()
                    if (longest or 0) > MOST_CELL:
                        raise InvalidData(
                            "The table contains a cell of more than two mebibytes."
                        )
            stream.write_batch(batch)


def unpack_parquet(question: Question, copy: Path) -> Unpacked:
    """Copy the requested columns of a Parquet file, where they exist, to an Arrow stream.

    Raises InvalidData if the file cannot be read or the columns exceed the limits.
    """
    from pyarrow import parquet  # imported here, because other files do not need it

    path, columns = question.path, question.columns
    try:
        with pa.OSFile(str(path)) as opened, parquet.ParquetFile(opened) as file:
            schema = file.schema_arrow
            names = Names(schema.names).all
            positions = [
                position
                for position, name in enumerate(names)
                if columns is None or name in columns
            ]
            fields = [schema.field(position) for position in positions]
            _check_size(file, fields, question)
            stored = [field.name for field in fields]
            batches = file.iter_batches(rows_per_batch(len(positions)), columns=stored)
            copied = pa.schema(
                [
                    (str(position), _stored_type(field.type))
                    for position, field in zip(positions, fields, strict=True)
                ]
            )
            converted = (
                pa.record_batch(
                    [*map(_stored_cells, batch.select(stored), copied.types)], copied
                )
                for batch in (batches if positions else ())
            )
            write_stream(converted, copied, copy)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk is full
        raise InvalidData(f"{path.name!r} is not a readable table.") from None
    return Unpacked(
        names=tuple(schema.names),
        kinds=tuple(kind_of_type(_value_type(kind)) for kind in schema.types),
        columns=tuple(positions),
        warnings=tuple(
            f"{field.name!r}: its timestamps are read as days in UTC."
            for field in fields
            if types.is_timestamp(field.type) and field.type.tz == "UTC"
        ),
    )


def _check_size(file: Any, fields: Sequence[pa.Field], question: Question) -> None:
    names = {field.name for field in fields}
    leaf_paths = [file.schema.column(i).path for i in range(len(file.schema))]
    leaf_indices = [
        i
        for i, path in enumerate(leaf_paths)
        if path in names or path.partition(".")[0] in names
    ]
    n_bytes = sum(
        file.metadata.row_group(group).column(i).total_uncompressed_size
        for group in range(file.metadata.num_row_groups)
        for i in leaf_indices
    )
    n_texts = sum(kind_of_type(_value_type(field.type)) == "words" for field in fields)
    row_bytes = NUMBER_BYTES * (len(fields) - n_texts) + TEXT_BYTES * n_texts
    n_bytes = max(n_bytes, file.metadata.num_rows * row_bytes)
    question.check_unpacked(n_bytes, "Choose fewer columns with --columns")


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if types.is_dictionary(kind) else kind


def _stored_type(kind: pa.DataType) -> pa.DataType:
    kind = _value_type(kind)
    if types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    return pa.large_string() if kind_of_type(kind) == "words" else kind


def _stored_cells(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    if types.is_large_string(kind):
        return to_texts(cells)
    if types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    return _to_local_time(cells)

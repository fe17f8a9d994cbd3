"""Columns of Arrow: of data frames, and of files that are copied as such.

Numbers of sheets, statistics files and Parquet keep their types; other cells of sheets
and statistics files are texts, and judged as those of text files are.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    guess,
    settle,
)
from party_sdk.tables.columns import PLAIN, Column, kind_of, texts
from party_sdk.tables.files import MOST_CELL, Limits, batch_rows
from party_sdk.tables.guards import SignWatches
from party_sdk.tables.read_options import Names
from party_sdk.tables.report import Findings
from party_sdk.tables.source import Batch, RowLocations, Source
from party_sdk.tables.unpacking import Unpacked, unusable

_SAMPLE: Final = 1_000
"""Texts of a column by which it is judged how they are written."""


class ArrowSource(Source):
    """Columns of Arrow, of which each row is read.

    names, kinds: of all columns.
    table: those that may be asked for.
    places: where a column of the table stands, by its position among all.
    dialect: what the operator says of texts.
    unpacked: what was said of the file of which the table is a copy.
    """

    def __init__(
        self,
        names: Names,
        kinds: Sequence[Kind],
        table: pa.Table,
        places: Mapping[int, int],
        dialect: Dialect,
        unpacked: Unpacked = Unpacked(),  # noqa: B008  frozen
    ) -> None:
        self.names, self.kinds = names, kinds
        self._table, self._places, self._unpacked = table, places, unpacked
        self._signs = SignWatches()
        samples = [
            texts(table.column(places[place]).slice(0, _SAMPLE).combine_chunks())
            if kind == "words" and place in places
            else pa.nulls(0)
            for place, kind in enumerate(kinds)
        ]
        written = [sample.drop_null().to_pylist() for sample in samples]
        numeric, mixed = {*unpacked.numeric}, {*unpacked.mixed}
        judged = [
            [] if place in numeric - mixed else cells
            for place, cells in enumerate(written)
        ]
        self.forms = [
            replace(PLAIN, codes=form.codes)
            if place in numeric - mixed
            else replace(form, has_numbers=place in mixed)
            for place, form in enumerate(find_forms(judged, dialect))
        ]
        self._dialect = settle(dialect, self.forms)
        self._warnings = list(unpacked.warnings)
        if unpacked.is_text:
            self.kinds = [
                guess(cells, form) if kind == "words" else kind
                for kind, cells, form in zip(kinds, written, self.forms, strict=True)
            ]
            self._warnings += column_warnings(
                names.all, self.kinds, written, self.forms
            )

    @property
    def warnings(self) -> Sequence[str]:
        """Return what was guessed."""
        return [*self._warnings, *self._signs.warnings()]

    @property
    def locations(self) -> RowLocations:
        """Return how rows are counted."""
        first, empty = self._unpacked.first, np.array(self._unpacked.empty, np.int64)
        end = first + len(self._table) + len(empty)
        return RowLocations(
            "row",
            lambda: np.setdiff1d(np.arange(first, end), empty, assume_unique=True),
        )

    @property
    def format_description(self) -> dict[str, Any]:
        """Return what was chosen in a file, and how its texts are written."""
        dialect = self._dialect
        decimal = {"decimal": dialect.decimal} if dialect.decimal != "." else {}
        dates = {"dates": dialect.dates} if dialect.dates else {}
        return self._unpacked.format | decimal | dates

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield cells as Arrow has them."""
        named = [*(column.name for column in columns), *naming]
        places = [self._places[self.names.position(name)] for name in named]
        forms = [self.forms[self.names.position(column.name)] for column in columns]
        self._signs, n_rows = SignWatches(columns, forms), 0
        size = batch_rows(len(places))
        for batch in self._table.select(places).to_batches(size):
            cells = batch.columns[: len(columns)]
            self._signs.see(cells, n_rows)
            yield Batch(cells, batch.columns[len(columns) :])
            n_rows += len(batch)

    def tell(self, findings: Findings) -> None:
        """Add columns of texts whose numbers have two readings: every row was read."""
        for problem in self._unpacked.problems:
            findings.add(problem)
        self._signs.tell(findings, self.locations)


def frame_source(
    table: Any, dialect: Dialect, naming: Sequence[str] = ()
) -> ArrowSource:
    """Return a table of pandas, polars or pyarrow in memory as a source.

    naming: columns that name the rows; an index of pandas that has one of these names
        is read as such a column.

    Raises InvalidData if it is none, or a column cannot be read.
    """
    import narwhals as nw  # not above: files need none

    if nw.dependencies.is_pandas_dataframe(table):
        levels = [name for name in table.index.names if name in naming]
        if levels := [name for name in levels if name not in table.columns]:
            table = table.reset_index(level=levels)
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise InvalidData(
            f"{type(table).__name__} is no table that coterie knows: use a path, a "
            "numpy array, or a pandas, polars or pyarrow table."
        ) from None
    except nw.exceptions.DuplicateError:
        raise InvalidData("Two columns have the same name.") from None
    names = Names(str(name) for name in frame.columns)
    # an index of pandas comes as columns behind the others
    places = list(range(len(frame.columns)))
    try:
        arrow: pa.Table = frame.to_arrow().select(places)
    except (pa.ArrowException, TypeError, ValueError):
        raise InvalidData(_explain_unknown_kind(frame)) from None
    arrow = pa.table(
        [_in_own_zone(column, column.type) for column in arrow.columns],
        [str(place) for place in places],
    )
    kinds = [kind_of(kind) for kind in arrow.schema.types]
    return ArrowSource(names, kinds, arrow, dict(enumerate(places)), dialect)


def _in_own_zone(cells: Any, kind: pa.DataType) -> Any:
    """Return timestamps as clocks of their zone show them; other cells as they are.

    cells: instants are counted in UTC where ``kind`` alone has the zone.
    """
    if not types.is_timestamp(kind) or kind.tz is None:
        return cells
    try:
        return compute.local_timestamp(compute.cast(cells, kind, safe=False))
    except pa.ArrowInvalid:
        raise InvalidData(
            "A column holds timestamps of a time zone that this machine does not know: "
            "write them as dates."
        ) from None


def _explain_unknown_kind(frame: Any) -> str:
    """Return which column cannot be read, as far as one alone cannot."""
    for name in frame.columns:
        try:
            frame.select(name).to_arrow()
        except (pa.ArrowException, TypeError, ValueError):
            return (
                f"{name!r}: its values are of several kinds, or of one that is not known, "
                "such as a sparse one: make it a column of numbers."
            )
    return "A column holds values of several kinds, or of one that is not known."


def copied_source(
    path: Path, unpacked: Unpacked, copy: Path, dialect: Dialect
) -> ArrowSource:
    """Return a file as a source, given the copy of its columns.

    Raises InvalidData if the copy is none of such columns.
    """
    try:
        with copy.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with pa.ipc.open_stream(pa.py_buffer(mapped)) as stream:
            table = stream.read_all()
        table.validate(full=True)
    except (FileNotFoundError, pa.ArrowException, ValueError):
        raise unusable(path) from None
    names = Names(unpacked.names)
    n_chosen = len(unpacked.chosen)
    if table.num_columns != n_chosen or len(unpacked.kinds) != len(names.all):
        raise unusable(path)
    places = dict(zip(unpacked.chosen, range(n_chosen), strict=True))
    return ArrowSource(names, unpacked.kinds, table, places, dialect, unpacked)


def write_rows(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    copy: Path,
    numeric: Collection[int],
    mixed: Collection[int] = (),
    first: int = 1,
) -> Unpacked:
    """Write rows as an Arrow stream, numbers as such and other cells as texts.

    Rows that hold nothing are left out.

    numeric: places of columns of which every cell is a number, or empty.
    mixed: places of columns whose numbers are written without a decimal sign, as texts
        beside them have signs of their own.
    first: the number of the first row.

    Raises InvalidData if a cell is too long.
    """
    width, empty, is_whole = len(names), list[int](), dict.fromkeys(numeric, True)
    kinds = [
        pa.float64() if place in numeric else pa.large_string()
        for place in range(width)
    ]
    schema = pa.schema(list(zip(map(str, range(width)), kinds, strict=True)))

    def batches() -> Iterator[pa.RecordBatch]:
        begin, every = first, iter(rows)
        while piece := list(islice(every, batch_rows(width))):
            columns = [
                _numbers(cells) if place in numeric else _texts(cells, place in mixed)
                for place, cells in enumerate(zip(*piece, strict=True))
            ]
            for place in numeric:
                values = columns[place].drop_null().to_numpy()
                is_whole[place] &= bool(
                    ((values == np.trunc(values)) & (np.abs(values) < 2**53)).all()
                )
            is_filled = reduce(compute.or_, map(compute.is_valid, columns))
            places = np.flatnonzero(~is_filled.to_numpy(zero_copy_only=False))
            empty.extend((begin + places).tolist())
            begin += len(piece)
            yield pa.record_batch(columns, schema).filter(is_filled)

    write_stream(batches(), schema, copy)
    number_kinds: dict[int, Kind] = {
        place: "integer" if whole else "number" for place, whole in is_whole.items()
    }
    return Unpacked(
        names=tuple(names),
        kinds=tuple(number_kinds.get(place, "words") for place in range(width)),
        chosen=tuple(range(width)),
        is_text=True,
        first=first,
        empty=tuple(empty),
    )


def _numbers(cells: Sequence[Any]) -> pa.Array:
    values = [None if cell == "" else cell for cell in cells]
    return pa.array(values, pa.float64(), from_pandas=True)


def _texts(cells: Sequence[Any], is_mixed: bool) -> pa.Array:  # noqa: FBT001  of its place
    write = _without_sign if is_mixed else as_text
    return pa.array([write(cell) or None for cell in cells], pa.large_string())


def _without_sign(value: Any) -> str:
    """Return a value as text: 5.125 as 5125e-3, which has one reading alone."""
    text = as_text(value)
    if not isinstance(value, float) or "." not in text:
        return text
    _, digits, exponent = Decimal(text).as_tuple()
    return f"{'-' * (value < 0)}{''.join(map(str, digits))}e{exponent}"


def write_stream(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, copy: Path
) -> None:
    """Write batches to a file; :class:`InvalidData` if a cell is too long."""
    with copy.open("wb") as file, pa.ipc.new_stream(file, schema) as stream:
        for batch in batches:
            batch.validate(full=True)
            for column in batch.columns:
                if types.is_large_string(column.type):
                    longest = compute.max(compute.binary_length(column)).as_py()
                    if (longest or 0) > MOST_CELL:
                        raise InvalidData(
                            "The table holds a cell of more than two mebibytes."
                        )
            stream.write_batch(batch)


def unpack_parquet(
    path: Path, columns: Collection[str] | None, copy: Path, limits: Limits
) -> Unpacked:
    """Write columns of a Parquet file as an Arrow stream.

    columns: their names, of which some may be absent; None for all.

    Raises InvalidData if the file cannot be read, or the columns take too much.
    """
    from pyarrow import parquet  # not above: other files need none

    try:
        with pa.OSFile(str(path)) as opened, parquet.ParquetFile(opened) as file:
            schema = file.schema_arrow
            names = Names(schema.names).all
            chosen = [
                place
                for place, name in enumerate(names)
                if columns is None or name in columns
            ]
            fields = [schema.field(place) for place in chosen]
            _check_size(file, fields, limits)
            stored = [field.name for field in fields]
            batches = file.iter_batches(batch_rows(len(chosen)), columns=stored)
            copied = pa.schema(
                [(field.name, _stored_type(field.type)) for field in fields]
            )
            write_stream(
                (
                    pa.record_batch(
                        [*map(_stored_cells, batch.select(stored), copied.types)],
                        copied,
                    )
                    for batch in (batches if chosen else ())
                ),
                copied,
                copy,
            )
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the copy has no room
        raise InvalidData(f"{path.name!r} is no readable table.") from None
    return Unpacked(
        names=tuple(schema.names),
        kinds=tuple(kind_of(_plain_type(kind)) for kind in schema.types),
        chosen=tuple(chosen),
        warnings=tuple(
            f"{field.name!r}: the days of its timestamps are those of UTC."
            for field in fields
            if types.is_timestamp(field.type) and field.type.tz == "UTC"
        ),
    )


def _check_size(file: Any, fields: Sequence[pa.Field], limits: Limits) -> None:
    """Refuse columns that take too much, as rows or as their pages say."""
    names = {field.name for field in fields}
    leaves = [file.schema.column(i).path for i in range(len(file.schema))]
    pages = [
        i
        for i, path in enumerate(leaves)
        if path in names or path.partition(".")[0] in names
    ]
    n_bytes = sum(
        file.metadata.row_group(group).column(i).total_uncompressed_size
        for group in range(file.metadata.num_row_groups)
        for i in pages
    )
    n_texts = sum(kind_of(_plain_type(field.type)) == "words" for field in fields)
    remedy = "Choose fewer columns with --columns"
    n_numbers = len(fields) - n_texts
    limits.check_rows(file.metadata.num_rows, n_numbers, n_texts, remedy)
    limits.check_unpacked(n_bytes, f"{limits.name!r} takes", remedy)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column's values, also where these are coded."""
    return kind.value_type if types.is_dictionary(kind) else kind


def _stored_type(kind: pa.DataType) -> pa.DataType:
    """Return as which type a column is copied: in its own zone, and words as texts."""
    kind = _plain_type(kind)
    if types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    return pa.large_string() if kind_of(kind) == "words" else kind


def _stored_cells(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    if types.is_large_string(kind):
        return texts(cells)
    if types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    return _in_own_zone(cells, cells.type)

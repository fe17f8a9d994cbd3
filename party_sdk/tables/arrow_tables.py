"""Columns with types: Parquet files, which DuckDB unpacks, and data frames."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from pyarrow import compute, types

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.terms.schema import normal
from party_sdk.tables import duck
from party_sdk.tables.cells import Dialect, Kind, find_forms
from party_sdk.tables.columns import Column, kind_of, texts
from party_sdk.tables.files import MOST_CELL, Limits
from party_sdk.tables.guards import SignWatches
from party_sdk.tables.read_options import Names
from party_sdk.tables.report import Findings
from party_sdk.tables.source import Batch, Cells, NumberedRows, Places, Source
from party_sdk.tables.unpacking import Unpacked, unusable

_SAMPLE: Final = 1_000
"""Texts of a column by which it is judged how they are written."""


class ArrowSource(Source):
    """Columns of Arrow, of which each row is read.

    names, kinds: of all columns.
    table: those that may be asked for.
    places: where a column of the table stands, by its position among all.
    dialect: what the operator says of texts.
    """

    def __init__(
        self,
        names: Names,
        kinds: Sequence[Kind],
        table: pa.Table,
        places: Mapping[int, int],
        dialect: Dialect,
        warnings: Sequence[str] = (),
    ) -> None:
        self.names, self.kinds = names, kinds
        self._table, self._places = table, places
        self._signs, self._warnings = SignWatches(), warnings
        samples = [
            texts(table.column(places[place]).slice(0, _SAMPLE).combine_chunks())
            if kind == "words" and place in places
            else pa.nulls(0)
            for place, kind in enumerate(kinds)
        ]
        written = [sample.drop_null().to_pylist() for sample in samples]
        self.forms = find_forms(written, dialect)

    @property
    def warnings(self) -> Sequence[str]:
        """Return what was guessed."""
        return [*self._warnings, *self._signs.warnings()]

    @property
    def places(self) -> Places:
        """Return how rows are counted."""
        return NumberedRows()

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield cells as Arrow has them."""
        named = [*(column.name for column in columns), *naming]
        places = [self._places[self.names.position(name)] for name in named]
        forms = [self.forms[self.names.position(column.name)] for column in columns]
        self._signs, n_rows = SignWatches(columns, forms), 0
        size = duck.batch_rows(len(places))
        for batch in self._table.select(places).to_batches(size):
            cells = batch.columns[: len(columns)]
            self._signs.see(cells, n_rows)
            yield Batch(cells, batch.columns[len(columns) :])
            n_rows += len(batch)

    def texts(self, columns: Sequence[Column]) -> Iterator[Cells]:
        """Yield cells as texts."""
        for batch in self.batches(columns, ()):
            yield [texts(piece) for piece in batch.cells]

    def tell(self, findings: Findings) -> None:
        """Add columns of texts whose numbers have two readings: every row was read."""
        self._signs.tell(findings, self.places)


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


def parquet_source(
    path: Path, unpacked: Unpacked, copy: Path, dialect: Dialect
) -> ArrowSource:
    """Return a Parquet file as a source, given the copy of its columns.

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
    return ArrowSource(names, unpacked.kinds, table, places, dialect, unpacked.warnings)


def unpack_parquet(
    path: Path, columns: Collection[str] | None, copy: Path, limits: Limits
) -> Unpacked:
    """Write columns of a Parquet file as an Arrow stream.

    columns: their names, of which some may be absent; None for all.

    Raises InvalidData if the file cannot be read, or the columns take too much.
    """
    path = path.absolute()
    try:
        with duck.open_database(path, copy.parent) as connection:
            described = duck.parquet_columns(connection, path)
            chosen = [
                place
                for place, (name, _) in enumerate(described)
                if columns is None or (normal(name) or f"Unnamed: {place}") in columns
            ]
            kinds = [_kind(kind) for _, kind in described]
            n_texts = sum(kinds[place] == "words" for place in chosen)
            names = [described[place][0] for place in chosen]
            _check_size(connection, path, limits, names, n_texts)
            casts = [(place, _cast(described[place][1])) for place in chosen]
            zones = _zoned_types(connection, path, described)
            own = [zones.get(place) for place in chosen]
            none = pa.RecordBatchReader.from_batches(pa.schema([]), [])
            rows = duck.read_parquet(connection, path, casts) if casts else none
            _write_stream(rows, own, copy, path)
    except duckdb.Error as error:
        raise duck.unreadable(path, error) from None
    all_names = tuple(name for name, _ in described)
    in_utc = [
        described[place][0]
        for place in chosen
        if place in zones and zones[place].tz == "UTC"
    ]
    return Unpacked(
        names=all_names,
        kinds=tuple(kinds),
        chosen=tuple(chosen),
        warnings=tuple(
            f"{name!r}: the days of its timestamps are those of UTC." for name in in_utc
        ),
    )


def _zoned_types(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    described: Sequence[tuple[str, str]],
) -> dict[int, pa.DataType]:
    """Return the type of each column of instants, whose zone Arrow's schema may name."""
    kinds = [kind for _, kind in described]
    places = [place for place, kind in enumerate(kinds) if kind in _INSTANTS]
    stored = duck.arrow_schema(connection, path) if places else None
    zones: list[str | None] = [None] * len(kinds)
    if stored is not None and len(stored) == len(kinds):
        zones = [getattr(kind, "tz", None) for kind in stored.types]
    return {
        place: pa.timestamp(_INSTANTS[kinds[place]], zones[place] or "UTC")
        for place in places
    }


def _check_size(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    limits: Limits,
    names: Sequence[str],
    n_texts: int,
) -> None:
    """Refuse columns that take too much, as rows or as their pages say."""
    n_rows, n_bytes = duck.parquet_size(connection, path, names)
    remedy = "Choose fewer columns with --columns"
    limits.check_rows(n_rows, len(names) - n_texts, n_texts, remedy)
    limits.check_unpacked(n_bytes, f"{path.name!r} takes", remedy)


def _write_stream(
    batches: pa.RecordBatchReader,
    zoned: Sequence[pa.DataType | None],
    copy: Path,
    path: Path,
) -> None:
    with (
        copy.open("wb") as file,
        pa.ipc.new_stream(file, batches.schema) as stream,
    ):
        for batch in batches:
            columns = [
                column if kind is None else _in_own_zone(column, kind)
                for column, kind in zip(batch.columns, zoned, strict=True)
            ]
            for column in columns:
                if pa.types.is_string(column.type):
                    longest = compute.max(compute.binary_length(column)).as_py()
                    if (longest or 0) > MOST_CELL:
                        raise InvalidData(
                            f"{path.name!r} holds a cell of more than two mebibytes."
                        )
            stream.write_batch(pa.record_batch(columns, batches.schema))


def _kind(name: str) -> Kind:
    """Return what a column of one of DuckDB's types holds."""
    base = name.partition("(")[0]
    if base in {"DOUBLE", "FLOAT", "DECIMAL"}:
        return "number"
    if base.endswith(("INT", "INTEGER")):
        return "integer"
    if base == "BOOLEAN":
        return "boolean"
    return "date" if base.startswith(("DATE", "TIMESTAMP")) else "words"


def _cast(name: str) -> str:
    """Return as which type a column is written: its own, or text of another kind."""
    if _kind(name) == "words" or "HUGE" in name:
        return "VARCHAR"
    if name == "TIMESTAMPTZ_NS":
        return "TIMESTAMP_NS"
    return "TIMESTAMP" if name.startswith("TIMESTAMP") else name


_INSTANTS: Final = {"TIMESTAMP WITH TIME ZONE": "us", "TIMESTAMPTZ_NS": "ns"}
"""DuckDB's types of instants, and the units in which they are written."""

"""The parties of a simulated session: their layout, and their tables or parts of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from numbers import Integral
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
from pydantic import ValidationError

from clustering_protocols import catalogue, simulation
from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.common.values import convert_validation_error
from clustering_protocols.numerics.data_source import (
    DataSource,
    MatrixSource,
    SparseSource,
    matrix,
)
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.terms import Layout
from party_sdk.tables import IdColumns, Table, open_table

Lattice: TypeAlias = tuple[int, int]
"""The number of row groups, and the number of column groups."""

LayoutSpec: TypeAlias = Literal["rows", "columns"] | Lattice | Layout
"""The forms in which callers may specify a layout."""

_FORMS = (
    "layout is 'rows' (each party holds different rows), 'columns' (different columns "
    "of the same rows), a pair (row groups, column groups), or a Layout"
)


def regular_layout(groups: Lattice) -> Layout:
    """Return the layout of a lattice; raise InvalidParameters if there cannot be one."""
    try:
        return Layout.lattice(*groups)
    except ValidationError as error:
        raise convert_validation_error(error) from None


def default_lattice(protocol: str, rows: int | None, columns: int | None) -> Lattice:
    """Fill in defaults for the numbers of row groups and column groups of a trial.

    The default is three row groups, or three column groups if the protocol takes no row
    groups, because every protocol can run with three parties.
    """
    methods = catalogue.protocol(protocol).methods
    partitionings = {kind for method in methods for kind in method.partitionings}
    by_rows = not partitionings or "horizontal" in partitionings
    columns = columns or (1 if rows != 1 and (rows or by_rows) else 3)
    if rows is None:
        rows = 3 if columns == 1 else 2 if "mixed" in partitionings else 1
    return rows, columns


def layout_for_tables(spec: LayoutSpec, n_tables: int) -> Layout:
    """Return the layout for a given number of tables.

    Raises InvalidParameters if ``spec`` is invalid, or has another number of parties.
    """
    if isinstance(spec, str):
        if spec not in {"rows", "columns"}:
            raise InvalidParameters(f"{_FORMS}, not {spec!r}.")
        return regular_layout((n_tables, 1) if spec == "rows" else (1, n_tables))
    layout = as_layout(spec)
    if len(layout.slots) != n_tables:
        raise InvalidParameters(
            f"The layout has {len(layout.slots)} slots, and there are {n_tables} tables: "
            "pass one for each slot."
        )
    return layout


def as_layout(spec: Layout | Lattice) -> Layout:
    """Return a layout unchanged, or build it from a pair; raise for anything else."""
    if isinstance(spec, Layout):
        return spec
    pair: Any = spec  # callers may pass anything
    if isinstance(pair, tuple | list) and len(pair) == 2:
        # Integral includes numpy's integers.
        are_whole = (isinstance(n, Integral) and not isinstance(n, bool) for n in pair)
        if all(are_whole) and min(pair) > 0:
            return regular_layout((int(pair[0]), int(pair[1])))
    raise InvalidParameters(f"{_FORMS}, not {spec!r}.")


def infer_layout(sources: Sequence[DataSource]) -> Layout:
    """Infer from the tables how rows and columns are split between parties.

    Tables with the same columns are split by rows, and tables without a common column
    by columns. Matrices do not name their columns: if only the numbers of rows differ,
    they are split by rows, and if only the numbers of columns differ, by columns.

    Raises InvalidParameters if the tables allow both or neither.
    """
    if len(sources) < 2:
        raise InvalidParameters("Pass the tables of two or more parties.")
    if any(isinstance(source, MatrixSource | SparseSource) for source in sources):
        widths = {len(source.columns) for source in sources}
        lengths = {source.n_rows for source in sources}
        by_rows = len(widths) == 1 and len(lengths) > 1
        by_columns = len(lengths) == 1 and len(widths) > 1
    else:
        names = [set(source.columns) for source in sources]
        by_rows = all(columns == names[0] for columns in names)
        by_columns = all(a.isdisjoint(b) for a, b in combinations(names, 2))
    if by_rows == by_columns:
        raise InvalidParameters(
            "The tables do not show whether parties hold different rows or different "
            f"columns: pass a layout. {_FORMS[0].upper()}{_FORMS[1:]}."
        )
    return layout_for_tables("rows" if by_rows else "columns", len(sources))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedFields:
    """The dictionary and preparation of each column group, if the terms set them."""

    dictionary: Sequence[Schema] | None = None
    preparation: Sequence[Preparation] | None = None

    def check_lengths(self, layout: Layout) -> None:
        """Raise InvalidParameters unless there is one entry for each column group."""
        for name in ("dictionary", "preparation"):
            parts = getattr(self, name)
            if parts is not None and len(parts) != layout.n_column_groups:
                raise InvalidParameters(
                    f"one for each of the {layout.n_column_groups} column groups is "
                    f"needed; there are {len(parts)}.",
                    field=name,
                )

    def for_group(self, group: int) -> tuple[Schema | None, Preparation | None]:
        """Return the dictionary and the preparation of one column group."""
        return (
            None if self.dictionary is None else self.dictionary[group],
            None if self.preparation is None else self.preparation[group],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PartyTables:
    """The tables of all parties, and their values as one matrix.

    columns: the names of all columns.
    has_names: whether the tables name the columns; those of matrices are ``x0 …``.
    table: float64 (n, m); the table that was split; None if each party has its own.
    ids: the ids of the table's rows; None if it has none.
    naming: the names of the id columns.
    """

    parts: simulation.Split
    columns: Sequence[str]
    has_names: bool
    fields: AgreedFields
    table: FloatArray | None = field(default=None, repr=False)
    ids: Sequence[str] | None = field(default=None, repr=False)
    naming: tuple[str, ...] = ()

    @property
    def layout(self) -> Layout:
        """Return the layout of the parties."""
        return self.parts.layout

    @cached_property
    def pooled_values(self) -> FloatArray:
        """Return the values of all tables, (n, m); NaN where no party holds a value."""
        if self.table is not None:
            return self.table
        parts = self.parts
        X = np.full((sum(map(len, parts.rows)), sum(map(len, parts.columns))), np.nan)
        for slot in self.layout.slots:
            cells = np.ix_(parts.held[slot.name], parts.columns[slot.column])
            X[cells] = matrix(parts.data[slot.name])
        return X

    def ids_of(self, slot: str) -> list[str]:
        """Return the ids of a party's rows, or their indices if the table has no ids."""
        rows = self.parts.held[slot].tolist()
        return [str(row) if self.ids is None else self.ids[row] for row in rows]


def open_party_tables(
    tables: Sequence[Any],
    layout_spec: LayoutSpec | None,
    *,
    id_column: IdColumns,
    fields: AgreedFields,
    allow: Sequence[str],
    normalise_id: Callable[[str], str],
) -> PartyTables:
    """Open the tables of parties that each have their own, in the order of the slots.

    If the tables of a column group have the same columns in different orders, all are
    read in the order of the first.

    normalise_id: returns an id in the form in which parties of a row group compare it.

    Raises InvalidData if a table cannot be read; the message begins with its number.
    Raises InvalidParameters if tables, layout and dictionaries are inconsistent.
    """
    dictionary = fields.dictionary

    def open_source(
        number: int, table: Any, group: int, columns: Sequence[str] | None = None
    ) -> DataSource:
        schema, preparation = fields.for_group(group)
        try:
            return open_table(
                table,
                id_column=id_column,
                columns=columns,
                schema=schema,
                preparation=preparation,
                allow=allow,
            )
        except InvalidData as refused:
            raise InvalidData(f"Table {number}: {refused.detail}") from None

    if layout_spec is None and dictionary is None:
        opened = [
            open_source(number, table, 0) for number, table in enumerate(tables, 1)
        ]
        layout = infer_layout(opened)
    else:
        by_dictionary: LayoutSpec = "rows" if len(dictionary or ()) == 1 else "columns"
        layout = layout_for_tables(
            by_dictionary if layout_spec is None else layout_spec, len(tables)
        )
        fields.check_lengths(layout)
        opened = [
            open_source(number, table, slot.column)
            for number, (table, slot) in enumerate(
                zip(tables, layout.slots, strict=True), 1
            )
        ]
    data = dict(zip(layout.names, opened, strict=True))
    if id_column is None:
        _check_indexes(dict(zip(layout.names, tables, strict=True)), layout)
    for number, (table, slot) in enumerate(zip(tables, layout.slots, strict=True), 1):
        first = list(data[layout.column_group(slot.column)[0]].columns)
        columns = list(data[slot.name].columns)
        is_reordered = columns != first and sorted(columns) == sorted(first)
        if is_reordered and isinstance(data[slot.name], Table):
            data[slot.name] = open_source(number, table, slot.column, first)
    names = [data[group[0]].columns for group in layout.column_groups]
    return PartyTables(
        parts=_split_by_slot(layout, data, list(map(len, names)), normalise_id),
        columns=[name for group_names in names for name in group_names],
        has_names=all(map(has_names, data.values())),
        fields=fields,
    )


def _check_indexes(tables: Mapping[str, Any], layout: Layout) -> None:
    """Raise InvalidData if tables that hold the same rows have different indexes.

    A default index (0, 1, …) is not compared with an index of other labels.
    """
    numbers = {slot: number for number, slot in enumerate(tables, 1)}
    for members in layout.row_groups:
        indexes = {
            slot: tables[slot].index
            for slot in members
            if nw.dependencies.is_pandas_dataframe(tables[slot])
        }
        for slot, other_slot in combinations(indexes, 2):
            index, other_index = indexes[slot], indexes[other_slot]
            is_default = _is_default_index(index) or _is_default_index(other_index)
            if index.equals(other_index) or (
                is_default and set(index).isdisjoint(other_index)
            ):
                continue
            raise InvalidData(
                f"Tables {numbers[slot]} and {numbers[other_slot]} hold the same rows, and "
                "their indexes differ: name the column of ids, or the index, as "
                "id_column; or remove the indexes with reset_index(drop=True) if row "
                "n of one is row n of the other."
            )


def _is_default_index(index: Any) -> bool:
    return bool(np.array_equal(index, np.arange(len(index))))


def has_names(source: DataSource) -> bool:
    """Return whether a data source names its columns."""
    return not isinstance(source, MatrixSource | SparseSource)


def _split_by_slot(
    layout: Layout,
    data: Mapping[str, DataSource],
    widths: Sequence[int],
    normalise_id: Callable[[str], str],
) -> simulation.Split:
    rows_by_slot: dict[str, IntArray] = {}
    rows: list[IntArray] = []
    begin = 0
    for members in layout.row_groups:
        members_data = {slot: data[slot] for slot in members}
        group = _number_rows(members_data, normalise_id)
        end = begin + 1 + max(int(numbers.max()) for numbers in group.values())
        rows_by_slot |= {slot: numbers + begin for slot, numbers in group.items()}
        rows.append(np.arange(begin, end))
        begin = end
    columns = np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])
    return simulation.Split(
        layout=layout, rows=rows, held=rows_by_slot, columns=columns, data=data
    )


def _number_rows(
    group: Mapping[str, DataSource], normalise_id: Callable[[str], str]
) -> dict[str, IntArray]:
    if len(group) == 1 or any(source.ids is None for source in group.values()):
        return {slot: np.arange(source.n_rows) for slot, source in group.items()}
    numbers_by_id: dict[str | tuple[str, int], int] = {}
    rows_by_slot: dict[str, IntArray] = {}
    for slot, source in group.items():
        ids: set[str] = set()
        numbers = []
        for row, name in enumerate(map(normalise_id, source.ids or ())):
            # Only the first row with an id is matched by that id.
            key = (slot, row) if name in ids else name
            ids.add(name)
            numbers.append(numbers_by_id.setdefault(key, len(numbers_by_id)))
        rows_by_slot[slot] = np.array(numbers, dtype=np.int64)
    return rows_by_slot


def split_table(
    X: FloatArray,
    columns: Sequence[str],
    fields: AgreedFields,
    layout: Layout,
    seed: int,
    *,
    has_names: bool = True,
    ids: Sequence[str] | None = None,
    naming: tuple[str, ...] = (),
) -> PartyTables:
    """Split one table between the parties; the seed shuffles its rows and columns.

    fields: at most one dictionary and one preparation, for the whole table.

    Raises InvalidParameters if there are more groups than rows or columns.
    """
    group_fields = fields_of_groups(X.shape, columns, fields, layout)
    return PartyTables(
        parts=simulation.split(
            X, layout, seed, columns, dictionary=group_fields.dictionary
        ),
        columns=columns,
        has_names=has_names,
        fields=group_fields,
        table=X,
        ids=ids,
        naming=naming,
    )


def fields_of_groups(
    shape: Sequence[int], columns: Sequence[str], agreed: AgreedFields, layout: Layout
) -> AgreedFields:
    """Split dictionary and preparation by column group, in the order of the fields.

    Raises InvalidParameters if a group would have no row, column or field to cluster.
    """
    groups = (layout.n_row_groups, layout.n_column_groups)
    for size, n_groups, axis in zip(shape, groups, ("row", "column"), strict=True):
        if size < n_groups:
            raise InvalidParameters(
                f"{size} {axis}s cannot be split into {n_groups} {axis} groups."
            )
    schema, preparation = agreed.for_group(0)
    if schema is None:
        return AgreedFields()
    fields = [schema.field(name) for name in columns]
    ends = np.linspace(0, len(fields), layout.n_column_groups + 1).round().astype(int)
    parts = [tuple(fields[begin:end]) for begin, end in pairwise(ends)]
    if not all(parts):
        raise InvalidParameters("There are more column groups than fields.")
    for number, part in enumerate(parts, 1):
        if all(field.role == "describe" for field in part):
            raise InvalidParameters(
                f"Column group {number} would have no field to cluster: change the order "
                "of the fields, or use fewer column groups."
            )
    return AgreedFields(
        dictionary=[schema.model_copy(update={"fields": part}) for part in parts],
        preparation=None
        if preparation is None
        else [
            Preparation(
                missing=preparation.missing,
                fields=tuple(
                    treatment
                    for treatment in preparation.fields
                    if treatment.name in {field.name for field in part}
                ),
            )
            for part in parts
        ],
    )

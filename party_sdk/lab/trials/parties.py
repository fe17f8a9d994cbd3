"""Which rows and columns each party of a simulated session holds, and the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from clustering_protocols import simulation
from clustering_protocols.common.errors import InvalidData, InvalidParameters
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
from party_sdk.lab.trials.layouts import Said, infer_layout, layout_of
from party_sdk.tables import IdColumns, Table, open_table

Compared = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedFields:
    """What the terms say of the fields of each column group, if they do."""

    dictionary: Sequence[Schema] | None = None
    preparation: Sequence[Preparation] | None = None

    def check(self, layout: Layout) -> None:
        """Refuse another number than column groups; :class:`InvalidParameters`."""
        for name in ("dictionary", "preparation"):
            given = getattr(self, name)
            if given is not None and len(given) != layout.n_column_groups:
                raise InvalidParameters(
                    f"{layout.n_column_groups} column groups need as many, and "
                    f"{len(given)} came.",
                    field=name,
                )

    def of(self, column: int) -> tuple[Schema | None, Preparation | None]:
        """Return what they say of the fields of one column group."""
        return (
            None if self.dictionary is None else self.dictionary[column],
            None if self.preparation is None else self.preparation[column],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Deal:
    """Which rows and columns each party holds, and the whole of it as one matrix.

    columns: the names of the whole's columns.
    named: whether the tables name them; of matrices they are ``x0 …``.
    table: float64 (n, m); what was dealt out; None where parties brought their own.
    ids: of the rows of what was dealt out, where it names them.
    naming: the columns that hold them.
    """

    parts: simulation.Split
    columns: Sequence[str]
    named: bool
    agreed: AgreedFields
    table: FloatArray | None = field(default=None, repr=False)
    ids: Sequence[str] | None = field(default=None, repr=False)
    naming: tuple[str, ...] = ()

    @property
    def layout(self) -> Layout:
        """Return which parties there are."""
        return self.parts.layout

    @cached_property
    def pooled_values(self) -> FloatArray:
        """Return all of it, (n, m); NaN where nobody holds a value."""
        if self.table is not None:
            return self.table
        parts = self.parts
        X = np.full((sum(map(len, parts.rows)), sum(map(len, parts.columns))), np.nan)
        for slot in self.layout.slots:
            place = np.ix_(parts.held[slot.name], parts.columns[slot.column])
            X[place] = matrix(parts.data[slot.name])
        return X

    def ids_of(self, slot: str) -> list[str]:
        """Return the ids of a party's rows; without any, their numbers in the table."""
        rows = self.parts.held[slot].tolist()
        return [str(row) if self.ids is None else self.ids[row] for row in rows]


def bring_tables(
    tables: Sequence[Any],
    said: Said | None,
    *,
    id_column: IdColumns,
    agreed: AgreedFields,
    allow: Sequence[str],
    compared: Compared,
) -> Deal:
    """Return the tables of parties, in the order of the slots.

    Tables of one column group that have the same columns in another order are read in
    that of the first.

    compared: returns an id in the form in which parties of a row group compare it.

    Raises InvalidData if a table cannot be read; the sentence begins with which.
    Raises InvalidParameters if tables, layout and dictionaries do not fit each other.
    """
    dictionary = agreed.dictionary
    read = partial(_open_source, id_column=id_column, allow=allow)
    if said is None and dictionary is None:
        opened = [read(*each) for each in enumerate(tables, 1)]
        layout = infer_layout(opened)
    else:
        by_dictionary: Said = "rows" if len(dictionary or ()) == 1 else "columns"
        layout = layout_of(by_dictionary if said is None else said, len(tables))
        agreed.check(layout)
        opened = [
            read(number, table, *agreed.of(slot.column))
            for number, (table, slot) in enumerate(
                zip(tables, layout.slots, strict=True), 1
            )
        ]
    data = dict(zip(layout.names, opened, strict=True))
    for number, (table, slot) in enumerate(zip(tables, layout.slots, strict=True), 1):
        first = data[layout.column_group(slot.column)[0]].columns
        own = data[slot.name]
        if isinstance(own, Table) and _is_of_another_order(own.columns, first):
            data[slot.name] = read(
                number, table, *agreed.of(slot.column), columns=list(first)
            )
    names = [data[group[0]].columns for group in layout.column_groups]
    return Deal(
        parts=_parts(layout, data, list(map(len, names)), compared),
        columns=[name for own in names for name in own],
        named=all(map(has_names, data.values())),
        agreed=agreed,
    )


def has_names(source: DataSource) -> bool:
    """Return whether a table names its columns."""
    return not isinstance(source, MatrixSource | SparseSource)


def _parts(
    layout: Layout,
    data: Mapping[str, DataSource],
    widths: Sequence[int],
    compared: Compared,
) -> simulation.Split:
    """Return which rows and columns of the whole each party holds."""
    held: dict[str, IntArray] = {}
    rows: list[IntArray] = []
    begin = 0
    for members in layout.row_groups:
        own = {slot: data[slot] for slot in members}
        group = _number_rows(own, compared)
        end = begin + 1 + max(int(numbers.max()) for numbers in group.values())
        held |= {slot: numbers + begin for slot, numbers in group.items()}
        rows.append(np.arange(begin, end))
        begin = end
    columns = np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])
    return simulation.Split(
        layout=layout, rows=rows, held=held, columns=columns, data=data
    )


def _number_rows(
    group: Mapping[str, DataSource], compared: Compared
) -> dict[str, IntArray]:
    """Return which row of a row group each row of its members is."""
    if len(group) == 1 or any(source.ids is None for source in group.values()):
        return {slot: np.arange(source.n_rows) for slot, source in group.items()}
    known: dict[str | tuple[str, int], int] = {}
    found: dict[str, IntArray] = {}
    for slot, source in group.items():
        seen: set[str] = set()
        numbers = []
        for place, name in enumerate(map(compared, source.ids or ())):
            # an id that a party has twice stands for its first row
            key = (slot, place) if name in seen else name
            seen.add(name)
            numbers.append(known.setdefault(key, len(known)))
        found[slot] = np.array(numbers, dtype=np.int64)
    return found


def _is_of_another_order(own: Sequence[str], first: Sequence[str]) -> bool:
    return list(own) != list(first) and sorted(own) == sorted(first)


def _open_source(
    number: int,
    table: Any,
    schema: Schema | None = None,
    preparation: Preparation | None = None,
    *,
    id_column: IdColumns,
    allow: Sequence[str],
    columns: Sequence[str] | None = None,
) -> DataSource:
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

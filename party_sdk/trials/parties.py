"""The tables that parties bring to a simulated session, and the whole of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from clustering_protocols import simulation
from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.data import DataSource, matrix
from clustering_protocols.errors import InvalidData, InvalidParameters
from clustering_protocols.recipe import Preparation
from clustering_protocols.schema import Schema
from clustering_protocols.terms import Layout
from party_sdk.tables import IdColumns, Table, open_table
from party_sdk.trials.layouts import Said, inferred, layout_of

Compared = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """What the terms say of the fields of each column group, if they do."""

    dictionary: Sequence[Schema] | None = None
    preparation: Sequence[Preparation] | None = None

    def check(self, layout: Layout) -> None:
        """Refuse another number than column groups; :class:`InvalidParameters`."""
        for name in ("dictionary", "preparation"):
            given = getattr(self, name)
            if given is not None and len(given) != layout.n_column_groups:
                raise InvalidParameters(
                    f"{name}: {layout.n_column_groups} column groups need as many, and "
                    f"{len(given)} came."
                )

    def of(self, column: int) -> tuple[Schema | None, Preparation | None]:
        """Return what they say of the fields of one column group."""
        return (
            None if self.dictionary is None else self.dictionary[column],
            None if self.preparation is None else self.preparation[column],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Brought:
    """The tables of all parties, and all of it as one matrix.

    Attributes
    ----------
    data : mapping of slot to DataSource
    compared : callable
        Returns an id in the form in which parties of a row group compare it.
    """

    layout: Layout
    data: Mapping[str, DataSource] = field(repr=False)
    agreed: Agreed
    compared: Compared

    @cached_property
    def parts(self) -> simulation.Split:
        """Return which rows and columns of the whole each party holds."""
        held: dict[str, IntArray] = {}
        rows: list[IntArray] = []
        begin = 0
        for row in range(self.layout.n_row_groups):
            group = self._numbered(self.layout.row_group(row))
            end = begin + 1 + max(int(numbers.max()) for numbers in group.values())
            held |= {slot: numbers + begin for slot, numbers in group.items()}
            rows.append(np.arange(begin, end))
            begin = end
        widths = [
            len(self.data[self.layout.column_group(column)[0]].columns)
            for column in range(self.layout.n_column_groups)
        ]
        columns = np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])
        return simulation.Split(
            layout=self.layout, rows=rows, held=held, columns=columns, data=self.data
        )

    @property
    def columns(self) -> list[str]:
        """Return the names of the whole's columns."""
        groups = range(self.layout.n_column_groups)
        firsts = [self.layout.column_group(column)[0] for column in groups]
        return [name for slot in firsts for name in self.data[slot].columns]

    @cached_property
    def pooled(self) -> FloatArray:
        """Return all of it, (n, m); NaN where nobody holds a value."""
        parts = self.parts
        X = np.full((sum(map(len, parts.rows)), sum(map(len, parts.columns))), np.nan)
        for slot in self.layout.slots:
            place = np.ix_(parts.held[slot.name], parts.columns[slot.column])
            X[place] = matrix(self.data[slot.name])
        return X

    def _numbered(self, group: Sequence[str]) -> dict[str, IntArray]:
        """Return which row of a row group each row of its members is."""
        ids = {slot: self.data[slot].ids for slot in group}
        if len(group) == 1 or any(own is None for own in ids.values()):
            return {slot: np.arange(self.data[slot].n_rows) for slot in group}
        known: dict[str | tuple[str, int], int] = {}
        found: dict[str, IntArray] = {}
        for slot, own in ids.items():
            seen: set[str] = set()
            numbers = []
            for place, name in enumerate(map(self.compared, own or ())):
                # an id that a party has twice stands for its first row
                key = (slot, place) if name in seen else name
                seen.add(name)
                numbers.append(known.setdefault(key, len(known)))
            found[slot] = np.array(numbers, dtype=np.int64)
        return found


def brought(
    tables: Sequence[Any],
    said: Said | None,
    *,
    id_column: IdColumns,
    agreed: Agreed,
    allow: Sequence[str],
    compared: Compared,
) -> Brought:
    """Return the tables of parties, in the order of the slots.

    Tables of one column group that have the same columns in another order are read in
    that of the first.

    Raises
    ------
    InvalidData
        If a table cannot be read; the sentence begins with which.
    InvalidParameters
        If tables, layout and dictionaries do not fit each other.
    """
    dictionary = agreed.dictionary
    read = partial(_opened, id_column=id_column, allow=allow)
    if said is None and dictionary is None:
        opened = [read(*each) for each in enumerate(tables, 1)]
        layout = inferred(opened)
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
    return Brought(layout=layout, data=data, agreed=agreed, compared=compared)


def _is_of_another_order(own: Sequence[str], first: Sequence[str]) -> bool:
    return list(own) != list(first) and sorted(own) == sorted(first)


def _opened(
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

"""Selection of the rows of a party's table that take part in a session, and their order.

The roster, the engine and the digests use only these rows. Outcomes are converted back
to the order of the party's own table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from clustering_protocols.contract import Outcome, Params
from clustering_protocols.contract.published import (
    add_participation_note,
    restore_row_order,
)
from clustering_protocols.numerics.data_source import DataSource, keep_rows, order_rows
from clustering_protocols.records.arrays import IntArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.terms.preparation import (
    check_field_order,
    find_usable_rows,
    select_clustered_columns,
)
from clustering_protocols.terms.terms import Layout, Terms


class AdmittedRows(Record):
    """Memory: the rows of a party's table that take part.

    rows: the numbers of these rows in the table, in the order of the session.
    n_rows: the number of rows of the whole table.
    """

    kind = "arrived"

    rows: Annotated[IntArray, Spec("n", low=0)]
    n_rows: int

    def put_back(self, outcome: Outcome) -> Outcome:
        """Return the outcome in the order of the party's own table.

        Rows that did not take part get the label -1; their other values are NaN.
        """
        whole = restore_row_order(outcome, self.rows, self.n_rows)
        if len(self.rows) == self.n_rows:
            return whole
        return add_participation_note(whole, len(self.rows), self.n_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedTable:
    """The part of a party's table that the session uses.

    record: the record to remember; None if all rows take part, in table order.
    """

    data: DataSource = field(repr=False)
    record: AdmittedRows | None = field(default=None, repr=False)

    @property
    def rows(self) -> IntArray | None:
        """Return the rows that take part; None stands for all rows, in table order."""
        return None if self.record is None else self.record.rows

    def put_back(self, outcome: Outcome) -> Outcome:
        """Return the outcome in the order of the party's own table."""
        return outcome if self.record is None else self.record.put_back(outcome)


def shares_rows(terms: Terms, slot: str) -> bool:
    """Return whether other parties hold the same rows as this slot."""
    layout = terms.layout
    return len(layout.row_group(layout.slot(slot).row)) > 1


def shared_row_groups(layout: Layout) -> list[tuple[str, ...]]:
    """Return the row groups that consist of two or more parties."""
    return [group for group in layout.row_groups if len(group) > 1]


def admit_table(
    terms: Terms, params: Params, slot: str, data: DataSource
) -> AdmittedTable:
    """Return the part of a party's table that the session uses.

    params: the validated parameters in the terms.
    data: the party's own table, as it was read.

    Raises InvalidData if the columns differ from those in the terms, or if the terms do
        not allow missing ids, duplicate ids or missing values that the table has.
    Raises GuardRefused if a library that the session needs is not installed.
    """
    plan, schema = terms.plan(slot), terms.dictionary_of(slot)
    if schema is not None:
        check_field_order(data, schema.names)
    clustered = select_clustered_columns(data, schema, plan)
    whole = None if plan is None else find_usable_rows(clustered, plan)
    complete = clustered if whole is None else keep_rows(clustered, whole)
    rows = params.select_rows(complete, shared=shares_rows(terms, slot))
    if whole is not None:
        rows = whole if rows is None else whole[rows]
    if rows is None:
        return AdmittedTable(data=data)
    record = AdmittedRows(rows=rows, n_rows=data.n_rows)
    return AdmittedTable(data=order_rows(data, rows), record=record)

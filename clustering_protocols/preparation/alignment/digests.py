"""Stage: check that parties are aligned, and agree on a secret order of rows.

Parties of a row group must hold the same rows in the same order, parties of a column
group the same columns. Each sends keyed digests (HMAC-SHA256 under the group's secret)
of its ordered row ids and column names; the analyst can compare them and nothing more.
Afterwards the rows of a row group travel in an order that only its members know.

| round | task → contribution |
|---|---|
| 1 | `compare-digests` → `digests` |
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, TypeVar

import numpy as np

from clustering_protocols.arrays import FloatArray, IntArray, Spec
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Exchange,
    Finish,
    Params,
    PartyContext,
    PartyRole,
    Reopen,
    Reply,
    SessionContext,
    Stage,
)
from clustering_protocols.data import DataSource
from clustering_protocols.errors import ColumnsNotAligned, CoterieError, RowsNotAligned
from clustering_protocols.preparation.secrets import Scope, group_key, group_stream
from clustering_protocols.records import Record

NAME = "alignment"

_Rows = TypeVar("_Rows", FloatArray, IntArray)


class CompareDigests(Record):
    """Task."""

    kind = "compare-digests"


class Digests(Record):
    """Contribution: keyed digests (hex) of ordered row ids and column names."""

    kind = "digests"

    rows: str
    columns: str


class RowOrder(Record):
    """Memory: the order in which this row group's rows travel.

    ``order[k]`` is the party's own row that travels at position k.
    """

    kind = "row-order"

    order: Annotated[IntArray, Spec("n", low=0)]

    def restore(self, travelled: _Rows) -> _Rows:
        """Return per-row values (n, …) in the order of the party's own rows."""
        own = np.empty_like(travelled)
        own[self.order] = travelled
        return own


class AlignmentAnalyst(AnalystRole[Params, Digests]):
    """Compares digests within each row group and each column group."""

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask everybody."""
        return Ask.everybody(session, CompareDigests())

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Digests],
    ) -> Ask | Reopen | Finish:
        """Finish, or end the session with the group that is not aligned."""
        compare(session, contributions)
        return Finish()


def compare(session: SessionContext, digests: Mapping[str, Digests]) -> None:
    """Refuse digests that differ within a row group or a column group.

    Raises
    ------
    RowsNotAligned, ColumnsNotAligned
        With the parties of the group.
    """
    layout = session.layout
    for row in range(layout.n_row_groups):
        group = layout.row_group(row)
        _compare(group, [digests[slot].rows for slot in group], RowsNotAligned)
    for column in range(layout.n_column_groups):
        group = layout.column_group(column)
        found = [digests[slot].columns for slot in group]
        _compare(group, found, ColumnsNotAligned)


def _compare(
    group: Sequence[str], digests: Sequence[str], problem: type[CoterieError]
) -> None:
    if len(set(digests)) > 1:
        raise problem(f"Compare the inputs of {', '.join(group)}.")


@dataclass(frozen=True)
class AlignmentParty(PartyRole[Params, CompareDigests]):
    """Digests its ids and names; draws the row group's secret order."""

    rows_travel: bool

    def reply(
        self, context: PartyContext, task: CompareDigests, data: DataSource
    ) -> Reply:
        """Send the digests and remember the order, if rows are to travel in one."""
        return Reply(
            contribution=digests(context, data, data.ids or [f"rows:{data.n_rows}"]),
            remember=[row_order(context, data.n_rows)] if self.rows_travel else [],
        )


def digests(context: PartyContext, data: DataSource, ids: Sequence[str]) -> Digests:
    """Return the keyed digests of ordered ids and of the names of the columns."""
    return Digests(
        rows=_digest(context, "row", ids),
        columns=_digest(context, "column", data.columns),
    )


def row_order(context: PartyContext, n_rows: int) -> RowOrder:
    """Return the secret order of n rows that the row group holds in one order."""
    order = group_stream(context, "row", "row-order").permutation(n_rows)
    return RowOrder(order=order)


def _digest(context: PartyContext, scope: Scope, names: Sequence[str]) -> str:
    """Return an HMAC over a list of texts, each after its length."""
    key = group_key(context, scope, f"alignment/{scope}")
    digest = hmac.new(key, digestmod=sha256)
    for name in names:
        encoded = name.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()


def stage(*, rows_travel: bool = True) -> Stage:
    """Return the stage; it needs the secrets of row and column groups.

    Where no rows travel there is no order to agree on.
    """
    return Stage(
        name=NAME,
        analyst=AlignmentAnalyst,
        party=lambda: AlignmentParty(rows_travel),
        exchanges=(Exchange(CompareDigests, Digests),),
    )

"""Stage: check that parties are aligned, and agree on a secret order of rows.

Parties of a row group must hold the same rows in the same order, parties of a column
group the same columns. Each sends keyed digests (HMAC-SHA256 under the group's secret)
of its ordered row ids, normalised, and of its column names; the analyst can compare
them and nothing more. The leader of a group seals its own to the other members too, so
that they need not take the analyst's word for it. Afterwards the rows of a row group
travel in an order that only its members know.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `compare-digests` → `digests` | `digests` from each group's leader |
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Final, TypeVar

import numpy as np

from clustering_protocols.common.errors import (
    ColumnsNotAligned,
    CoterieError,
    EnvelopeRefused,
    ProtocolFailed,
    RowsNotAligned,
)
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Exchange,
    Finish,
    Params,
    PartyContext,
    PartyRole,
    PeerMessage,
    Reopen,
    Reply,
    SessionContext,
    Stage,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.alignment import identifiers
from clustering_protocols.shared_stages.alignment.identifiers import Step
from clustering_protocols.shared_stages.row_selection import shares_rows
from clustering_protocols.shared_stages.secrets import (
    Scope,
    group_key,
    group_of,
    group_stream,
    leaders,
    leads,
)

NAME = "alignment"

_Rows = TypeVar("_Rows", FloatArray, IntArray)
_SCOPES: Final[tuple[Scope, ...]] = ("row", "column")


class CompareDigests(Record):
    """Task."""

    kind = "compare-digests"


class Digests(Record):
    """Contribution, envelope, memory: keyed digests (hex) of row ids and column names.

    Of rows without ids it is their number that is digested; of rows that nobody else in
    the row group holds, nothing.
    """

    kind = "digests"
    reach = "agreement"
    meaning = "Keyed digests of ids and of names of columns; no id can be read."

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

    Raises RowsNotAligned, ColumnsNotAligned: with the parties of the group.
    """
    for group in session.layout.row_groups:
        _compare(group, [digests[slot].rows for slot in group], RowsNotAligned)
    for group in session.layout.column_groups:
        found = [digests[slot].columns for slot in group]
        _compare(group, found, ColumnsNotAligned)


def _compare(
    group: Sequence[str], digests: Sequence[str], problem: type[CoterieError]
) -> None:
    if len(set(digests)) > 1:
        raise problem(f"Compare the inputs of {', '.join(group)}.")


@dataclass(frozen=True)
class AlignmentParty(PartyRole[Params, CompareDigests, Digests]):
    """Digests its ids and names; draws the row group's secret order."""

    rows_travel: bool
    normalisation: Collection[Step]

    def reply(
        self, context: PartyContext, task: CompareDigests, data: DataSource
    ) -> Reply:
        """Send the digests and remember the order, if rows are to travel in one."""
        own = digests(context, data, self._names(data))
        order = [row_order(context, data.n_rows)] if self.rows_travel else []
        return build_digest_reply(context, own, remember=order)

    def _names(self, data: DataSource) -> Iterable[str]:
        if data.ids is None:
            return [f"rows:{data.n_rows}"]
        return identifiers.all_compared(data.ids, self.normalisation)

    def receive(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[Digests]]
    ) -> Sequence[Record]:
        """Refuse to continue where a leader's digests differ."""
        check_leaders(context, {e.peer: e.content for e in envelopes})
        return ()


def build_digest_reply(
    context: PartyContext,
    own: Digests,
    *,
    remember: Sequence[Record],
    notes: Mapping[str, object] | None = None,
    asks: str = "",
) -> Reply:
    """Return the reply with a party's digests, for the analyst and for its members."""
    members = [
        slot
        for scope in _SCOPES
        for slot in group_of(context.session.layout, context.slot, scope)
        if leads(context, scope) and slot != context.slot.name
    ]
    return Reply(
        contribution=own,
        envelopes=[PeerMessage(peer=slot, content=own) for slot in members],
        awaits=leaders(context, *_SCOPES),
        remember=[own, *remember],
        notes=notes or {},
        asks=asks,
    )


def check_selected(
    context: PartyContext, envelopes: Sequence[PeerMessage[Record]]
) -> None:
    """Refuse what comes once rows are selected, but the same digests from a leader.

    Raises EnvelopeRefused for another record, and what :func:`check_leaders` raises.
    """
    told = {e.peer: e.content for e in envelopes if isinstance(e.content, Digests)}
    if len(told) < len(envelopes):
        raise EnvelopeRefused("A leader sends digests of the common rows.")
    check_leaders(context, told)


def check_leaders(context: PartyContext, told: Mapping[str, Digests]) -> None:
    """Refuse to continue with leaders that hold other rows or columns.

    told: what came in envelopes.

    Raises ProtocolFailed: the analyst saw that they differ, and continued.
    """
    own = context.recall(Digests)
    layout = context.session.layout
    for scope in _SCOPES:
        what = f"{scope}s"
        leader = group_of(layout, context.slot, scope)[0]
        if leader in told and getattr(told[leader], what) != getattr(own, what):
            raise ProtocolFailed(
                f"{leader!r} holds other {what} than this party, and the analyst continued."
            )


def digests(context: PartyContext, data: DataSource, ids: Iterable[str]) -> Digests:
    """Return the keyed digests of ordered ids and of the names of the columns."""
    shared = shares_rows(context.session.terms, context.slot.name)
    return Digests(
        # of one party's rows there is nothing to compare, and a table has millions
        rows=_digest(context, "row", ids if shared else ()),
        columns=_digest(context, "column", data.columns),
    )


def row_order(context: PartyContext, n_rows: int) -> RowOrder:
    """Return the secret order of n rows that the row group holds in one order."""
    order = group_stream(context, "row", "row-order").permutation(n_rows)
    return RowOrder(order=order)


def _digest(context: PartyContext, scope: Scope, names: Iterable[str]) -> str:
    return digest_names(group_key(context, scope, f"alignment/{scope}"), names)


def digest_names(key: bytes, names: Iterable[str]) -> str:
    """Return an HMAC-SHA256 (hex) over a list of texts, each after its length."""
    digest = hmac.new(key, digestmod=sha256)
    for name in names:
        digest.update(length_prefixed(name))
    return digest.hexdigest()


def stage(*, rows_travel: bool = True, normalisation: Collection[Step] = ()) -> Stage:
    """Return the stage; it needs the secrets of row and column groups.

    rows_travel: where no rows travel there is no order to agree on.
    normalisation: what makes two ids equal.
    """
    return Stage(
        name=NAME,
        analyst=AlignmentAnalyst,
        party=lambda: AlignmentParty(rows_travel, normalisation),
        exchanges=(Exchange(CompareDigests, Digests),),
        envelopes=(Digests,),
    )

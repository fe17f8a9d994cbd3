"""Stage: check that parties are aligned, and agree on a secret order of rows.

Parties of a row group must hold the same rows in the same order, parties of a column
group the same columns. Each sends keyed digests (HMAC-SHA256 under the group's secret)
of its normalised row ids, in order, and of its column names; the analyst can only
compare these digests. The leader of a group also seals its own to the other members, so
that they need not trust the analyst's comparison. From then on the rows of a row group
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
    EnvelopeRefused,
    GuardRefused,
    OverlapTooSmall,
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
    Reply,
    SessionContext,
    Stage,
)
from clustering_protocols.contract.published import Selection
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.alignment import identifiers
from clustering_protocols.shared_stages.alignment.identifiers import Step
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.shared_stages.row_selection import shares_rows
from clustering_protocols.shared_stages.secrets import (
    Scope,
    group_key,
    group_leaders,
    group_of,
    group_stream,
    leads_group,
)
from clustering_protocols.terms.session_risks import SMALL_OVERLAP

NAME = "alignment"

_Rows = TypeVar("_Rows", FloatArray, IntArray)
_SCOPES: Final[tuple[Scope, ...]] = ("row", "column")


class CompareDigests(Record):
    """Task."""

    kind = "compare-digests"


class Digests(Record):
    """Contribution, envelope, memory: keyed digests (hex) of row ids and column names.

    For rows without ids, the digest covers their number; for rows that no other party
    holds, it covers an empty list.
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

    def restore_own_order(self, travelled: _Rows) -> _Rows:
        """Return per-row values (n, …) in the order of the party's own rows."""
        own = np.empty_like(travelled)
        own[self.order] = travelled
        return own


class AlignmentAnalyst(AnalystRole[Params, Digests]):
    """Compares digests within each row group and each column group."""

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask everybody for digests."""
        return Ask.everybody(session, CompareDigests())

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Digests],
    ) -> Ask | Finish:
        """Finish; fail if a group is not aligned."""
        compare_digests(session, contributions)
        return Finish()


def compare_digests(session: SessionContext, digests: Mapping[str, Digests]) -> None:
    """Refuse digests that differ within a row group or a column group.

    Raises RowsNotAligned, ColumnsNotAligned, which name the parties of the group.
    """
    for group in session.layout.row_groups:
        if len({digests[slot].rows for slot in group}) > 1:
            raise RowsNotAligned(f"Compare the inputs of {', '.join(group)}.")
    for group in session.layout.column_groups:
        if len({digests[slot].columns for slot in group}) > 1:
            raise ColumnsNotAligned(f"Compare the inputs of {', '.join(group)}.")


@dataclass(frozen=True)
class AlignmentParty(PartyRole[Params, CompareDigests, Digests]):
    """Digests its ids and column names; draws the row group's secret order."""

    rows_travel: bool
    normalisation: Collection[Step]

    def reply(
        self, context: PartyContext, task: CompareDigests, data: DataSource
    ) -> Reply:
        """Send the digests; remember the secret order, if rows travel in one."""
        ids: Iterable[str] = [f"rows:{data.n_rows}"]
        if data.ids is not None:
            ids = identifiers.normalise_ids(data.ids, self.normalisation)
        own = compute_digests(context, data, ids)
        order = [draw_row_order(context, data.n_rows)] if self.rows_travel else []
        return build_digest_reply(context, own, remember=order)

    def receive(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[Digests]]
    ) -> Sequence[Record]:
        """Refuse a leader's digests that differ from the party's own."""
        check_leader_digests(context, {e.peer: e.content for e in envelopes})
        return ()


def build_digest_reply(
    context: PartyContext,
    own: Digests,
    *,
    remember: Sequence[Record],
    notes: Mapping[str, object] | None = None,
    asks: str = "",
) -> Reply:
    """Return a reply with own digests, also sealed to members of groups it leads."""
    members = [
        slot
        for scope in _SCOPES
        for slot in group_of(context.session.layout, context.slot, scope)
        if leads_group(context, scope) and slot != context.slot.name
    ]
    return Reply(
        contribution=own,
        envelopes=[PeerMessage(peer=slot, content=own) for slot in members],
        awaits=group_leaders(context, *_SCOPES),
        remember=[own, *remember],
        notes=notes or {},
        asks=asks,
    )


def check_envelopes_after_selection(
    context: PartyContext, envelopes: Sequence[PeerMessage[Record]]
) -> None:
    """Refuse envelopes once rows are selected, except equal digests from a leader.

    Raises EnvelopeRefused for other records, and the errors of :func:`check_leaders`.
    """
    contents = {e.peer: e.content for e in envelopes if isinstance(e.content, Digests)}
    if len(contents) < len(envelopes):
        raise EnvelopeRefused("A leader sends digests of the common rows.")
    check_leader_digests(context, contents)


def check_leader_digests(
    context: PartyContext, contents: Mapping[str, Digests]
) -> None:
    """Refuse digests of leaders that hold other rows or columns.

    contents: the digests in envelopes, by sender.

    Raises ProtocolFailed: the analyst must have seen the difference, yet continued.
    """
    own = context.recall(Digests)
    for scope in _SCOPES:
        name = f"{scope}s"
        leader = group_of(context.session.layout, context.slot, scope)[0]
        if leader in contents and getattr(contents[leader], name) != getattr(own, name):
            raise ProtocolFailed(
                f"{leader!r} holds other {name} than this party, and the analyst continued."
            )


def compute_digests(
    context: PartyContext, data: DataSource, ids: Iterable[str]
) -> Digests:
    """Return the keyed digests of ordered ids and of the names of the columns."""
    shared = shares_rows(context.session.terms, context.slot.name)
    return Digests(
        # rows that nobody else holds are not compared: millions of ids take time
        rows=_digest_for_group(context, "row", ids if shared else ()),
        columns=_digest_for_group(context, "column", data.columns),
    )


def draw_row_order(context: PartyContext, n_rows: int) -> RowOrder:
    """Return the secret order in which n rows of the row group travel."""
    order = group_stream(context, "row", "row-order").permutation(n_rows)
    return RowOrder(order=order)


def _digest_for_group(context: PartyContext, scope: Scope, names: Iterable[str]) -> str:
    return digest_names(group_key(context, scope, f"alignment/{scope}"), names)


def digest_names(key: bytes, names: Iterable[str]) -> str:
    """Return an HMAC-SHA256 (hex) over a list of texts, each after its length."""
    digest = hmac.new(key, digestmod=sha256)
    for name in names:
        digest.update(length_prefixed(name))
    return digest.hexdigest()


def build_stage(
    *, rows_travel: bool = True, normalisation: Collection[Step] = ()
) -> Stage:
    """Return the stage; it needs the secrets of row and column groups.

    rows_travel: whether rows travel, in an order on which the row group agrees.
    normalisation: the steps that ids go through before they are compared.
    """
    return Stage(
        name=NAME,
        analyst=AlignmentAnalyst,
        party=lambda: AlignmentParty(rows_travel, normalisation),
        exchanges=(Exchange(CompareDigests, Digests),),
        envelopes=(Digests,),
    )


# Selected rows: the common rows of a row group, whichever way they were matched.


def select_common_rows(
    context: PartyContext,
    *,
    rows: IntArray,
    n_rows: Mapping[str, int],
    ids: Sequence[str],
    data: DataSource,
    alignment: Alignment,
) -> Reply:
    """Return the digests of the common rows in the common order; remember these rows.

    If fewer rows are common than the terms expect, every operator is asked to decide.

    rows: the party's own rows, in the common order of its row group.
    n_rows: how many rows of each slot take part, as the analyst reports.
    ids: the ids of these rows, in that order; equal for the whole row group.

    Raises GuardRefused if too few rows are common.
    Raises ProtocolFailed if rows were selected before, or the numbers do not fit.
    """
    if context.memory.get(Selection) is not None:
        raise ProtocolFailed("The analyst selects rows a second time.")
    _check_row_counts(context, n_rows, len(rows), alignment.minimum_overlap)
    session = context.session
    group = session.layout.row_group(context.slot.row)
    ascending = np.sort(rows)
    positions = np.searchsorted(ascending, rows).astype(np.int64)
    travel_order = positions[draw_row_order(context, len(rows)).order]
    asks = ""
    if not context.choices.get(SMALL_OVERLAP):
        asks = _overlap_question(session, n_rows, alignment.minimum_share)
    return build_digest_reply(
        context,
        compute_digests(context, data, ids),
        remember=[
            Selection(rows=ascending, n_rows=dict(n_rows)),
            RowOrder(order=travel_order),
        ],
        notes={}
        if is_alone_in_row_group(context)
        else {"linked rows": _overlap_text(session, group, len(rows))},
        asks=asks,
    )


def is_alone_in_row_group(context: PartyContext) -> bool:
    """Return whether nobody else holds the same rows as this party."""
    return len(context.session.layout.row_group(context.slot.row)) == 1


def _check_row_counts(
    context: PartyContext,
    n_rows: Mapping[str, int],
    n_selected: int,
    minimum_overlap: int,
) -> None:
    """Refuse too few rows, and numbers that do not fit what this party selects."""
    session = context.session
    minimum = max(minimum_overlap, session.terms.guards.minimum_rows)
    if n_selected < minimum:
        raise GuardRefused(
            f"Fewer rows are common than the {minimum} that the terms require."
        )
    if set(n_rows) != set(session.slots) or any(
        not 1 <= n <= session.member(slot).n_rows for slot, n in n_rows.items()
    ):
        raise ProtocolFailed("The analyst reports numbers of rows that are impossible.")
    group = session.layout.row_group(context.slot.row)
    if {n_rows[slot] for slot in group} != {n_selected}:
        raise ProtocolFailed(
            "The analyst reports numbers of rows that differ from its selection."
        )


_STEPS = 20


def describe_overlap(n_common: int, n_smallest: int, minimum_rows: int) -> str:
    """Return the share of the smallest table that is common, in steps of 5 %.

    minimum_rows: the share is not disclosed for a table with fewer ids.
    """
    if n_smallest < minimum_rows:
        return f"an undisclosed part of a table of fewer than {minimum_rows} ids"
    percent = 100 // _STEPS * min(_STEPS * n_common // n_smallest, _STEPS - 1)
    return f"{percent} to {percent + 100 // _STEPS} % of the smallest table"


def check_overlap(
    session: SessionContext, group: tuple[str, ...], n_rows: int, minimum_overlap: int
) -> None:
    """Refuse fewer common rows of a row group than the terms require.

    Raises OverlapTooSmall, which tells the share, but no number.
    """
    minimum = max(minimum_overlap, session.terms.guards.minimum_rows)
    if n_rows < minimum:
        raise OverlapTooSmall(
            f"{', '.join(group)} have {_overlap_text(session, group, n_rows)} in "
            f"common; the terms require {minimum} rows."
        )


def _overlap_question(
    session: SessionContext, n_rows: Mapping[str, int], minimum_share: float
) -> str:
    """Return the question to every operator about row groups with few common rows."""
    sentences = [
        f"{', '.join(group[:-1])} and {group[-1]} have "
        f"{_overlap_text(session, group, n_rows[group[0]])} in common; "
        f"the terms expect {minimum_share:.0%}."
        for group in session.layout.row_groups
        if len(group) > 1
        and n_rows[group[0]] < minimum_share * _smallest_table_size(session, group)
    ]
    if not sentences:
        return ""
    return (
        f"Few rows are linked. {' '.join(sentences)} Ids may differ in form: compare "
        "them, or the session's normalisation. To continue with so few rows: --choice "
        f"{SMALL_OVERLAP}=true."
    )


def _overlap_text(session: SessionContext, group: Sequence[str], n_common: int) -> str:
    minimum = session.terms.guards.minimum_rows
    return describe_overlap(n_common, _smallest_table_size(session, group), minimum)


def _smallest_table_size(session: SessionContext, group: Sequence[str]) -> int:
    return min(session.member(slot).n_rows for slot in group)

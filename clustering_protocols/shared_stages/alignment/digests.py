"""Stage: check that parties are aligned, and agree on a secret order of rows.

The parties of a row group must hold the same rows in the same order, and the parties of
a column group must hold the same columns. Each party sends keyed digests (HMAC-SHA256
under the group's secret) of its normalised row ids, in order, and of its column names.
The analyst can only compare these digests. The leader of a group also sends its digests
to the other members in envelopes, so that they need not trust the analyst's comparison.
From then on, the rows of a row group are sent in an order that only its members know.

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
    Exchange,
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
from clustering_protocols.shared_stages.row_selection import (
    shared_row_groups,
    shares_rows,
)
from clustering_protocols.shared_stages.secrets import (
    Scope,
    group_key,
    group_leaders,
    group_of,
    group_stream,
)
from clustering_protocols.terms.session_risks import SMALL_OVERLAP

NAME = "alignment"

_Rows = TypeVar("_Rows", FloatArray, IntArray)
_SCOPES: Final[tuple[Scope, ...]] = ("row", "column")


class CompareDigests(Record):
    """Task: send the digests of your row ids and column names."""

    kind = "compare-digests"


class Digests(Record):
    """Contribution, envelope and memory: keyed digests (hex) of row ids and column names.

    If rows have no ids, ``rows`` is the digest of the number of rows. If no other party
    holds the same rows, it is the digest of an empty list.
    """

    kind = "digests"
    reach = "agreement"
    meaning = "Keyed digests of ids and of names of columns; no id can be read."

    rows: str
    columns: str


class RowOrder(Record):
    """Memory: the secret order in which the rows of this row group are sent.

    ``order[k]`` is the number of the party's row that is sent at position k.
    """

    kind = "row-order"

    order: Annotated[IntArray, Spec("n", low=0)]

    def restore_own_order(self, travelled: _Rows) -> _Rows:
        """Reorder per-row values (n, …) from the secret order to that of the table."""
        own = np.empty_like(travelled)
        own[self.order] = travelled
        return own


def compare_digests(session: SessionContext, digests: Mapping[str, Digests]) -> None:
    """Raise RowsNotAligned or ColumnsNotAligned if the digests of a group differ.

    The message names the parties of that group.
    """
    for group in session.layout.row_groups:
        if len({digests[slot].rows for slot in group}) > 1:
            raise RowsNotAligned(f"Compare the inputs of {', '.join(group)}.")
    for group in session.layout.column_groups:
        if len({digests[slot].columns for slot in group}) > 1:
            raise ColumnsNotAligned(f"Compare the inputs of {', '.join(group)}.")


@dataclass(frozen=True)
class AlignmentParty(PartyRole[Params, CompareDigests, Digests]):
    """Computes digests of ids and column names, and draws the secret order of rows."""

    rows_travel: bool
    normalisation: Collection[Step]

    def reply(
        self, context: PartyContext, task: CompareDigests, data: DataSource
    ) -> Reply:
        """Send the digests, and remember the secret order if the protocol needs one."""
        ids: Iterable[str] = [f"rows:{data.n_rows}"]
        if data.ids is not None:
            ids = identifiers.normalise_ids(data.ids, self.normalisation)
        own = compute_digests(context, data, ids)
        order = [draw_row_order(context, data.n_rows)] if self.rows_travel else []
        return build_digest_reply(context, own, remember=order)

    def receive(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[Digests]]
    ) -> Sequence[Record]:
        """Raise ProtocolFailed if a leader's digests differ from this party's."""
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
    """Return a reply that sends digests to the analyst and to the groups a party leads."""
    envelopes: list[PeerMessage] = []
    for scope in _SCOPES:
        leader, *members = group_of(context.session.layout, context.slot, scope)
        if leader == context.slot.name:
            envelopes += [PeerMessage(peer=slot, content=own) for slot in members]
    return Reply(
        contribution=own,
        envelopes=envelopes,
        awaits=group_leaders(context, *_SCOPES),
        remember=[own, *remember],
        notes=notes or {},
        asks=asks,
    )


def check_envelopes_after_selection(
    context: PartyContext, envelopes: Sequence[PeerMessage[Record]]
) -> None:
    """Check envelopes that arrive after rows were selected: only digests are allowed.

    Raises EnvelopeRefused if one holds another record, and ProtocolFailed if the
        digests of a leader differ from this party's.
    """
    contents = {e.peer: e.content for e in envelopes if isinstance(e.content, Digests)}
    if len(contents) < len(envelopes):
        raise EnvelopeRefused("A leader may send only digests of the common rows.")
    check_leader_digests(context, contents)


def check_leader_digests(
    context: PartyContext, contents: Mapping[str, Digests]
) -> None:
    """Raise ProtocolFailed if a leader's digests differ from this party's.

    The analyst compares the same digests, so if they differ, it has continued in spite
    of the difference.

    contents: mapping of sender to the digests in its envelope.
    """
    own = context.recall(Digests)
    for scope in _SCOPES:
        name = f"{scope}s"
        leader = group_of(context.session.layout, context.slot, scope)[0]
        if leader in contents and getattr(contents[leader], name) != getattr(own, name):
            raise ProtocolFailed(
                f"{leader!r} and this party have different {name}, but the analyst continued."
            )


def compute_digests(
    context: PartyContext, data: DataSource, ids: Iterable[str]
) -> Digests:
    """Return the keyed digests of the ids, in order, and of the column names."""
    shared = shares_rows(context.session.terms, context.slot.name)
    return Digests(
        # Rows that only this party holds need no comparison, which saves much time.
        rows=_digest_for_group(context, "row", ids if shared else ()),
        columns=_digest_for_group(context, "column", data.columns),
    )


def draw_row_order(context: PartyContext, n_rows: int) -> RowOrder:
    """Draw the secret order in which the n_rows rows of the row group are sent."""
    order = group_stream(context, "row", "row-order").permutation(n_rows)
    return RowOrder(order=order)


def _digest_for_group(context: PartyContext, scope: Scope, names: Iterable[str]) -> str:
    return digest_names(group_key(context, scope, f"alignment/{scope}"), names)


def digest_names(key: bytes, names: Iterable[str]) -> str:
    """Return the HMAC-SHA256 (hex) of a list of texts, each prefixed with its length."""
    digest = hmac.new(key, digestmod=sha256)
    for name in names:
        digest.update(length_prefixed(name))
    return digest.hexdigest()


def build_stage(
    *, rows_travel: bool = True, normalisation: Collection[Step] = ()
) -> Stage:
    """Return the stage, which needs the secrets of row and column groups.

    rows_travel: whether the parties of a row group agree on a secret order of rows.
    normalisation: the steps that are applied to ids before they are compared.
    """
    return Stage.relaying(
        Exchange(CompareDigests, Digests),
        check=compare_digests,
        name=NAME,
        party=lambda: AlignmentParty(rows_travel, normalisation),
        envelopes=(Digests,),
    )


# Selection of linked rows


def select_common_rows(
    context: PartyContext,
    *,
    rows: IntArray,
    n_rows: Mapping[str, int],
    ids: Sequence[str],
    data: DataSource,
    alignment: Alignment,
) -> Reply:
    """Select the common rows of a party, and reply with their digests.

    The reply also remembers the selection. If any row group has a smaller proportion of
    common rows than the terms expect, the reply asks the operator whether to continue.

    rows: the numbers of the party's common rows, in the common order of its row group.
    n_rows: the number of participating rows of each slot, as reported by the analyst.
    ids: the ids of these rows in the same order, which are equal for all members; empty
        if rows are linked by match keys.

    Raises GuardRefused if fewer rows are common than the terms require.
    Raises ProtocolFailed if rows were already selected, or if ``n_rows`` is impossible
        or does not match ``rows``.
    """
    if context.memory.get(Selection) is not None:
        raise ProtocolFailed("The analyst selects rows a second time.")
    _check_row_counts(context, n_rows, len(rows), alignment.minimum_overlap)
    session = context.session
    group = own_row_group(context)
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


def own_row_group(context: PartyContext) -> tuple[str, ...]:
    """Return the slots that hold the same rows as this party, including its own."""
    return context.session.layout.row_group(context.slot.row)


def is_alone_in_row_group(context: PartyContext) -> bool:
    """Return whether this party is the only one in its row group."""
    return len(own_row_group(context)) == 1


def _check_row_counts(
    context: PartyContext,
    n_rows: Mapping[str, int],
    n_selected: int,
    minimum_overlap: int,
) -> None:
    """Raise if too few rows are common, or if the reported numbers are inconsistent.

    A party that is alone in its row group has no rows in common with others.
    """
    session = context.session
    minimum = max(minimum_overlap, session.terms.guards.minimum_rows)
    if n_selected < minimum and not is_alone_in_row_group(context):
        raise GuardRefused(
            f"Fewer rows are common than the {minimum} that the terms require."
        )
    if set(n_rows) != set(session.slots) or any(
        not 1 <= n <= session.member(slot).n_rows for slot, n in n_rows.items()
    ):
        raise ProtocolFailed("The analyst reports numbers of rows that are impossible.")
    group = own_row_group(context)
    if {n_rows[slot] for slot in group} != {n_selected}:
        raise ProtocolFailed(
            "The analyst reports numbers of rows that differ from its selection."
        )


_STEPS = 20


def describe_overlap(n_common: int, n_smallest: int, minimum_rows: int) -> str:
    """Describe the proportion of the smallest table that is common, as a range of 5 %.

    minimum_rows: the range is not disclosed if the smallest table has fewer rows.
    """
    if n_smallest < minimum_rows:
        return f"an undisclosed part of a table of fewer than {minimum_rows} ids"
    percent = 100 // _STEPS * min(_STEPS * n_common // n_smallest, _STEPS - 1)
    return f"{percent} to {percent + 100 // _STEPS} % of the smallest table"


def check_overlap(
    session: SessionContext, group: tuple[str, ...], n_rows: int, minimum_overlap: int
) -> None:
    """Raise OverlapTooSmall if a row group has fewer common rows than the terms require.

    The message states the proportion of common rows, but not their number.
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
    """Return a question about row groups with few common rows, or an empty string."""
    sentences = [
        f"{', '.join(group[:-1])} and {group[-1]} have "
        f"{_overlap_text(session, group, n_rows[group[0]])} in common; "
        f"the terms expect {minimum_share:.0%}."
        for group in shared_row_groups(session.layout)
        if n_rows[group[0]] < minimum_share * _smallest_table_size(session, group)
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

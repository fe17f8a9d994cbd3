"""A party selects the common rows of its row group, whichever way they were found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from clustering_protocols.common.errors import (
    GuardRefused,
    OverlapTooSmall,
    ProtocolFailed,
)
from clustering_protocols.contract import PartyContext, Reply, SessionContext
from clustering_protocols.contract.published import Selection
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.alignment.digests import (
    RowOrder,
    build_digest_reply,
    digests,
    row_order,
)
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.session_risks import SMALL_OVERLAP


def select_common(
    context: PartyContext,
    *,
    rows: IntArray,
    n_rows: Mapping[str, int],
    ids: Sequence[str],
    data: DataSource,
    alignment: Alignment,
    notes: Mapping[str, object] | None = None,
) -> Reply:
    """Return the digest of the common rows in canonical order; keep their numbers.

    Every operator is asked where fewer are common than the terms expect.

    rows: the party's own rows, in the order that all of its row group find.
    n_rows: how many rows of each slot take part, as the analyst tells.
    ids: what all of the row group know of these rows alike, in that order.
    notes: what else the operator reads before these rows are used.

    Raises GuardRefused if there are too few.
    Raises ProtocolFailed if rows were selected before, or numbers do not fit.
    """
    if context.memory.get(Selection) is not None:
        raise ProtocolFailed("The analyst selects rows a second time.")
    _check_numbers(context, n_rows, len(rows), alignment.minimum_overlap)
    ascending = np.sort(rows)
    canonical = np.searchsorted(ascending, rows).astype(np.int64)
    travelling = canonical[row_order(context, len(rows)).order]
    return build_digest_reply(
        context,
        digests(context, data, ids),
        remember=[
            Selection(rows=ascending, n_rows=dict(n_rows)),
            RowOrder(order=travelling),
        ],
        notes={**_describe_linked_rows(context, len(rows)), **(notes or {})},
        asks=""
        if context.choices.get(SMALL_OVERLAP)
        else question(
            list(small_overlaps(context.session, n_rows, alignment.minimum_share))
        ),
    )


def is_alone(context: PartyContext) -> bool:
    """Return whether nobody else holds the same rows as this party."""
    return len(context.session.layout.row_group(context.slot.row)) == 1


def _describe_linked_rows(context: PartyContext, n_common: int) -> dict[str, object]:
    """Return how many rows are linked, as it is told before they are used."""
    if is_alone(context):
        return {}
    session = context.session
    group = session.layout.row_group(context.slot.row)
    smallest = min(session.member(slot).n_rows for slot in group)
    least = session.terms.guards.minimum_rows
    return {"linked rows": told_share(n_common, smallest, least)}


def _check_numbers(
    context: PartyContext,
    n_rows: Mapping[str, int],
    n_selected: int,
    minimum_overlap: int,
) -> None:
    """Refuse too few rows, and numbers that do not fit what this party selects."""
    session = context.session
    needed = max(minimum_overlap, session.terms.guards.minimum_rows)
    if n_selected < needed:
        raise GuardRefused(
            f"Fewer rows are common than the terms ask for, which is {needed}."
        )
    if set(n_rows) != set(session.slots) or any(
        not 1 <= told <= session.member(slot).n_rows for slot, told in n_rows.items()
    ):
        raise ProtocolFailed("The analyst reports numbers of rows that cannot be.")
    group = session.layout.row_group(context.slot.row)
    if {n_rows[slot] for slot in group} != {n_selected}:
        raise ProtocolFailed(
            "The analyst reports other numbers of rows than it selects."
        )


_STEPS = 20


def told_share(n_common: int, n_smallest: int, minimum_rows: int) -> str:
    """Return the share of the smallest table that is common, in steps of 5 %.

    minimum_rows: of a table of fewer ids no share is told.
    """
    if n_smallest < minimum_rows:
        return f"a part that is not told of a table of fewer than {minimum_rows} ids"
    least = 100 // _STEPS * min(_STEPS * n_common // n_smallest, _STEPS - 1)
    return f"{least} to {least + 100 // _STEPS} % of the smallest table"


def check_overlap(
    session: SessionContext, group: tuple[str, ...], n_rows: int, minimum_overlap: int
) -> None:
    """Refuse fewer common rows of a row group than the terms ask for.

    Raises OverlapTooSmall: with a share, and no number.
    """
    least = session.terms.guards.minimum_rows
    needed = max(minimum_overlap, least)
    if n_rows < needed:
        smallest = min(session.member(slot).n_rows for slot in group)
        raise OverlapTooSmall(
            f"{', '.join(group)} have {told_share(n_rows, smallest, least)} in "
            f"common; the terms ask for {needed} rows."
        )


def small_overlaps(
    session: SessionContext, n_rows: Mapping[str, int], minimum_share: float
) -> Iterator[str]:
    """Yield what to ask of the row groups with fewer common rows than expected.

    n_rows: how many rows of each slot take part.
    """
    least = session.terms.guards.minimum_rows
    for group in session.layout.row_groups:
        if len(group) == 1:
            continue
        smallest = min(session.member(slot).n_rows for slot in group)
        common = n_rows[group[0]]
        if common < minimum_share * smallest:
            yield (
                f"{', '.join(group[:-1])} and {group[-1]} have {told_share(common, smallest, least)} in common; "
                f"the terms expect {minimum_share:.0%}."
            )


def question(found: list[str]) -> str:
    """Return what every operator is asked before any data are sent."""
    if not found:
        return ""
    return (
        f"Few rows are linked. {' '.join(found)} Ids may be written in other ways: compare "
        "them, or the session's normalisation. To continue with so few rows: --choice "
        f"{SMALL_OVERLAP}=true."
    )

"""A party selects the common rows of its row group, whichever way they were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
) -> Reply:
    """Return the digest of the common rows in canonical order; keep their numbers.

    Every operator is asked where fewer are common than the terms expect.

    rows: the party's own rows, in the order that all of its row group find.
    n_rows: how many rows of each slot take part, as the analyst tells.
    ids: what all of the row group know of these rows alike, in that order.

    Raises GuardRefused if there are too few.
    Raises ProtocolFailed if rows were selected before, or numbers do not fit.
    """
    if context.memory.get(Selection) is not None:
        raise ProtocolFailed("The analyst selects rows a second time.")
    _check_numbers(context, n_rows, len(rows), alignment.minimum_overlap)
    session = context.session
    group = session.layout.row_group(context.slot.row)
    notes = {"linked rows": _share_of(session, group, len(rows))}
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
        notes={} if is_alone(context) else notes,
        asks=""
        if context.choices.get(SMALL_OVERLAP)
        else question(session, n_rows, alignment.minimum_share),
    )


def is_alone(context: PartyContext) -> bool:
    """Return whether nobody else holds the same rows as this party."""
    return len(context.session.layout.row_group(context.slot.row)) == 1


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
    needed = max(minimum_overlap, session.terms.guards.minimum_rows)
    if n_rows < needed:
        raise OverlapTooSmall(
            f"{', '.join(group)} have {_share_of(session, group, n_rows)} in "
            f"common; the terms ask for {needed} rows."
        )


def question(
    session: SessionContext, n_rows: Mapping[str, int], minimum_share: float
) -> str:
    """Return what every operator is asked of row groups with few common rows, if any.

    n_rows: how many rows of each slot take part.
    """
    found = [
        f"{', '.join(group[:-1])} and {group[-1]} have "
        f"{_share_of(session, group, n_rows[group[0]])} in common; "
        f"the terms expect {minimum_share:.0%}."
        for group in session.layout.row_groups
        if len(group) > 1
        and n_rows[group[0]] < minimum_share * _n_smallest(session, group)
    ]
    if not found:
        return ""
    return (
        f"Few rows are linked. {' '.join(found)} Ids may be written in other ways: compare "
        "them, or the session's normalisation. To continue with so few rows: --choice "
        f"{SMALL_OVERLAP}=true."
    )


def _share_of(session: SessionContext, group: Sequence[str], n_common: int) -> str:
    least = session.terms.guards.minimum_rows
    return told_share(n_common, _n_smallest(session, group), least)


def _n_smallest(session: SessionContext, group: Sequence[str]) -> int:
    return min(session.member(slot).n_rows for slot in group)

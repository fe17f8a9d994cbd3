"""How many rows are common, as operators are told before they accept it.

An exact number is a membership oracle: who brings one id more than last time reads
whether the others know it. So a share is told, in steps of a twentieth of the smallest
table, and of a table of few ids none at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clustering_protocols.common.errors import OverlapTooSmall
from clustering_protocols.contract import SessionContext
from clustering_protocols.terms.session_risks import SMALL_OVERLAP

MINIMUM_SHARE = 0.8
_STEPS = 20


def told_share(n_common: int, n_smallest: int, minimum_rows: int) -> str:
    """Return the share of the smallest table that is common, in steps of 5 %.

    minimum_rows: of a table of fewer ids no share is told.
    """
    if n_smallest < minimum_rows:
        return f"a part that is not told of a table of fewer than {minimum_rows} ids"
    return say_share(least_share(n_common, n_smallest))


def least_share(n_common: int, n_smallest: int) -> int:
    """Return the share of the smallest table that is common, in percent, rounded down."""
    return 100 // _STEPS * min(_STEPS * n_common // n_smallest, _STEPS - 1)


def say_share(least: int) -> str:
    """Return the step of a share in words."""
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
                f"{_name_group(group)} have {told_share(common, smallest, least)} in common; "
                f"the terms expect {minimum_share:.0%}."
            )


def _name_group(group: tuple[str, ...]) -> str:
    return f"{', '.join(group[:-1])} and {group[-1]}"


def question(found: list[str]) -> str:
    """Return what every operator is asked before any data are sent."""
    if not found:
        return ""
    return (
        f"Few rows are linked. {' '.join(found)} Ids may be written in other ways: compare "
        "them, or the session's normalisation. To continue with so few rows: --choice "
        f"{SMALL_OVERLAP}=true."
    )

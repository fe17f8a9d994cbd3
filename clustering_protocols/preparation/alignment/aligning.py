"""How the parties of a row group come to hold the same rows, in the same order.

A protocol in which rows of one group lie with several parties derives its parameters
from :class:`~.params.AlignedParams` and asks :func:`check`, :func:`risks` and
:func:`stages`. Each party sorts its rows by their ids at home, rows are taken by their
position, or they are aligned in the session by private set intersection
(:mod:`.intersection`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from clustering_protocols.contract import Stage
from clustering_protocols.errors import InvalidParameters
from clustering_protocols.preparation.alignment.params import AlignedParams
from clustering_protocols.terms import Layout

_BY_POSITION: Final = "rows-by-position"
_OF_INTERSECTION: Final[Mapping[str, str]] = {
    "intersection-shows-sizes": (
        "The analyst learns how many ids each party of a row group has and how many are "
        "common; of three parties and more also how many each two have in common."
    ),
    "members-learn-common-rows": (
        "Each party of your row group learns which of its rows all others hold too."
    ),
    "members-can-guess-ids": (
        "A party of your row group can put ids of people it does not know in place of "
        "its own, as many as the rows with which it joined, and learns which of them "
        "all others hold. Your policy caps that number as a multiple of your rows."
    ),
    "first-slot-with-analyst-can-guess-ids": (
        "The leader (first party) of your row group holds the key under which ids are "
        "compared: together with the analyst it can test any number of guessed ids."
    ),
}

RISKS: Final[Mapping[str, str]] = {
    **_OF_INTERSECTION,
    _BY_POSITION: (
        "Rows are taken by their position: nothing checks that row i is the same person "
        "in all tables of your row group. Where a table is sorted otherwise, the labels "
        "are of people who do not exist."
    ),
}
"""Sentences of the risk codes that an alignment may bring."""


def check(params: AlignedParams, layout: Layout) -> None:
    """Refuse an intersection where every row group has one slot.

    Raises
    ------
    InvalidParameters
    """
    if params.selects_rows and not _shared(layout):
        raise InvalidParameters(
            f"alignment.method {params.alignment.method!r} needs a row group of two "
            "parties: here nobody shares rows with another."
        )


def risks(params: AlignedParams, layout: Layout) -> list[str]:
    """Return the risk codes that an alignment brings: none where nobody shares rows."""
    if not _shared(layout):
        return []
    if params.alignment.method == "position":
        return [_BY_POSITION]
    return list(_OF_INTERSECTION) if params.selects_rows else []


def stages(params: AlignedParams, *, rows_travel: bool = True) -> Sequence[Stage]:
    """Return the stages that align rows; they need the secrets of all groups.

    Where no rows travel, every row group has one slot, and nothing to intersect.
    """
    # not above: the catalogue reads risks, and no stage is built for that
    if params.selects_rows:
        from clustering_protocols.preparation.alignment import intersection

        return (intersection.stage(params.alignment),)
    from clustering_protocols.preparation.alignment import digests

    steps = params.alignment.normalisation
    return (digests.stage(rows_travel=rows_travel, normalisation=steps),)


def _shared(layout: Layout) -> bool:
    rows = range(layout.n_row_groups)
    return any(len(layout.row_group(row)) > 1 for row in rows)

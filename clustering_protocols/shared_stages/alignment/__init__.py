"""Alignment: the parties of a row group find common rows and one order for them.

A protocol whose row groups span several parties derives its parameters from
:class:`~.params.AlignedParams` and calls :func:`check`, :func:`risks` and
:func:`stage`. Either each party sorts its rows by their ids at home, or rows are
matched by position, or the session finds common rows: by private set intersection
(:mod:`.intersection`) or by match keys (:mod:`.linkage`).
"""

from __future__ import annotations

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import Stage
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.shared_stages.row_selection import shares_any_rows
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.terms import Layout


def check_rows_are_shared(params: AlignedParams, layout: Layout) -> None:
    """Refuse an intersection of rows that nobody shares.

    Raises InvalidParameters.
    """
    if params.selects_rows and not shares_any_rows(layout):
        raise InvalidParameters(
            f"alignment.method {params.alignment.method!r} needs a row group of two "
            "parties: here no two parties share rows."
        )


def risk_codes(params: AlignedParams, layout: Layout) -> list[str]:
    """Return the risk codes of an alignment; none if no two parties share rows."""
    if not shares_any_rows(layout):
        return []
    if params.alignment.method == "position":
        return [session_risks.BY_POSITION]
    if params.alignment.match_keys:
        return [session_risks.LINKED_PEOPLE, session_risks.GUESSED_PEOPLE]
    if params.selects_rows:
        return [session_risks.COMMON_IDS, session_risks.GUESSED_IDS]
    return []


def build_stage(
    params: AlignedParams, layout: Layout, *, rows_travel: bool = True
) -> Stage:
    """Return the stage that aligns rows; it needs the secrets of row and column groups.

    There is one for rows that the terms declare to be the same, one for common ids and
    one for match keys; each ends with digests that must be equal within a group.

    rows_travel: whether parties agree on a secret order of rows; if not, every row
        group has one slot, and there is nothing to intersect.
    """
    # imported late: the catalogue imports this module for risks alone, builds no stage
    if params.alignment.match_keys:
        from clustering_protocols.shared_stages.alignment import linkage

        return linkage.build_stage(params.alignment, layout)
    if params.selects_rows:
        from clustering_protocols.shared_stages.alignment import intersection

        return intersection.build_stage(params.alignment)
    from clustering_protocols.shared_stages.alignment import digests

    return digests.build_stage(
        rows_travel=rows_travel, normalisation=params.alignment.normalisation
    )

"""Alignment: the parties of a row group agree on their common rows and on their order.

A protocol whose row groups span several parties derives its parameters from
:class:`~.params.AlignedParams` and calls :func:`check_rows_are_shared`,
:func:`risk_codes` and :func:`build_stage`. There are three methods: each party sorts
its rows by their ids before the session; rows are matched by position; or the session
itself finds the common rows, by ids or by match keys (:mod:`.linkage`).
"""

from __future__ import annotations

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import Stage
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.shared_stages.row_selection import shared_row_groups
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.terms import Layout


def check_rows_are_shared(params: AlignedParams, layout: Layout) -> None:
    """Raise InvalidParameters if rows are to be selected but no two parties share any."""
    if params.selects_rows and not shared_row_groups(layout):
        raise InvalidParameters(
            f"alignment.method {params.alignment.method!r} needs a row group of two "
            "parties: here no two parties share rows."
        )


def risk_codes(params: AlignedParams, layout: Layout) -> list[str]:
    """Return the risk codes of the alignment; empty if no two parties share rows."""
    if not shared_row_groups(layout):
        return []
    if params.alignment.method == "position":
        return [session_risks.BY_POSITION]
    if params.alignment.match_keys:
        return [session_risks.LINKED_PEOPLE, session_risks.GUESSED_PEOPLE]
    if params.selects_rows:
        return [session_risks.COMMON_IDS, session_risks.GUESSED_PEOPLE]
    return []


def build_stage(
    params: AlignedParams, layout: Layout, *, rows_travel: bool = True
) -> Stage:
    """Return the stage that aligns rows, chosen by the method in the parameters.

    The stage needs the secrets of row and column groups. It ends when all parties of a
    group have sent equal digests.

    rows_travel: whether the parties agree on a secret order of rows. Pass False only if
        every row group has a single slot, so that there is nothing to link.
    """
    # Imported here because the catalogue imports this module only for its risk codes.
    if params.selects_rows:
        from clustering_protocols.shared_stages.alignment import linkage

        return linkage.build_stage(params.alignment, layout)
    from clustering_protocols.shared_stages.alignment import digests

    return digests.build_stage(
        rows_travel=rows_travel, normalisation=params.alignment.normalisation
    )

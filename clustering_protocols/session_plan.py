"""A session before it opens: the protocol's own checks of a roster, on planned sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clustering_protocols import catalogue, session_terms
from clustering_protocols.contract import Params, SessionContext
from clustering_protocols.terms.agreements import Agreement, Member
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout, read_terms


def check_planned(
    params: Params,
    layout: Layout,
    *,
    rows: int,
    widths: Sequence[int],
    evaluation: Evaluation | None = None,
) -> None:
    """Refuse sizes that the protocol would refuse once all parties have joined.

    rows: of all parties together, spread evenly over the row groups.
    widths: columns of each column group.

    Raises ProtocolFailed, InvalidParameters: with what a session of these sizes would
        end with.
    """
    name = catalogue.name_of(params)
    text = session_terms.draw_up(
        "planned",
        session_terms.build_request(params, layout, evaluation=evaluation, seed=0),
        simulated=True,
    )
    heights = spread(rows, layout.n_row_groups)
    planned: Any = Member.model_construct  # nobody signs a plan
    roster = tuple(
        planned(
            slot=slot.name,
            n_rows=max(1, heights[slot.row]),
            n_columns=max(1, widths[slot.column]),
        )
        for slot in layout.slots
    )
    session: SessionContext[Params] = SessionContext(
        agreement=Agreement.model_construct(terms=text.decode(), roster=roster),
        agreement_digest="",
        terms=read_terms(text),
        params=params,
        runs=session_terms.runs_of(params, evaluation),
    )
    catalogue.protocol(name).check_roster(session)


def spread(total: int, groups: int) -> list[int]:
    """Return a number in so many parts that differ by at most one."""
    each, more = divmod(total, groups)
    return [each + (group < more) for group in range(groups)]

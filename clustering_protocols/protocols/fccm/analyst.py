"""The analyst role: adds up shares and returns totals until no start is under way.

| task → contribution |
|---|
| `add` → `share`, once per iteration and repeat, and once more |
| `tell` → `told` |
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import AnalystRole, Ask, Finish, narrow_all
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_tagged_shares

from . import messages
from .params import CoClustering, FccmSession
from .site_state import n_words

Contributions = Mapping[str, Record]


class FccmAnalyst(AnalystRole[CoClustering, Record, messages.SumsState]):
    """Adds up shares that it cannot read; the sites decide when the iteration ends."""

    state = messages.SumsState

    def start(self, session: FccmSession) -> Ask | Finish:
        """Ask all sites for their shares of the first sums."""
        lanes = list(range(session.params.n_init))
        state = messages.SumsState(
            number=1, lanes=lanes, telling=False, tolerances=np.empty(0)
        )
        no_words = np.empty(0, dtype=np.uint64)
        task = messages.Add(number=1, lanes=lanes, overflowed=[], total=no_words)
        return _ask(session, state, task)

    def step(
        self,
        session: FccmSession,
        state: messages.SumsState,
        contributions: Contributions,
    ) -> Ask | Finish:
        """Return the task for the next sums or for the cluster sizes, or the result."""
        if state.telling:
            return _finish_session(session, state, contributions)
        shares = narrow_all(messages.SiteShare, contributions)
        leader = shares[session.slots[0]]
        moved = state.tolerances
        if leader.moved is not None and leader.n_iterations > len(moved):
            moved = np.append(moved, leader.moved)
        total = add_tagged_shares(share.words for share in shares.values())
        lanes = leader.under_way
        overflowed = sorted({lane for s in shares.values() for lane in s.overflows})
        if lanes is None or not {*lanes, *overflowed} <= set(state.lanes):
            raise ProtocolFailed("A site names starts that are not under way.")
        number, kind = state.number + 1, messages.Add if lanes else messages.ReportSizes
        task = kind(
            number=number,
            lanes=lanes,
            overflowed=overflowed,
            total=total[:0] if overflowed else total,
        )
        state = messages.SumsState(
            number=number if lanes else 0,
            lanes=lanes,
            telling=not lanes,
            tolerances=moved,
        )
        return _ask(session, state, task)


def _ask(session: FccmSession, state: messages.SumsState, task: Record) -> Ask:
    dims: dict[str, dict[str, int]] = {}
    if not state.telling:
        n_rows = session.n_rows(session.slots[0])
        words = n_words(session.params, n_rows, len(state.lanes))
        dims = {slot: {"words": words} for slot in session.slots}
    progress = {
        "updates": len(state.tolerances),
        "of_at_most": session.params.max_iter,
        "moved": [float(moved) for moved in state.tolerances],
    }
    return Ask.to_everybody(session, task, state=state, dims=dims, progress=progress)


def _finish_session(
    session: FccmSession, state: messages.SumsState, contributions: Contributions
) -> Finish:
    reports = narrow_all(messages.SizeReport, contributions)
    if len({report.digest for report in reports.values()}) > 1:
        raise ProtocolFailed("The sites do not agree on the sizes of the clusters.")
    leader = reports[session.slots[0]]
    fields = messages.PublishedResult.model_fields
    published = {name: getattr(leader, name) for name in fields}
    return Finish.with_results(
        dict.fromkeys(session.slots, messages.Done()),
        summary=messages.Summary(**published, tolerances=state.tolerances),
        figures=leader.figures,
        labelled_at_home=True,
    )

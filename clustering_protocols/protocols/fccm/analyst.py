"""The analyst role: adds up, hands totals back, until no start is under way.

| task → contribution |
|---|
| `add` → `share`, once per iteration and repeat, and once more |
| `tell` → `told` |
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import AnalystRole, Ask, Finish, Reopen, all_of
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_tagged

from . import messages
from .params import CoClustering, FccmSession
from .site_state import n_words

Given = Mapping[str, Record]


class FccmAnalyst(AnalystRole[CoClustering, Record, messages.SumsState]):
    """Runs iterations that it cannot follow; the sites know when they are done."""

    state = messages.SumsState

    def start(self, session: FccmSession) -> Ask | Finish:
        """Ask for the first sums."""
        every = list(range(session.params.n_init))
        first = messages.SumsState(
            number=1, lanes=every, telling=False, tolerances=np.empty(0)
        )
        nothing = np.empty(0, dtype=np.uint64)
        task = messages.Add(number=1, lanes=every, overflowed=[], total=nothing)
        return _ask(session, first, task)

    def step(
        self, session: FccmSession, state: messages.SumsState, contributions: Given
    ) -> Ask | Reopen | Finish:
        """Return the next sums, the question for sizes, or the end."""
        if state.telling:
            return _finish_session(session, state, contributions)
        shares = all_of(messages.SiteShare, contributions)
        leader = shares[session.slots[0]]
        moved = state.tolerances
        if leader.moved is not None and leader.n_iterations > len(moved):
            moved = np.append(moved, leader.moved)
        total = add_tagged(share.words for share in shares.values())
        said = {lane for share in shares.values() for lane in share.overflows}
        overflowed, lanes = sorted(said), leader.under_way
        if lanes is None or not {*lanes, *overflowed} <= set(state.lanes):
            raise ProtocolFailed("A site speaks of starts that are not under way.")
        number, kind = state.number + 1, messages.Add if lanes else messages.ReportSizes
        task = kind(
            number=number,
            lanes=lanes,
            overflowed=overflowed,
            total=total[:0] if overflowed else total,
        )
        if isinstance(task, messages.ReportSizes):
            return _ask_tell(session, moved, task)
        following = messages.SumsState(
            number=number, lanes=lanes, telling=False, tolerances=moved
        )
        return _ask(session, following, task)


def _ask(session: FccmSession, now: messages.SumsState, task: Record) -> Ask:
    params = session.params
    n_rows = session.n_rows(session.slots[0])
    words = n_words(params, n_rows, len(now.lanes))
    return Ask.everybody(
        session,
        task,
        state=now,
        dims={slot: {"words": words} for slot in session.slots},
        progress=_progress(session, now),
    )


def _ask_tell(
    session: FccmSession, moved: FloatArray, task: messages.ReportSizes
) -> Ask:
    now = messages.SumsState(number=0, lanes=[], telling=True, tolerances=moved)
    return Ask.everybody(session, task, state=now, progress=_progress(session, now))


def _progress(session: FccmSession, now: messages.SumsState) -> dict[str, object]:
    return {
        "updates": len(now.tolerances),
        "of_at_most": session.params.max_iter,
        "moved": [float(each) for each in now.tolerances],
    }


def _finish_session(
    session: FccmSession, now: messages.SumsState, contributions: Given
) -> Finish:
    told = all_of(messages.SizeReport, contributions)
    leader = told[session.slots[0]]
    if len({each.digest for each in told.values()}) > 1:
        raise ProtocolFailed("The sites do not agree on the sizes of the clusters.")
    shown = dict(leader)
    del shown["digest"]
    figures = shown.pop("figures")
    summary = messages.Summary(**shown, tolerances=now.tolerances)
    done = messages.Done()
    results = dict.fromkeys(session.slots, done)
    return Finish.with_results(
        results, summary=summary, figures=figures, labelled_at_home=True
    )

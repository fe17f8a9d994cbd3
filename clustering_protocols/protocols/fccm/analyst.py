"""The analyst role: adds up, hands totals back, until the leader says stop.

| task → contribution |
|---|
| `add` → `share`, once per iteration and repeat, and once more |
| `tell` → `told` |
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.arrays import FloatArray
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Reopen,
    Run,
    all_of,
)
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.records import Record
from clustering_protocols.secrecy.masks import add_tagged

from . import messages
from .params import CoClustering, FccmSession
from .party import n_words

Given = Mapping[str, Record]


class FccmAnalyst(AnalystRole[CoClustering, Record, messages.Adding]):
    """Runs iterations that it cannot follow; the sites know when they are done."""

    state = messages.Adding

    def start(self, session: FccmSession) -> Ask | Finish:
        """Ask for the first sums."""
        first = messages.Adding(number=1, telling=False, tolerances=np.empty(0))
        nothing = np.empty(0, dtype=np.uint64)
        return _ask(
            session, first, messages.Add(number=1, overflowed=False, total=nothing)
        )

    def step(
        self, session: FccmSession, state: messages.Adding, contributions: Given
    ) -> Ask | Reopen | Finish:
        """Return the next sums, the question for sizes, or the end."""
        if state.telling:
            return _told(session, state, contributions)
        shares = all_of(messages.Share, contributions)
        leader = shares[session.slots[0]]
        moved = state.tolerances
        if leader.moved is not None and leader.n_iterations > len(moved):
            moved = np.append(moved, leader.moved)
        overflowed = any(share.overflows for share in shares.values())
        total = add_tagged(share.words for share in shares.values())
        total = total[:0] if overflowed else total
        number = state.number + 1
        if leader.stop:
            task = messages.Tell(number=number, overflowed=overflowed, total=total)
            return _ask_tell(session, moved, task)
        following = messages.Adding(number=number, telling=False, tolerances=moved)
        add = messages.Add(number=number, overflowed=overflowed, total=total)
        return _ask(session, following, add)


def _ask(session: FccmSession, now: messages.Adding, task: Record) -> Ask:
    params = session.params
    n_rows = session.n_rows(session.slots[0])
    words = n_words(params.is_global, n_rows, params.n_clusters)
    return Ask.everybody(
        session,
        task,
        state=now,
        dims={slot: {"words": words} for slot in session.slots},
        progress=_progress(session, now),
    )


def _ask_tell(session: FccmSession, moved: FloatArray, task: messages.Tell) -> Ask:
    now = messages.Adding(number=0, telling=True, tolerances=moved)
    return Ask.everybody(session, task, state=now, progress=_progress(session, now))


def _progress(session: FccmSession, now: messages.Adding) -> dict[str, object]:
    return {
        "updates": len(now.tolerances),
        "of_at_most": session.params.max_iter,
        "moved": [float(each) for each in now.tolerances],
    }


def _told(session: FccmSession, now: messages.Adding, contributions: Given) -> Finish:
    told = all_of(messages.Told, contributions)
    leader = told[session.slots[0]]
    if len({each.digest for each in told.values()}) > 1:
        raise ProtocolFailed("The sites do not agree on the sizes of the clusters.")
    shown = dict(leader)
    del shown["digest"]
    summary = messages.Summary(**shown, tolerances=now.tolerances)
    done = messages.Done()
    results = dict.fromkeys(session.slots, done)
    return Finish(runs=[Run(results=results, summary=summary)])

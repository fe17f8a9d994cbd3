"""The analyst roles of the dummy protocol."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import AnalystRole, Ask, Finish, Reopen
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.records.record import Record

from . import messages
from .params import Dummy, DummySession


class Greeter(AnalystRole[Dummy, messages.Greeted]):
    """Asks the parties to greet each other, in the first stage."""

    def start(self, session: DummySession) -> Ask | Finish:
        """Ask every party for a greeting."""
        _fail_on_demand(session, "start")
        return Ask.to_everybody(session, messages.Greet())

    def step(
        self,
        session: DummySession,
        state: Record,
        contributions: Mapping[str, messages.Greeted],
    ) -> Ask | Reopen | Finish:
        """Finish the stage, so that the count follows."""
        return Finish()


class Counter(
    AnalystRole[Dummy, messages.Counted | messages.Confirmed, messages.Counting]
):
    """Counts rows, has the total confirmed, and sends labels, in the second stage."""

    state = messages.Counting

    def start(self, session: DummySession) -> Ask | Finish:
        """Ask every party for the indices of its rows."""
        return _ask_count(session, voided=0)

    def step(
        self,
        session: DummySession,
        state: messages.Counting,
        contributions: Mapping[str, messages.Counted | messages.Confirmed],
    ) -> Ask | Reopen | Finish:
        """Repeat the count ``void_attempts`` times, have it confirmed, and send labels."""
        if state.total:
            _fail_on_demand(session, "confirm")
            return _finish(session, state.total)
        _fail_on_demand(session, "count")
        if state.voided < session.params.void_attempts:
            ask = _ask_count(session, voided=state.voided + 1)
            return Reopen(reason="void_attempts asks for another attempt.", ask=ask)
        total = sum(session.row_counts)
        return Ask.to_everybody(
            session,
            messages.Confirm(total=total),
            state=messages.Counting(voided=state.voided, total=total),
        )


def _ask_count(session: DummySession, voided: int) -> Ask:
    return Ask.to_everybody(
        session,
        messages.Count(),
        state=messages.Counting(voided=voided, total=0),
        dims={slot: {"n": session.n_rows(slot)} for slot in session.slots},
        quorum=session.params.quorum,
    )


def _finish(session: DummySession, total: int) -> Finish:
    n_rows = session.row_counts
    results: dict[str, Record] = {}
    for row, count in enumerate(n_rows):
        labels = labels_in_turn(sum(n_rows[:row]), count, session.params.n_clusters)
        result = messages.Labels(labels=labels)
        results |= dict.fromkeys(session.layout.row_group(row), result)
    return Finish.with_results(results, summary=messages.Total(total=total))


def _fail_on_demand(session: DummySession, step: str) -> None:
    if session.params.fail_at == step:
        raise ProtocolFailed(f"The dummy was told to fail at {step!r}.")


def labels_in_turn(first: int, n_rows: int, n_clusters: int) -> IntArray:
    """Return the labels (first + i) mod n_clusters for i from 0 to n_rows - 1."""
    return np.arange(first, first + n_rows, dtype=np.int64) % n_clusters

"""The analyst role of the dummy."""

from __future__ import annotations

from collections.abc import Mapping

from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Reopen,
    SessionContext,
    ask_all,
)
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.records import Record

from . import kernels, messages
from .params import Dummy


class Greeter(AnalystRole):
    """Stage 1: lets the parties greet each other."""

    state = messages.Greeting

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask everybody for a greeting."""
        _fail(session, "start")
        return ask_all(
            session,
            messages.Greet(),
            expects=messages.Greeted,
            state=messages.Greeting(),
        )

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Go on to the count."""
        return Finish()


class Counter(AnalystRole):
    """Stage 2: counts the rows, has the total confirmed, hands out labels."""

    state = messages.Counting

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask everybody for its row numbers."""
        return ask_all(
            session,
            messages.Count(),
            expects=messages.Counted,
            state=messages.Counting(voided=0, total=0),
            dims={slot: {"n": session.n_rows(slot)} for slot in session.slots},
            quorum=_params(session).quorum,
        )

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Return the count again, the confirmation round, then the labels."""
        counting = messages.Counting.narrow(state)
        if counting.total:
            _fail(session, "confirm")
            return _finish(session, counting.total)
        _fail(session, "count")
        if counting.voided < _params(session).void_attempts:
            voided = messages.Counting(voided=counting.voided + 1, total=0)
            return Reopen(state=voided, reason="The dummy was told to.")
        return _ask_confirm(session, counting.voided)


def _ask_confirm(session: SessionContext, voided: int) -> Ask:
    total = sum(_rows_per_group(session))
    return ask_all(
        session,
        messages.Confirm(total=total),
        expects=messages.Confirmed,
        state=messages.Counting(voided=voided, total=total),
    )


def _finish(session: SessionContext, total: int) -> Finish:
    per_group = _rows_per_group(session)
    k = _params(session).n_clusters
    results: dict[str, Record] = {}
    for row, n_rows in enumerate(per_group):
        labels = kernels.turns(sum(per_group[:row]), n_rows, k)
        for slot in session.layout.row_group(row):
            results[slot] = messages.Labels(labels=labels)
    return Finish(results=results, summary=messages.Total(total=total))


def _rows_per_group(session: SessionContext) -> list[int]:
    first = [
        session.layout.row_group(row)[0] for row in range(session.layout.n_row_groups)
    ]
    return [session.n_rows(slot) for slot in first]


def _params(session: SessionContext) -> Dummy:
    return Dummy.model_validate(session.params)


def _fail(session: SessionContext, step: str) -> None:
    if _params(session).fail_at == step:
        raise ProtocolFailed(f"The dummy was told to fail at {step!r}.")

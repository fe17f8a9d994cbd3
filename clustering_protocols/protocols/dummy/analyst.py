"""The analyst role of the dummy."""

from __future__ import annotations

from collections.abc import Mapping

from clustering_protocols.contract import Again, AnalystRole, Ask, Finish, Plan, ask_all
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.records import Record

from . import kernels, messages
from .params import Dummy


class Greeter(AnalystRole):
    """Stage 1: lets the parties greet each other."""

    state = messages.Greeting

    def start(self, plan: Plan) -> Ask | Finish:
        """Ask everybody for a greeting."""
        _fail(plan, "start")
        return ask_all(
            plan, messages.Greet(), expects=messages.Greeted, state=messages.Greeting()
        )

    def step(
        self, plan: Plan, state: Record, contributions: Mapping[str, Record]
    ) -> Ask | Again | Finish:
        """Go on to the count."""
        return Finish()


class Counter(AnalystRole):
    """Stage 2: counts the rows, has the total confirmed, hands out labels."""

    state = messages.Counting

    def start(self, plan: Plan) -> Ask | Finish:
        """Ask everybody for its row numbers."""
        return ask_all(
            plan,
            messages.Count(),
            expects=messages.Counted,
            state=messages.Counting(voided=0, total=0),
            dims={slot: {"n": plan.n_rows(slot)} for slot in plan.slots},
            quorum=_params(plan).quorum,
        )

    def step(
        self, plan: Plan, state: Record, contributions: Mapping[str, Record]
    ) -> Ask | Again | Finish:
        """Return the count again, the confirmation round, then the labels."""
        counting = messages.Counting.narrow(state)
        if counting.total:
            _fail(plan, "confirm")
            return _finish(plan, counting.total)
        _fail(plan, "count")
        if counting.voided < _params(plan).void_attempts:
            voided = messages.Counting(voided=counting.voided + 1, total=0)
            return Again(state=voided, reason="The dummy was told to.")
        return _ask_confirm(plan, counting.voided)


def _ask_confirm(plan: Plan, voided: int) -> Ask:
    total = sum(_rows_per_group(plan))
    return ask_all(
        plan,
        messages.Confirm(total=total),
        expects=messages.Confirmed,
        state=messages.Counting(voided=voided, total=total),
    )


def _finish(plan: Plan, total: int) -> Finish:
    per_group = _rows_per_group(plan)
    k = _params(plan).n_clusters
    results: dict[str, Record] = {}
    for row, n_rows in enumerate(per_group):
        labels = kernels.turns(sum(per_group[:row]), n_rows, k)
        for slot in plan.layout.row_group(row):
            results[slot] = messages.Labels(labels=labels)
    return Finish(results=results, summary=messages.Total(total=total))


def _rows_per_group(plan: Plan) -> list[int]:
    first = [plan.layout.row_group(row)[0] for row in range(plan.layout.n_row_groups)]
    return [plan.n_rows(slot) for slot in first]


def _params(plan: Plan) -> Dummy:
    return Dummy.model_validate(plan.params)


def _fail(plan: Plan, step: str) -> None:
    if _params(plan).fail_at == step:
        raise ProtocolFailed(f"The dummy was told to fail at {step!r}.")

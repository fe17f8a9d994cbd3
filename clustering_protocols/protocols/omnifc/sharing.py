"""Stage: every party encodes its rows and seals a share of each to every other party.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `share` → `shared` | `row-shares` to every other party |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from clustering_protocols.arrays import WordArray
from clustering_protocols.contract import (
    Again,
    AnalystRole,
    Ask,
    Finish,
    Incoming,
    Outgoing,
    PartyRole,
    Plan,
    Reply,
    Stage,
    View,
    ask_all,
)
from clustering_protocols.data import DataSource
from clustering_protocols.errors import GuardRefused, ProtocolFailed
from clustering_protocols.preparation.alignment import RowOrder
from clustering_protocols.records import Record

from . import coding, field, lagrange, messages, quantisation, rosters, scaling, sizes

NAME = "shares"


class Analyst(AnalystRole):
    """Relays the envelopes."""

    state = messages.Sharing

    def start(self, plan: Plan) -> Ask | Finish:
        """Ask everybody."""
        return ask_all(
            plan, messages.Share(), expects=messages.Shared, state=messages.Sharing()
        )

    def step(
        self, plan: Plan, state: Record, contributions: Mapping[str, Record]
    ) -> Ask | Again | Finish:
        """Finish."""
        return Finish()


class Party(PartyRole):
    """Scales, quantises and encodes its rows."""

    def reply(self, view: View, task: Record, data: DataSource) -> Reply:
        """Seal f_x(β_j) of each row x to party j; keep the party's own."""
        messages.Share.narrow(task)
        if view.memory.recall(messages.OwnShares) is not None:
            raise ProtocolFailed("The analyst asks for shares a second time.")
        params, plan = rosters.params_of(view.plan), view.plan
        _check_memory(view)
        scale = scaling.agreed(view, params)
        bits = quantisation.bits_for(params.bits, scale.ranges)
        order = view.recall(RowOrder).order
        rows = scaling.scaled_rows(params, scale, data)[order]
        segments = coding.cut(quantisation.quantise(rows, bits), params.segments)
        stream = view.stream("noise")
        noise = [field.draw(stream, len(segments[0])) for _ in range(params.noise)]
        matrix = lagrange.encoding(params.segments, params.noise, len(plan.slots))
        encoded = coding.encode(matrix, segments + noise)
        shares = {
            slot: share.reshape(len(rows), -1)
            for slot, share in zip(plan.slots, encoded, strict=True)
        }
        own = shares.pop(view.slot.name)
        return Reply(
            contribution=messages.Shared(),
            envelopes=[
                Outgoing(receiver=slot, content=messages.RowShares(shares=share))
                for slot, share in shares.items()
            ],
            remember=[messages.OwnShares(shares=own, bits=bits)],
            notes={"binary digits after the point": bits},
        )

    def receive(self, view: View, envelopes: Sequence[Incoming]) -> Sequence[Record]:
        """Stack the shares of all rows in slot order."""
        plan = view.plan
        own = view.recall(messages.OwnShares)
        shares: dict[str, WordArray] = {view.slot.name: own.shares}
        for envelope in envelopes:
            content = messages.RowShares.narrow(envelope.content)
            n = plan.n_rows(envelope.sender)
            content.require({"n": n, "width": rosters.width(plan)})
            shares[envelope.sender] = content.shares
        if set(shares) != set(plan.slots):
            raise ProtocolFailed("The shares of a party's rows are missing.")
        stacked = np.concatenate([shares[slot] for slot in plan.slots])
        return [messages.HeldShares(shares=stacked, bits=own.bits)]


def _check_memory(view: View) -> None:
    """Refuse before any share leaves: the round after this one is the large one."""
    params, plan = rosters.params_of(view.plan), view.plan
    n, d = rosters.n_rows(plan), rosters.n_features(plan)
    limit = int(view.choices.get("memory_limit", sizes.PARTY_LIMIT))
    needed = sizes.party_bytes(params, n, d)
    if needed > limit:
        most = sizes.most_rows(lambda rows: sizes.party_bytes(params, rows, d), limit)
        raise GuardRefused(
            f"{n} rows of {d} features take {needed} bytes here; the choice "
            f"'memory_limit' is {limit}, room for {most} rows."
        )


def stage() -> Stage:
    """Return the stage; it needs row orders and, unless declared, pooled statistics."""
    return Stage(
        name=NAME,
        analyst=Analyst(),
        party=Party(),
        records=(
            messages.Share,
            messages.Shared,
            messages.Sharing,
            messages.RowShares,
        ),
    )

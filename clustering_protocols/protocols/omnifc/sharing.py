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
    AnalystRole,
    Ask,
    Finish,
    Incoming,
    Outgoing,
    PartyContext,
    PartyRole,
    Reopen,
    Reply,
    SessionContext,
    ask_all,
)
from clustering_protocols.data import DataSource
from clustering_protocols.errors import GuardRefused, ProtocolFailed
from clustering_protocols.preparation.alignment import RowOrder
from clustering_protocols.records import Record

from . import coding, field, lagrange, messages, quantisation, rosters, scaling, sizes


class SharingAnalyst(AnalystRole):
    """Relays the envelopes."""

    state = messages.Sharing

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask everybody."""
        return ask_all(
            session, messages.Share(), expects=messages.Shared, state=messages.Sharing()
        )

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Finish."""
        return Finish()


class SharingParty(PartyRole):
    """Scales, quantises and encodes its rows."""

    def reply(self, context: PartyContext, task: Record, data: DataSource) -> Reply:
        """Seal f_x(β_j) of each row x to party j; keep the party's own."""
        messages.Share.narrow(task)
        if context.memory.recall(messages.OwnShares) is not None:
            raise ProtocolFailed("The analyst asks for shares a second time.")
        params, session = rosters.params_of(context.session), context.session
        _check_memory(context)
        scale = scaling.agreed(context, params)
        bits = quantisation.bits_for(params.bits, scale.ranges)
        order = context.recall(RowOrder).order
        rows = scaling.scaled_rows(params, scale, data)[order]
        segments = coding.cut(quantisation.quantise(rows, bits), params.segments)
        stream = context.stream("noise")
        noise = [field.draw(stream, len(segments[0])) for _ in range(params.noise)]
        matrix = lagrange.encoding(params.segments, params.noise, len(session.slots))
        encoded = coding.encode(matrix, segments + noise)
        shares = {
            slot: share.reshape(len(rows), -1)
            for slot, share in zip(session.slots, encoded, strict=True)
        }
        own = shares.pop(context.slot.name)
        return Reply(
            contribution=messages.Shared(),
            envelopes=[
                Outgoing(receiver=slot, content=messages.RowShares(shares=share))
                for slot, share in shares.items()
            ],
            remember=[messages.OwnShares(shares=own, bits=bits)],
            notes={"binary digits after the point": bits},
        )

    def receive(
        self, context: PartyContext, envelopes: Sequence[Incoming]
    ) -> Sequence[Record]:
        """Stack the shares of all rows in slot order."""
        session = context.session
        own = context.recall(messages.OwnShares)
        shares: dict[str, WordArray] = {context.slot.name: own.shares}
        for envelope in envelopes:
            content = messages.RowShares.narrow(envelope.content)
            n = session.n_rows(envelope.sender)
            content.require({"n": n, "width": rosters.width(session)})
            shares[envelope.sender] = content.shares
        if set(shares) != set(session.slots):
            raise ProtocolFailed("The shares of a party's rows are missing.")
        stacked = np.concatenate([shares[slot] for slot in session.slots])
        return [messages.HeldShares(shares=stacked, bits=own.bits)]


def _check_memory(context: PartyContext) -> None:
    """Refuse before any share leaves: the round after this one is the large one."""
    params, session = rosters.params_of(context.session), context.session
    n, d = rosters.n_rows(session), rosters.n_features(session)
    limit = int(context.choices.get("memory_limit", sizes.PARTY_LIMIT))
    needed = sizes.party_bytes(params, n, d)
    if needed > limit:
        most = sizes.most_rows(lambda rows: sizes.party_bytes(params, rows, d), limit)
        raise GuardRefused(
            f"{n} rows of {d} features take {needed} bytes here; the choice "
            f"'memory_limit' is {limit}, room for {most} rows."
        )

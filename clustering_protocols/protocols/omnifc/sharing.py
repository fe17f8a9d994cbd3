"""Stage: every party encodes its rows and seals a share of each to every other party.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `share` → `shared` | `row-shares` to every other party |
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import PartyRole, PeerMessage, Reply
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy import field
from clustering_protocols.shared_stages import dominance
from clustering_protocols.shared_stages.alignment.digests import RowOrder

from . import coding, lagrange, limits, messages, quantisation, rosters, scaling
from .params import OmniContext, OmniFC


class SharingParty(PartyRole[OmniFC, messages.EncodeRows, messages.RowShares]):
    """Scales, quantises and encodes its rows."""

    def reply(
        self, context: OmniContext, task: messages.EncodeRows, data: DataSource
    ) -> Reply:
        """Seal f_x(β_j) of each row x to party j; keep the party's own."""
        if context.memory.get(messages.OwnShares) is not None:
            raise ProtocolFailed("The analyst asks for shares a second time.")
        params, session = context.session.params, context.session
        _check_memory(context)
        scale = scaling.build_agreed_scale(context, params)
        bits = quantisation.bits_for(params.bits, scale.ranges)
        order = context.recall(RowOrder).order
        rows = scaling.scaled_rows(params, scale, data)[order]
        asked = dominance.check(context, data.columns, lambda: [rows])
        segments = coding.cut(quantisation.quantise(rows, bits), params.segments)
        noise = _noise(context, segments)
        matrix = lagrange.build_encoding_matrix(
            params.segments, params.noise, len(session.slots)
        )
        encoded = coding.encode(matrix, segments + noise)
        shares = {
            slot: share.reshape(len(rows), -1)
            for slot, share in zip(session.slots, encoded, strict=True)
        }
        own = shares.pop(context.slot.name)
        return Reply(
            contribution=messages.SharesSent(),
            envelopes=[
                PeerMessage(peer=slot, content=messages.RowShares(shares=share))
                for slot, share in shares.items()
            ],
            remember=[messages.OwnShares(shares=own, bits=bits)],
            notes={"binary digits after the point": bits, **asked.notes},
            asks=asked.asks,
        )

    def receive(
        self, context: OmniContext, envelopes: Sequence[PeerMessage[messages.RowShares]]
    ) -> Sequence[Record]:
        """Stack the shares of all rows in slot order."""
        session = context.session
        own = context.recall(messages.OwnShares)
        shares: dict[str, WordArray] = {context.slot.name: own.shares}
        for envelope in envelopes:
            content = envelope.content
            n = session.n_rows(envelope.peer)
            content.require({"n": n, "width": rosters.width(session)})
            shares[envelope.peer] = content.shares
        if set(shares) != set(session.slots):
            raise ProtocolFailed("The shares of a party's rows are missing.")
        stacked = np.concatenate([shares[slot] for slot in session.slots])
        return [messages.HeldShares(shares=stacked, bits=own.bits)]


def _noise(context: OmniContext, segments: Sequence[WordArray]) -> list[WordArray]:
    """Return t noise segments that follow from the rows, whatever the attempt.

    Two attempts seal the same shares, so that a second one tells nothing, anyone who holds
    shares of which. Of other rows the noise would be independent: the difference of two
    sharings with the same noise is that of the rows.
    """
    rows = sha256(b"".join(segment.tobytes() for segment in segments)).hexdigest()
    stream = context.lasting_stream(f"noise/{rows}")
    return [
        field.draw(stream, len(segments[0]))
        for _ in range(context.session.params.noise)
    ]


def _check_memory(context: OmniContext) -> None:
    """Refuse before any share leaves: the round after this one is the large one."""
    params, session = context.session.params, context.session
    n, d = rosters.n_rows(session), rosters.n_features(session)
    limit = int(context.choices.get("memory_limit", limits.PARTY_LIMIT))
    needed = limits.party_bytes(params, n, d)
    if needed > limit:
        most = limits.most_rows(lambda rows: limits.party_bytes(params, rows, d), limit)
        raise GuardRefused(
            f"{n} rows of {d} features take {needed} bytes here; the choice "
            f"'memory_limit' is {limit}, room for {most} rows."
        )

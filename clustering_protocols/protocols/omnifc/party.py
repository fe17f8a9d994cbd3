"""A party's role: share its rows, then compute distances between the shares it holds.

The stage of shares:

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `share` → `shared` | `row-shares` to every other party |

Answers are masked by μ_a = Σ_{b > a} PRG(k_ab) - Σ_{b < a} PRG(k_ab): for each pair of
parties, one adds the stream that they share, and the other subtracts it. Anyone who
sees all answers, but knows no pair's key, sees uniform residues with the correct sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.common.limits import MINIMUM_MEMBERS, build_grouping_note
from clustering_protocols.contract import Outcome, PartyRole, PeerMessage, Reply
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.numerics.moments import PooledMoments
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy import field
from clustering_protocols.shared_stages import dominance
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.secrets import group_stream
from clustering_protocols.shared_stages.statistics.moments import PooledReach
from clustering_protocols.shared_stages.statistics.ranges import PooledRanges
from clustering_protocols.terms.preparation import Ranges

from . import limits, maths, messages, units
from .maths import add_combination, blocks
from .params import OmniContext, OmniFC


class SharingParty(PartyRole[OmniFC, messages.EncodeRows, messages.RowShares]):
    """Scales, quantises and encodes its party's rows."""

    def reply(
        self, context: OmniContext, task: messages.EncodeRows, data: DataSource
    ) -> Reply:
        """Send party j the shares f_x(β_j) of all rows x; keep this party's own shares."""
        if context.memory.get(messages.OwnShares) is not None:
            raise ProtocolFailed("The analyst asks for shares a second time.")
        params, session = context.session.params, context.session
        _check_memory(context)
        scale = build_agreed_scale(context, params)
        bits = units.bits_for(params.bits, scale.ranges)
        order = context.recall(RowOrder).order
        rows = scaled_rows(params, scale, data)[order]
        question = dominance.check_dominance(context, data.columns, lambda: [rows])
        segments = maths.cut_into_segments(maths.quantise(rows, bits), params.segments)
        noise = _derive_noise(context, segments)
        matrix = maths.build_encoding_matrix(
            params.segments, params.noise, len(session.slots)
        )
        encoded = maths.encode(matrix, segments + noise)
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
            notes={"binary digits after the point": bits, **question.notes},
            asks=question.asks,
        )

    def receive(
        self, context: OmniContext, envelopes: Sequence[PeerMessage[messages.RowShares]]
    ) -> Sequence[Record]:
        """Stack the shares of all parties' rows, in the order of slots."""
        session = context.session
        own = context.recall(messages.OwnShares)
        width = session.params.segment_width(limits.size_of(session)[1])
        shares: dict[str, WordArray] = {context.slot.name: own.shares}
        for envelope in envelopes:
            content = envelope.content
            n = session.n_rows(envelope.peer)
            content.require({"n": n, "width": width})
            shares[envelope.peer] = content.shares
        if set(shares) != set(session.slots):
            raise ProtocolFailed("The shares of a party's rows are missing.")
        stacked = np.concatenate([shares[slot] for slot in session.slots])
        return [messages.HeldShares(shares=stacked, bits=own.bits)]


def _derive_noise(
    context: OmniContext, segments: Sequence[WordArray]
) -> list[WordArray]:
    """Return t noise segments, which depend on the rows but not on the attempt.

    All attempts send the same shares, so that several attempts disclose no more than
    one. Different rows get independent noise, because the shares of rows with equal
    noise would reveal the difference of these rows.
    """
    rows = sha256(b"".join(segment.tobytes() for segment in segments)).hexdigest()
    stream = context.lasting_stream(f"noise/{rows}")
    return [
        field.draw_residues(stream, len(segments[0]))
        for _ in range(context.session.params.noise)
    ]


def _check_memory(context: OmniContext) -> None:
    """Raise before shares are sent if the next round would take too much memory."""
    params, session = context.session.params, context.session
    n, d = limits.size_of(session)
    limit = int(context.choices.get("memory_limit", limits.PARTY_LIMIT))
    n_bytes = limits.party_bytes(params, n, d)
    if n_bytes > limit:
        fit = limits.most_rows(lambda rows: limits.party_bytes(params, rows, d), limit)
        raise GuardRefused(
            f"{n} rows of {d} features take {n_bytes} bytes here; the choice "
            f"'memory_limit' is {limit}, enough for {fit} rows."
        )


def hide(
    values: WordArray, weight: int, streams: Sequence[tuple[int, KeyedStream]]
) -> None:
    """Replace values in [0, p) by weight · values + mask mod p, in place.

    streams: for each other party, a sign (+1 if its slot is later, otherwise -1), and
        the stream that it shares with this party.
    """
    for _, block in blocks(values):
        own = block.copy()
        block[:] = np.uint64(0)
        add_combination(block, [weight], [own])
        for sign, stream in streams:
            mask = field.draw_residues(stream, len(block))
            (field.add if sign > 0 else field.subtract)(block, mask)
        field.canonicalise(block)


class Comparer(PartyRole[OmniFC, messages.Compare, Record, messages.RowGroupLabels]):
    """Sends the distances D^(j) between its shares in a single round; receives labels.

    If the terms hide segments, it sends w_j D^(j) + μ_j instead.
    """

    def reply(
        self, context: OmniContext, task: messages.Compare, data: DataSource
    ) -> Reply:
        """Return the condensed distances between this party's shares of all rows.

        With landmarks, the shares of landmarks come first, and only pairs with a
        landmark are sent.
        """
        params = context.session.params
        memory = context.recall(messages.HeldShares)
        shares, n_first = memory.shares, None
        if params.distances == "landmarks":
            landmarks = landmark_shares(context, memory.bits)
            shares, n_first = np.concatenate([landmarks, shares]), len(landmarks)
        distances = maths.field_distances(shares, context.engine, first=n_first)
        if params.hide_segments:
            slots = context.session.slots
            if len(slots) < MINIMUM_MEMBERS:
                # each of two parties could subtract its own answer
                raise GuardRefused(f"Masks hide nothing among {len(slots)} parties.")
            streams = context.pairwise_streams(slots, "coterie/field-mask/2")
            points = maths.share_points(len(slots))
            weights = maths.build_decoding_weights(params.segments, points)
            weight = weights[slots.index(context.slot.name)]
            hide(distances, weight, list(streams))
        return Reply(
            contribution=messages.EncodedDistances(
                bits=memory.bits, distances=distances
            )
        )

    def conclude(
        self,
        context: OmniContext,
        result: messages.RowGroupLabels,
        data: DataSource | None,
    ) -> Outcome:
        """Return the labels in the order of the rows in the party's table."""
        order = context.recall(RowOrder)
        result.require({"n": len(order.order)})
        report: dict[str, Any] = {
            "binary digits after the point": context.recall(messages.OwnShares).bits
        }
        n_rows = sum(context.session.row_counts)
        if context.session.params.samples_rows(n_rows):
            report |= build_grouping_note(n_rows)
        memberships = None
        if isinstance(result, messages.RowGroupMemberships):
            memberships = order.restore_own_order(result.memberships)
            report["n_coinciding"] = result.n_coinciding
        return Outcome(
            labels=order.restore_own_order(result.labels),
            cluster_sizes=result.cluster_sizes,
            memberships=memberships,
            report=report,
        )


def landmark_shares(context: OmniContext, bits: int) -> WordArray:
    """Return this party's shares (d + 1, width) of the landmarks."""
    params, session = context.session.params, context.session
    ranges = build_agreed_scale(context, params).ranges
    landmarks = maths.draw_landmarks(
        ranges, bits, group_stream(context, "column", "landmarks")
    )
    segments = maths.cut_into_segments(landmarks, params.segments)
    no_noise = [np.zeros_like(segments[0])] * params.noise
    matrix = maths.build_encoding_matrix(
        params.segments, params.noise, len(session.slots)
    )
    own = matrix[session.slots.index(context.slot.name)]
    return maths.encode([own], segments + no_noise)[0].reshape(len(landmarks), -1)


def build_agreed_scale(context: OmniContext, params: OmniFC) -> units.Scale:
    """Return the scale that follows from the dictionary or from pooled statistics.

    With pooled moments, each range is the smallest power of two that exceeds the
    distance of every value from the mean. Ranges are then at most four times too wide,
    which costs two binary digits but discloses no value.
    """
    n_features = context.session.member(context.slot.name).n_columns
    if params.scaling == "unit_norm":
        ones = np.ones(n_features)
        return units.Scale(factor=ones, minimum=-ones, maximum=ones, unit_norm=True)
    if params.ranges == "declared":
        return units.build_declared_scale(
            params.scaling, context.session.bounds(context.slot.name)
        )
    if params.scaling == "minmax":
        ranges = context.recall(PooledRanges)
        low, high, spread = ranges.minimum, ranges.maximum, np.ones(n_features)
    else:
        pooled = context.recall(PooledMoments)
        reach = np.ldexp(1.0, context.recall(PooledReach).powers)
        low, high = pooled.mean - reach, pooled.mean + reach
        spread = context.session.units(context.slot.name, pooled.spread)
    return units.Scale(
        factor=units.factors(params.scaling, spread, high - low),
        minimum=low,
        maximum=high,
        unit_norm=False,
    )


def scaled_rows(params: OmniFC, scale: units.Scale, data: DataSource) -> FloatArray:
    """Return a party's scaled rows.

    Raises InvalidData if a value lies outside the range in the dictionary, and
    ProtocolFailed if one lies outside the pooled range, which must include the values
    of all parties: its distances could exceed the field.
    """
    if params.ranges == "declared":
        Ranges(scale.minimum, scale.maximum).check(data)
    rows, rounding = scale(matrix(data)), 1e-9 * scale.ranges
    if ((rows < -rounding) | (rows > scale.ranges + rounding)).any():
        raise ProtocolFailed(
            "The pooled ranges do not include all values of this party."
        )
    return rows

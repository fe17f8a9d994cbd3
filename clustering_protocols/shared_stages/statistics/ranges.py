"""Stage: pool the ranges of a column group's features through its leader.

Ranges cannot be added up, so masked sums cannot pool them. Each party seals its ranges
to the group's leader, which pools them and seals the result to the members. The analyst
sees nothing. The leader sees the ranges of each member, and the terms list this as a
risk.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `measure` → `measured` | `own-ranges` from the members to the leader |
| 2 | `pool` → `pooled` | `pooled-ranges` from the leader to the members |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import (
    Exchange,
    Params,
    PartyContext,
    PartyRole,
    PeerMessage,
    Reply,
    Stage,
    leader_content,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.statistics import magnitudes
from clustering_protocols.shared_stages.sums import column_group_members

NAME = "ranges"


class Measure(Record):
    """Task of round 1: measure the ranges of your rows, and seal them to the leader."""

    kind = "measure"


class MeasuredColumns(Record):
    """Contribution of round 1: confirms the task."""

    kind = "measured"


class Pool(Record):
    """Task of round 2: if you are the leader, seal the pooled ranges to the members."""

    kind = "pool"


class PooledColumns(Record):
    """Contribution of round 2: confirms the task."""

    kind = "pooled"


class OwnRanges(Record):
    """Envelope and memory: the smallest and largest value of each of a party's features."""

    kind = "own-ranges"
    meaning = "The smallest and largest value of each column, for the first party."

    minimum: Annotated[FloatArray, Spec("m")]
    maximum: Annotated[FloatArray, Spec("m")]


class PooledRanges(OwnRanges):
    """Envelope and memory: ranges over all rows of the column group."""

    kind = "pooled-ranges"
    meaning = "The pooled ranges of all parties with your columns, for these parties."


def measure_ranges(data: DataSource) -> OwnRanges:
    """Return the ranges of a party's rows, which are read once."""
    low = np.full(len(data.columns), np.inf)
    high = -low
    for batch in data.batches():
        np.minimum(low, batch.min(axis=0), out=low)
        np.maximum(high, batch.max(axis=0), out=high)
    return OwnRanges(minimum=low, maximum=high)


def merge_ranges(parts: Sequence[OwnRanges]) -> PooledRanges:
    """Merge the ranges of several sets of rows into those of their union."""
    return PooledRanges(
        minimum=np.min([part.minimum for part in parts], axis=0),
        maximum=np.max([part.maximum for part in parts], axis=0),
    )


class RangesParty(PartyRole[Params, Measure | Pool, OwnRanges]):
    """Measures its columns and, as leader of its column group, pools the ranges."""

    def reply(
        self, context: PartyContext, task: Measure | Pool, data: DataSource
    ) -> Reply:
        """Seal the party's ranges to the leader, or the pooled ones to the members."""
        leader, *members = column_group_members(context)
        leads = context.slot.name == leader
        envelopes: list[PeerMessage] = []
        if isinstance(task, Pool):
            if leads:
                pooled = context.recall(PooledRanges)
                envelopes = [PeerMessage(peer=slot, content=pooled) for slot in members]
            return Reply(contribution=PooledColumns(), envelopes=envelopes)
        own = measure_ranges(data)
        records: list[Record] = [own]
        if not leads:
            envelopes = [PeerMessage(peer=leader, content=own)]
        elif not members:
            records.append(merge_ranges([own]))  # alone, so `receive` is not called
        return Reply(
            contribution=MeasuredColumns(), envelopes=envelopes, remember=records
        )

    def receive(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[OwnRanges]]
    ) -> Sequence[Record]:
        """Pool the members' ranges or, unless leader, store the pooled ones."""
        leader, *members = column_group_members(context)
        contents = {envelope.peer: envelope.content for envelope in envelopes}
        width = context.session.member(context.slot.name).n_columns
        for content in contents.values():
            content.require({"m": width})
            magnitudes.check_magnitudes(
                "A party's record of ranges", *content.arrays.values()
            )
        if context.slot.name != leader:
            pooled = leader_content(leader, envelopes, "Pooled ranges")
            # Of the two kinds of envelope, a leader may send only this one.
            return [PooledRanges.narrow(pooled)]
        if set(contents) != set(members):
            raise ProtocolFailed(
                "The ranges of a member of the column group are missing."
            )
        own = context.recall(OwnRanges)
        return [merge_ranges([own, *(contents[slot] for slot in members)])]


def build_stage() -> Stage:
    """Return the stage."""
    return Stage.relaying(
        Exchange(Measure, MeasuredColumns),
        Exchange(Pool, PooledColumns),
        name=NAME,
        party=RangesParty,
        envelopes=(OwnRanges, PooledRanges),
    )

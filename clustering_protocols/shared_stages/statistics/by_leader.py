"""Stage: pool moments or ranges of a column group's features through its leader.

Anchors and shared scaling need the mean and deviation, or the range, of each feature
over all rows of a column group. If the terms declare no ranges, each party seals its
moments or ranges to the group's leader, which pools them and seals the result to the
members. The analyst sees nothing. The leader sees what each member sends, and the terms
list this as a risk. Therefore, groups of three or more parties pool moments by
:mod:`.moments` instead, which hides the moments of each party.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `measure` → `measured` | `moments` from the members to the leader |
| 2 | `pool` → `pooled` | `pooled-moments` from the leader to the members |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.common.limits import MAX_GROUP_SLOTS
from clustering_protocols.contract import (
    Exchange,
    Params,
    PartyContext,
    PartyRole,
    PeerMessage,
    Reply,
    SessionContext,
    Stage,
    leader_content,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.secrets import group_of
from clustering_protocols.shared_stages.statistics import magnitudes, units
from clustering_protocols.shared_stages.sums import RowsSummed

NAME = "statistics"


class Measure(Record):
    """Task of round 1: compute the moments or ranges, and seal them to the leader."""

    kind = "measure"


class MeasuredColumns(Record):
    """Contribution of round 1: confirms the task."""

    kind = "measured"


class Pool(Record):
    """Task of round 2: if you are the leader, seal the pooled values to the members."""

    kind = "pool"


class PooledColumns(Record):
    """Contribution of round 2: confirms the task."""

    kind = "pooled"


class Moments(Record):
    """Envelope: number of rows, and the moments or the range of each feature.

    deviations: the sums of squared deviations from the mean.

    Arrays that the terms do not need are empty, so that no party discloses them.
    """

    kind = "moments"
    meaning = (
        "Your number of rows, and each column's mean and standard deviation, or "
        "its range, for the first party."
    )

    n_rows: int = Field(ge=1)
    mean: Annotated[FloatArray, Spec("moments")]
    deviations: Annotated[FloatArray, Spec("moments", low=0)]
    minimum: Annotated[FloatArray, Spec("ranges")]
    maximum: Annotated[FloatArray, Spec("ranges")]

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation (divisor n) of each feature."""
        return np.sqrt(self.deviations / self.n_rows)


class OwnMoments(Moments):
    """Memory: the party's own moments, until those of the other members arrive."""

    kind = "own-moments"


class PooledMoments(Moments):
    """Envelope and memory: moments or ranges over all rows of the column group."""

    kind = "pooled-moments"
    meaning = "The same over all parties with your columns, for these parties."


def measure_moments(data: DataSource, *, moments: bool, ranges: bool) -> Moments:
    """Compute the moments of a party's rows, in two passes over the batches.

    The second pass adds up squared deviations from the mean, because sums of squares
    would lose all digits of a feature whose mean is much larger than its deviation.
    """
    width = len(data.columns)
    total, low = np.zeros(width), np.full(width, np.inf)
    high = -low
    for batch in data.batches():
        total += batch.sum(axis=0)
        low, high = (
            np.minimum(low, batch.min(axis=0)),
            np.maximum(high, batch.max(axis=0)),
        )
    # Otherwise rounding could give a constant feature a deviation of 1e-17.
    mean = np.where(low == high, low, total / data.n_rows)
    deviations = np.zeros(width)
    if moments:
        for batch in data.batches():
            deviations += np.square(batch - mean).sum(axis=0)
    return Moments(
        n_rows=data.n_rows,
        mean=mean if moments else np.empty(0),
        deviations=deviations if moments else np.empty(0),
        minimum=low if ranges else np.empty(0),
        maximum=high if ranges else np.empty(0),
    )


def merge_moments(parts: Sequence[Moments]) -> PooledMoments:
    """Merge the moments of several sets of rows into those of their union.

    The method is that of Chan, Golub & LeVeque, "Algorithms for computing the sample
    variance", 1983, applied to all parts at once.
    """
    counts = np.array([part.n_rows for part in parts], dtype=np.float64)[:, None]
    means = np.array([part.mean for part in parts])
    equal = (means == means[0]).all(axis=0)
    mean = np.where(equal, means[0], (counts * means).sum(axis=0) / counts.sum())
    within = np.array([part.deviations for part in parts]).sum(axis=0)
    between = (counts * np.square(means - mean)).sum(axis=0)
    return PooledMoments(
        n_rows=int(counts.sum()),
        mean=mean,
        deviations=within + between,
        minimum=np.array([part.minimum for part in parts]).min(axis=0),
        maximum=np.array([part.maximum for part in parts]).max(axis=0),
    )


@dataclass(frozen=True)
class StatisticsParty(PartyRole[Params, Measure | Pool, Moments]):
    """Measures its columns and, as leader of its column group, pools the measurements."""

    moments: bool
    ranges: bool

    def reply(
        self, context: PartyContext, task: Measure | Pool, data: DataSource
    ) -> Reply:
        """Seal the party's moments to the leader, or the pooled ones to the members."""
        leader, *members = group_of(context.session.layout, context.slot, "column")
        leads = context.slot.name == leader
        envelopes: list[PeerMessage] = []
        if isinstance(task, Pool):
            if leads:
                pooled = context.recall(PooledMoments)
                envelopes = [PeerMessage(peer=slot, content=pooled) for slot in members]
            return Reply(contribution=PooledColumns(), envelopes=envelopes)
        own = measure_moments(data, moments=self.moments, ranges=self.ranges)
        records: list[Record] = [OwnMoments.model_validate(dict(own)), RowsSummed()]
        if not leads:
            envelopes = [PeerMessage(peer=leader, content=own)]
        elif not members:
            records.append(merge_moments([own]))  # alone, so `receive` is not called
        return Reply(
            contribution=MeasuredColumns(), envelopes=envelopes, remember=records
        )

    def receive(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[Moments]]
    ) -> Sequence[Record]:
        """Pool the members' moments or, unless leader, store the pooled ones."""
        group = group_of(context.session.layout, context.slot, "column")
        contents = {envelope.peer: envelope.content for envelope in envelopes}
        width = context.session.member(context.slot.name).n_columns
        for content in contents.values():
            content.require(
                {"moments": width * self.moments, "ranges": width * self.ranges}
            )
            arrays = content.arrays.values()
            magnitudes.check_magnitudes("A party's moments", *arrays)
        if context.slot.name != group[0]:
            pooled = leader_content(group[0], envelopes, "Pooled moments")
            # Of the two kinds of envelope, a leader may send only this one.
            return [PooledMoments.narrow(pooled)]
        if set(contents) != set(group[1:]):
            raise ProtocolFailed(
                "The moments of a member of the column group are missing."
            )
        own = context.recall(OwnMoments)
        return [merge_moments([own, *(contents[slot] for slot in group[1:])])]

    def review(self, context: PartyContext, data: DataSource) -> str:
        """Return a question about columns that seem to be in other units than elsewhere."""
        if not self.moments:
            return ""
        own, pooled = context.recall(OwnMoments), context.recall(PooledMoments)
        return units.ask_about_units(context, data.columns, own, pooled)


def build_stage(
    *, moments: bool, ranges: bool, largest_group: int = MAX_GROUP_SLOTS
) -> Stage:
    """Return the stage that pools moments, ranges, or both.

    largest_group: column groups with more parties do not take part.
    """

    def slots(session: SessionContext) -> list[str]:
        layout = session.layout
        sizes = {
            slot.name: len(layout.column_group(slot.column)) for slot in layout.slots
        }
        return [name for name, size in sizes.items() if size <= largest_group]

    return Stage.relaying(
        Exchange(Measure, MeasuredColumns, slots=slots),
        Exchange(Pool, PooledColumns, slots=slots),
        name=NAME,
        party=lambda: StatisticsParty(moments=moments, ranges=ranges),
        envelopes=(Moments, PooledMoments),
    )

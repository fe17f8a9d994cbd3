"""Stage: anchors that the leader of a column group makes from its own rows.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `make-anchors` → `anchors-made` | `anchor-rows` from the leader to the members |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from clustering_protocols.contract import (
    Exchange,
    PartyRole,
    PeerMessage,
    Relay,
    Reply,
    Stage,
    content_of,
)
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.records.arrays import FloatArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.secrets import group_of
from clustering_protocols.shared_stages.statistics import magnitudes

from . import anchors, layouts
from .params import DataCollaboration, DcContext

_WARNING = (
    "The anchors of your column group were synthesised from your rows; its other "
    "members hold them."
)


class MakeAnchors(Record):
    """Task."""

    kind = "make-anchors"


class AnchorsMade(Record):
    """Contribution."""

    kind = "anchors-made"


class AnchorRows(Record):
    """Envelope and memory: X^anc of the column group."""

    kind = "anchor-rows"
    meaning = "Made-up rows near to yours, for the parties of your column group."

    rows: Annotated[FloatArray, Spec("r", "m")]


class AnchorsParty(PartyRole[DataCollaboration, MakeAnchors, AnchorRows]):
    """Makes anchors where it is the leader of its column group."""

    def reply(self, context: DcContext, task: MakeAnchors, data: DataSource) -> Reply:
        """Synthesise, seal, and say so."""
        leader, *others = group_of(context.session.layout, context.slot, "column")
        if context.slot.name != leader:
            return Reply(contribution=AnchorsMade())
        params = context.session.params
        n_rows = layouts.n_anchors(context.session)
        # Others drawn for a new attempt would tell more about the same rows.
        made = anchors.synthesise(
            params.anchor, n_rows, matrix(data), context.lasting_stream("anchors")
        )
        rows = AnchorRows(rows=made)
        return Reply(
            contribution=AnchorsMade(),
            envelopes=[PeerMessage(peer=slot, content=rows) for slot in others],
            remember=[rows],
            notes={"warning": _WARNING},
        )

    def receive(
        self, context: DcContext, envelopes: Sequence[PeerMessage[AnchorRows]]
    ) -> Sequence[Record]:
        """Keep the anchors that the leader made."""
        leader = group_of(context.session.layout, context.slot, "column")[0]
        rows = content_of(leader, envelopes, "Anchors")
        width = context.session.member(context.slot.name).n_columns
        rows.require({"m": width, "r": layouts.n_anchors(context.session)})
        magnitudes.check("An anchor", rows.rows)
        return [rows]


def stage() -> Stage:
    """Return the stage."""
    return Stage(
        name="anchors",
        analyst=lambda: Relay(MakeAnchors()),
        party=AnchorsParty,
        exchanges=(Exchange(MakeAnchors, AnchorsMade),),
        envelopes=(AnchorRows,),
    )

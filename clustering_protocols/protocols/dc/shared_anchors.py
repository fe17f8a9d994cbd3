"""Which anchors a session has, and the stage in which a leader makes them of its rows.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `make-anchors` → `anchors-made` | `anchor-rows` from the leader to the members |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from clustering_protocols.common.errors import ProtocolFailed
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

from . import anchors
from .params import DataCollaboration, DcContext, DcSession

LEAST_WIDTH = 2
"""Columns of a party that leaves one dimension out: of one alone it could not."""


def n_anchors(session: DcSession) -> int:
    """Return r; :class:`ProtocolFailed` if it is too small for the features."""
    n_features = sum(session.column_widths)
    r = anchors.n_anchors(session.params.anchor, n_features)
    needed = anchors.minimum_anchors(n_features)
    if r < needed:
        raise ProtocolFailed(
            f"anchor.n_rows is {r}; {n_features} features need at least {needed}."
        )
    return r


def check(session: DcSession) -> None:
    """Refuse single columns where one dimension stays at home, and what does not fit.

    Of one column alone every map is that column, up to shift and scale. Terms that let
    all dimensions out say so by a risk code; under others nobody has accepted it.

    Raises ProtocolFailed.
    """
    if session.params.leaves_one_out:
        _check_widths(session)
    n_anchors(session)
    n_rows, wanted = sum(session.row_counts), session.params.n_clusters
    if wanted > n_rows:
        raise ProtocolFailed(f"n_clusters is {wanted}; there are {n_rows} rows.")


def _check_widths(session: DcSession) -> None:
    narrow = [s for s in session.slots if session.member(s).n_columns < LEAST_WIDTH]
    if narrow:
        raise ProtocolFailed(
            f"One column alone of {', '.join(narrow)}: whatever the map, it would be "
            f"sent as it is. It takes {LEAST_WIDTH} at every party, or dimensions 'all'."
        )


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
        n_rows = n_anchors(context.session)
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
        rows.require({"m": width, "r": n_anchors(context.session)})
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

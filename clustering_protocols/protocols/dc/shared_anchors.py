"""Stage: anchors that the first party of a column group makes from its own rows.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `make-anchors` → `anchors-made` | `anchor-rows` from the first slot to the members |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from clustering_protocols.arrays import FloatArray, Spec
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
    Stage,
    ask_all,
)
from clustering_protocols.data import DataSource, matrix
from clustering_protocols.errors import EnvelopeRefused
from clustering_protocols.preparation.secrets import group_of
from clustering_protocols.records import Record

from . import anchors, layouts
from .params import DataCollaboration

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


class Making(Record):
    """The analyst's state."""

    kind = "making"


class AnchorRows(Record):
    """Envelope and memory: X^anc of the column group."""

    kind = "anchor-rows"

    rows: Annotated[FloatArray, Spec("r", "m")]


@dataclass(frozen=True)
class AnchorsAnalyst(AnalystRole):
    """Asks once and relays."""

    state = Making

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask everybody; only first slots have something to make."""
        return ask_all(session, MakeAnchors(), expects=AnchorsMade, state=Making())

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Finish: the envelopes go out with the next stage."""
        return Finish()


class AnchorsParty(PartyRole):
    """Makes anchors where it is the first slot of its column group."""

    def reply(self, context: PartyContext, task: Record, data: DataSource) -> Reply:
        """Synthesise, seal, and say so."""
        first, *others = group_of(context.session.layout, context.slot, "column")
        if context.slot.name != first:
            return Reply(contribution=AnchorsMade())
        params = DataCollaboration.model_validate(context.session.params)
        MakeAnchors.narrow(task)
        n_rows = layouts.n_anchors(context.session)
        made = anchors.synthesise(
            params.anchor, n_rows, matrix(data), context.stream("anchors")
        )
        rows = AnchorRows(rows=made)
        return Reply(
            contribution=AnchorsMade(),
            envelopes=[Outgoing(receiver=slot, content=rows) for slot in others],
            remember=[rows],
            notes={"warning": _WARNING},
        )

    def receive(
        self, context: PartyContext, envelopes: Sequence[Incoming]
    ) -> Sequence[Record]:
        """Keep the anchors that the first slot made."""
        first = group_of(context.session.layout, context.slot, "column")[0]
        if [envelope.sender for envelope in envelopes] != [first]:
            raise EnvelopeRefused("Anchors came from a slot that does not lead.")
        rows = AnchorRows.narrow(envelopes[0].content)
        width = context.session.member(context.slot.name).n_columns
        rows.require({"m": width, "r": layouts.n_anchors(context.session)})
        return [rows]


def stage() -> Stage:
    """Return the stage."""
    return Stage(
        name="anchors",
        analyst=AnchorsAnalyst,
        party=AnchorsParty,
        records=(MakeAnchors, AnchorsMade, Making, AnchorRows),
    )

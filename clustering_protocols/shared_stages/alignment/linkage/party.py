"""The party role: values masked, passed on, and hashed; rows selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from clustering_protocols.common.errors import EnvelopeRefused, ProtocolFailed
from clustering_protocols.contract import (
    Params,
    PartyContext,
    PartyRole,
    PeerMessage,
    Reply,
    content_of,
)
from clustering_protocols.contract.selection import Selection
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records.arrays import ByteArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.joint_mask import JointMask
from clustering_protocols.shared_stages.alignment.common_rows import select_common
from clustering_protocols.shared_stages.alignment.digests import Digests, check_selected
from clustering_protocols.shared_stages.alignment.match_keys.key_values import KeyValues
from clustering_protocols.shared_stages.alignment.params import Alignment

from . import messages
from .messages import MaskedKeys
from .rings import neighbour, ring_of

_Task = (
    messages.MaskKeys | messages.PassKeys | messages.ShowTokens | messages.SelectLinked
)
_Content = MaskedKeys | Digests


@dataclass(frozen=True)
class LinkageParty(PartyRole[Params, _Task, _Content]):
    """Masks its own values, and those of the others as they come round."""

    alignment: Alignment

    def takes_part(self, context: PartyContext, task: type[Record]) -> bool:
        """Return whether this party masks: where others hold the same rows."""
        return task is messages.SelectLinked or not _is_alone(context)

    def reply(self, context: PartyContext, task: _Task, data: DataSource) -> Reply:
        """Return the answer to the task that is due."""
        if isinstance(task, messages.MaskKeys):
            return self._mask(context, data)
        if isinstance(task, messages.PassKeys):
            return self._pass_on(context)
        if isinstance(task, messages.ShowTokens):
            return self._show(context)
        return self._select(context, task, data)

    def receive(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[_Content]]
    ) -> Sequence[Record]:
        """Keep what the party before sends: as many values as the rows it is of."""
        if context.memory.get(Selection) is not None:
            check_selected(context, envelopes)
            return []
        before = neighbour(_ring(context), context.slot.name, -1)
        content = content_of(before, envelopes, "Masked match keys")
        if not isinstance(content, MaskedKeys):
            raise EnvelopeRefused("The party before sends masked match keys.")
        self._check_list(context, content)
        return [content]

    def _check_list(self, context: PartyContext, sent: MaskedKeys) -> None:
        """Refuse a list of other masks than the round's, or of more values than rows."""
        held = context.memory.get(MaskedKeys)
        expected = 1 if held is None else held.n_masks + 1
        if sent.n_masks != expected or sent.n_masks >= len(_ring(context)):
            raise EnvelopeRefused("Masked match keys came out of turn.")
        origin = neighbour(_ring(context), context.slot.name, -sent.n_masks)
        n_rows = context.session.member(origin).n_rows
        sent.require({"k": len(self.alignment.match_keys), "t": n_rows})

    # The own list

    def _mask(self, context: PartyContext, data: DataSource) -> Reply:
        found = self.alignment.match(data)
        order = context.lasting_stream("list-order").permutation(data.n_rows)
        content = MaskedKeys(points=_mask_values(context, found, order), n_masks=1)
        sent = PeerMessage(peer=_next(context), content=content)
        return Reply(
            contribution=messages.KeysMasked(),
            envelopes=[sent],
            awaits=[_before(context)],
            remember=[messages.ListOrder(order=order)],
            notes=_quotas(context, len(found)),
        )

    def _select(
        self, context: PartyContext, task: messages.SelectLinked, data: DataSource
    ) -> Reply:
        return select_common(
            context,
            rows=_find_rows(context, task, data.n_rows),
            n_rows=task.n_rows,
            ids=(),  # a person's cells may differ
            data=data,
            alignment=self.alignment,
        )

    # The lists of others

    def _pass_on(self, context: PartyContext) -> Reply:
        """Mask and pass on; in a smaller row group the list has gone round already."""
        held = context.recall(MaskedKeys)
        if held.n_masks == len(_ring(context)) - 1:
            return Reply(contribution=messages.KeysPassed())
        content = MaskedKeys(points=_go_on(context, held), n_masks=held.n_masks + 1)
        return Reply(
            contribution=messages.KeysPassed(),
            envelopes=[PeerMessage(peer=_next(context), content=content)],
            awaits=[_before(context)],
            remember=[_drop_points(held)],
        )

    def _show(self, context: PartyContext) -> Reply:
        held = context.recall(MaskedKeys)
        if held.n_masks != len(_ring(context)) - 1 or not held.points.size:
            raise ProtocolFailed("The analyst asks for tokens out of turn.")
        return Reply(
            contribution=messages.KeyTokens(
                tokens=hash_points(_bind(context, "token"), _go_on(context, held))
            ),
            remember=[_drop_points(held)],
        )


def _ring(context: PartyContext) -> tuple[str, ...]:
    return ring_of(context.session.layout, context.slot.name)


def _is_alone(context: PartyContext) -> bool:
    return len(_ring(context)) == 1


def _next(context: PartyContext) -> str:
    return neighbour(_ring(context), context.slot.name, 1)


def _before(context: PartyContext) -> str:
    return neighbour(_ring(context), context.slot.name, -1)


def _joint_mask(context: PartyContext) -> JointMask:
    return JointMask(context.lasting_stream("mask"), context.engine)


def _bind(context: PartyContext, purpose: str) -> bytes:
    session, first = context.session, _ring(context)[0]
    row = session.layout.slot(first).row
    return bind(session.terms.session, session.agreement_digest, row, purpose)


def bind(session: str, agreement: str, row: int, purpose: str) -> bytes:
    """Return what values and tokens are bound to: an agreement and a ring.

    row: the row group of its first slot.
    """
    return length_prefixed("coterie/linkage/1", purpose, session, agreement, row)


def _mask_values(
    context: PartyContext, found: Sequence[KeyValues], order: IntArray
) -> ByteArray:
    """Return masked values (k, t, 32), and random points where there is none.

    order: of the rows in the list.
    """
    mask, filler = _joint_mask(context), context.lasting_stream("no-value")
    masked = []
    for number, key in enumerate(found):
        ordered = [_encode(key.values[row]) for row in order]
        masked.append(mask.begin(ordered, _bind(context, f"key {number}"), filler))
    return np.stack(masked)


def _encode(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def _go_on(context: PartyContext, held: MaskedKeys) -> ByteArray:
    flat = held.points.reshape(-1, held.points.shape[-1])
    return _joint_mask(context).go_on(flat).reshape(held.points.shape)


def _drop_points(held: MaskedKeys) -> MaskedKeys:
    """Return what is left to mask: memory is written in every later round."""
    return MaskedKeys(points=held.points[:, :0], n_masks=held.n_masks)


def hash_points(bound: bytes, points: ByteArray) -> ByteArray:
    """Return the SHA-256 of each point: not the point, which could be masked further."""
    begun = sha256(bound)
    made = []
    for point in points.reshape(-1, points.shape[-1]):
        hashed = begun.copy()
        hashed.update(point.tobytes())
        made.append(hashed.digest())
    return np.frombuffer(b"".join(made), np.uint8).reshape(
        *points.shape[:2], messages.TOKEN_BYTES
    )


def _quotas(context: PartyContext, n_keys: int) -> dict[str, object]:
    """Return who may bring how many values, for the operator to read before any leave."""
    session = context.session
    return {
        "values of match keys compared, at most": ", ".join(
            f"{slot} {n_keys * session.member(slot).n_rows}" for slot in _ring(context)
        )
    }


def _find_rows(
    context: PartyContext, task: messages.SelectLinked, n_rows: int
) -> IntArray:
    """Return the own rows that take part, in the order of all of the row group."""
    if _is_alone(context):
        return np.arange(n_rows)
    order = context.recall(messages.ListOrder).order
    if (task.rows >= len(order)).any() or len(np.unique(task.rows)) < len(task.rows):
        raise ProtocolFailed("The analyst selects rows that cannot be.")
    return order[task.rows]

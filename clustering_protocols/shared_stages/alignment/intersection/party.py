"""The party role: ids evaluated under a key of the leader, rows selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from clustering_protocols.common.errors import (
    EnvelopeRefused,
    GuardRefused,
    ProtocolFailed,
)
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
from clustering_protocols.numerics.randomness import KeyedStream, length_prefixed
from clustering_protocols.records.arrays import ByteArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.ristretto import N_BYTES, RistrettoAsker, RistrettoKey
from clustering_protocols.shared_stages.alignment.common_rows import (
    is_alone,
    select_common,
)
from clustering_protocols.shared_stages.alignment.digests import Digests, check_selected
from clustering_protocols.shared_stages.alignment.identifiers import IdentifiedRows
from clustering_protocols.shared_stages.alignment.params import Alignment

from . import messages
from .groups import leaders_of, led_by

_Task = messages.Blind | messages.Evaluate | messages.Unblind | messages.Select
_Content = messages.BlindedIds | messages.EvaluatedIds | Digests


class SortedTokens(NamedTuple):
    """A party's tokens (t, 32), sorted, and the places of their ids."""

    tokens: ByteArray
    order: IntArray


@dataclass(frozen=True)
class IntersectionParty(PartyRole[Params, _Task, _Content]):
    """Holds the key where it leads its row group, asks it elsewhere."""

    alignment: Alignment

    def takes_part(self, context: PartyContext, task: type[Record]) -> bool:
        """Return whether this party evaluates, or unblinds: as its row group has it."""
        if task is messages.Evaluate:
            return context.slot.name in led_by(context.session)
        if task is messages.Unblind:
            return context.slot.name in leaders_of(context.session)
        return True

    def reply(self, context: PartyContext, task: _Task, data: DataSource) -> Reply:
        """Return the answer to the task that is due."""
        if isinstance(task, messages.Evaluate):
            return self._evaluate(context)
        own = self._identify_rows(context, data)
        if isinstance(task, messages.Blind):
            return self._blind(context, own)
        if isinstance(task, messages.Unblind):
            return self._unblind(context, own)
        return _select(context, task, own, data, self.alignment)

    def receive(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[_Content]]
    ) -> Sequence[Record]:
        """Keep blinded ids, or answers, from whom they may come."""
        if context.memory.get(Selection) is not None:
            check_selected(context, envelopes)
            return []
        if context.slot.name in led_by(context.session):
            return [self._collect_blinded_ids(context, envelopes)]
        leader = leaders_of(context.session).get(context.slot.name, "")
        content = content_of(leader, envelopes, "Answers")
        if isinstance(content, messages.EvaluatedIds):
            return [content]
        raise EnvelopeRefused("A leader sends answers.")

    def _identify_rows(self, context: PartyContext, data: DataSource) -> IdentifiedRows:
        """Return the different ids; who shares rows with nobody needs none."""
        if is_alone(context):
            numbers = np.arange(data.n_rows)
            return IdentifiedRows(list(map(str, numbers)), numbers)
        return self.alignment.identify(data)

    def _collect_blinded_ids(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[_Content]]
    ) -> messages.ToEvaluate:
        """Refuse more ids from a member than the rows with which it joined."""
        members = led_by(context.session)[context.slot.name]
        sent = {
            e.peer: e.content
            for e in envelopes
            if isinstance(e.content, messages.BlindedIds)
        }
        if set(sent) != set(members) or len(sent) != len(envelopes):
            raise EnvelopeRefused("Blinded ids came from others than the row group.")
        for slot, blinded in sent.items():
            quota = context.session.member(slot).n_rows
            blinded.require({"w": N_BYTES})
            if len(blinded.elements) > quota:
                raise GuardRefused(
                    f"{slot!r} asks for {len(blinded.elements)} ids; it joined with "
                    f"{quota} rows."
                )
        return messages.ToEvaluate(
            elements=np.concatenate([sent[slot].elements for slot in members]),
            counts={slot: len(sent[slot].elements) for slot in members},
        )

    # What the leader does

    def _evaluate(self, context: PartyContext) -> Reply:
        """Answer each member, once in a session: quotas hold for all rounds together."""
        if context.memory.get(messages.EvaluatedTokens) is not None:
            raise ProtocolFailed("The analyst asks to evaluate ids a second time.")
        asked = context.recall(messages.ToEvaluate)
        found = _holder(context).evaluate(asked.elements)
        members = led_by(context.session)[context.slot.name]
        ends = np.cumsum([asked.counts[slot] for slot in members])
        parts = np.split(found, ends[:-1])
        return Reply(
            contribution=messages.EvaluatedTokens(),
            envelopes=[
                PeerMessage(peer=slot, content=messages.EvaluatedIds(elements=part))
                for slot, part in zip(members, parts, strict=True)
            ],
            remember=[messages.EvaluatedTokens(), _drop_elements(asked)],
        )

    # What the others do

    def _blind(self, context: PartyContext, own: IdentifiedRows) -> Reply:
        if context.slot.name in led_by(context.session):
            ids = _encode_ids(own)
            made = make_tokens(_bind(context), ids, _holder(context).values(ids))
            return Reply(
                contribution=messages.IdCount(n_ids=len(ids), tokens=made.tokens),
                remember=[messages.TokenOrder(order=made.order)],
                notes=_quotas(context),
            )
        nothing = np.empty((0, messages.TOKEN_BYTES), np.uint8)
        counted = messages.IdCount(n_ids=len(own.ids), tokens=nothing)
        leader = leaders_of(context.session).get(context.slot.name)
        if leader is None:
            return Reply(contribution=counted)
        elements = RistrettoAsker(_bind(context)).blind(
            _encode_ids(own), _derive_blinding_stream(context)
        )
        sent = PeerMessage(peer=leader, content=messages.BlindedIds(elements=elements))
        return Reply(contribution=counted, envelopes=[sent], notes=_quotas(context))

    def _unblind(self, context: PartyContext, own: IdentifiedRows) -> Reply:
        answers = context.recall(messages.EvaluatedIds)
        answers.require({"n": len(own.ids), "w": N_BYTES})
        ids = _encode_ids(own)
        values = RistrettoAsker(_bind(context)).values(
            ids, answers.elements, _derive_blinding_stream(context)
        )
        made = make_tokens(_bind(context), ids, values)
        done = messages.EvaluatedIds(elements=answers.elements[:0])
        return Reply(
            contribution=messages.PartyTokens(tokens=made.tokens),
            remember=[messages.TokenOrder(order=made.order), done],
        )


def _holder(context: PartyContext) -> RistrettoKey:
    """Return the key, which follows from this party's entropy in each round."""
    return RistrettoKey(context.lasting_stream("key"), _bind(context))


def _quotas(context: PartyContext) -> dict[str, object]:
    """Return who may bring how many ids, for the operator to read before any leave."""
    session = context.session
    group = session.layout.row_group(context.slot.row)
    return {
        "ids compared in your row group, at most": ", ".join(
            f"{slot} {session.member(slot).n_rows}" for slot in group
        )
    }


def _derive_blinding_stream(context: PartyContext) -> KeyedStream:
    return context.lasting_stream("blinding")


def _drop_elements(asked: messages.ToEvaluate) -> messages.ToEvaluate:
    """Return what is left to evaluate: memory is written in every later round."""
    return messages.ToEvaluate(elements=asked.elements[:0], counts={})


def _encode_ids(own: IdentifiedRows) -> list[bytes]:
    return [name.encode() for name in own.ids]


def _bind(context: PartyContext) -> bytes:
    session = context.session
    return bind(session.terms.session, session.agreement_digest, context.slot.row)


def bind(session: str, agreement: str, row: int) -> bytes:
    """Return what values and tokens are bound to: an agreement and a row group."""
    return length_prefixed("coterie/intersection/1", session, agreement, row)


def make_tokens(
    bound: bytes, ids: Sequence[bytes], values: Sequence[bytes]
) -> SortedTokens:
    """Return the SHA-256 of each value and id: not the value, which is the key's."""
    begun = sha256(length_prefixed("coterie/token/1", bound))
    made = []
    for name, value in zip(ids, values, strict=True):
        hashed = begun.copy()
        hashed.update(value)  # of fixed length
        hashed.update(name)
        made.append(hashed.digest())
    order = np.argsort(np.array(made), kind="stable").astype(np.int64)
    flat = np.frombuffer(b"".join(made), np.uint8)
    return SortedTokens(flat.reshape(-1, messages.TOKEN_BYTES)[order], order)


# Selecting


def _select(
    context: PartyContext,
    asked: messages.Select,
    own: IdentifiedRows,
    data: DataSource,
    alignment: Alignment,
) -> Reply:
    """Return the checksum of the common ids in canonical order; keep their rows."""
    chosen = _find_common_places(context, asked, own)
    return select_common(
        context,
        rows=own.rows[chosen],
        n_rows=asked.n_rows,
        ids=[own.ids[place] for place in chosen],
        data=data,
        alignment=alignment,
    )


def _find_common_places(
    context: PartyContext, asked: messages.Select, own: IdentifiedRows
) -> IntArray:
    """Return the places of the common ids among a party's ids, in canonical order."""
    if is_alone(context):
        return np.arange(len(own.ids))
    order = context.recall(messages.TokenOrder).order
    asked.require({"t": len(order)})
    chosen: IntArray = order[asked.common == 1]
    return chosen

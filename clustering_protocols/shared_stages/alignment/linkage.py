"""Stage: rows of the same people, linked by match keys within each row group.

The parties of a row group form a ring, in the order of their slots. Each masks the values
of its match keys under its own key, in its own secret order, and seals them to the next
party, which masks them again. The last party of the ring hashes the values, masked by all,
into tokens. Nobody reads tokens of its own rows, and no party can test a guess without all
others, not even together with the analyst. Each list goes round the ring once, and has
for each key as many values as its party has rows.

The analyst links the rows of the leader to those of each other party: two rows are
linked by the first key on which they agree, unless an earlier key has linked one of
them. It reports to each party which of its rows take part, but not by which key. Nobody
can check these links, as cells of one person may differ between tables.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `mask-keys` → `keys-masked` | `masked-keys` to the next party |
| of each party beyond two | `pass-keys` → `keys-passed` | `masked-keys` to the next |
| then | `show-tokens` → `key-tokens` | |
| last | `select-linked` → `digests` | |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from clustering_protocols.common.errors import (
    EnvelopeRefused,
    InvalidArray,
    ProtocolFailed,
)
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Exchange,
    Finish,
    Params,
    PartyContext,
    PartyRole,
    PeerMessage,
    Reply,
    SessionContext,
    Stage,
    all_of,
    content_of,
)
from clustering_protocols.contract.published import Selection
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records.arrays import ByteArray, IntArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.ristretto import JointMask, hash_with_prefix
from clustering_protocols.shared_stages.alignment.digests import (
    Digests,
    check_envelopes_after_selection,
    check_overlap,
    compare_digests,
    is_alone_in_row_group,
    select_common_rows,
)
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.terms import Layout

NAME = "linkage"


def build_stage(alignment: Alignment, layout: Layout) -> Stage:
    """Return the stage; it needs the secrets of row and column groups."""
    passes = n_passes(layout)
    passing = Exchange(PassKeys, KeysPassed, passes, passes)
    return Stage(
        name=NAME,
        analyst=lambda: LinkageAnalyst(alignment),
        party=lambda: LinkageParty(alignment),
        exchanges=(
            Exchange(MaskKeys, KeysMasked),
            *([passing] if passes else []),
            Exchange(ShowTokens, KeyTokens),
            Exchange(SelectLinked, Digests, own=("rows",)),
        ),
        envelopes=(MaskedKeys, Digests),
    )


def find_rings(layout: Layout) -> list[tuple[str, ...]]:
    """Return the row groups of two parties or more, which are the rings."""
    return [group for group in layout.row_groups if len(group) > 1]


def n_passes(layout: Layout) -> int:
    """Return in how many rounds parties pass lists on."""
    return max((len(group) - 2 for group in find_rings(layout)), default=0)


def neighbour(group: Sequence[str], slot: str, steps: int) -> str:
    """Return the slot ``steps`` after this one in the ring; before it if negative."""
    return group[(group.index(slot) + steps) % len(group)]


Tokens = NDArray[np.bytes_]


def as_bytes(slot: str, tokens: ByteArray) -> Tokens:
    """Return tokens (k, t, 32) as byte strings (k, t).

    Raises InvalidArray if a key has a token twice: parties must not send shared values.
    """
    n_keys, n_rows, width = tokens.shape
    flat: Tokens = np.ascontiguousarray(tokens).view(f"S{width}")
    texts = flat.reshape(n_keys, n_rows)
    ordered = np.sort(texts, axis=1)
    if (ordered[:, :-1] == ordered[:, 1:]).any():
        raise InvalidArray(f"The tokens of {slot!r} contain a duplicate.")
    return texts


def link_rows(leader: Tokens, other: Tokens) -> IntArray:
    """Return the row of another party to which each row of the leader is linked, or -1.

    A key links rows that no earlier key has linked, so that each row is linked once.

    leader, other: (k, n), (k, m); the keys in their order.
    """
    linked = np.full(leader.shape[1], -1, dtype=np.int64)
    free = np.ones(other.shape[1], dtype=bool)
    for tokens, other_tokens in zip(leader, other, strict=True):
        rows, other_rows = np.flatnonzero(linked < 0), np.flatnonzero(free)
        _, matches, other_matches = np.intersect1d(
            tokens[rows],
            other_tokens[other_rows],
            assume_unique=True,
            return_indices=True,
        )
        linked[rows[matches]] = other_rows[other_matches]
        free[other_rows[other_matches]] = False
    return linked


def find_common_rows(tokens: Sequence[Tokens]) -> list[IntArray]:
    """Return each party's list positions of the rows that all have, in one order.

    A row of the leader takes part if each other party has a row that is linked to it. Rows
    that only other parties have in common do not.
    """
    leader, *members = tokens
    links = [link_rows(leader, member) for member in members]
    rows = np.arange(leader.shape[1], dtype=np.int64)
    common = np.flatnonzero(np.all([linked >= 0 for linked in links], axis=0))
    return [positions[common] for positions in (rows, *links)]


TOKEN_BYTES = 32

_Points = Annotated[ByteArray, Spec("k", "t", 32)]


class MaskKeys(Record):
    """Task: mask the values of your match keys for the next party."""

    kind = "mask-keys"


class KeysMasked(Record):
    """Contribution."""

    kind = "keys-masked"


class MaskedKeys(Record):
    """Envelope and memory: values of one party's match keys, key by key, row by row.

    n_masks: the number of parties that have masked them.
    """

    kind = "masked-keys"
    reach = "hidden"
    meaning = (
        "Match keys of people, masked by each party in turn: nobody can read them."
    )

    points: _Points
    n_masks: int = Field(ge=1)


class PassKeys(Record):
    """Task: mask the values that you hold, and pass them on."""

    kind = "pass-keys"


class KeysPassed(Record):
    """Contribution."""

    kind = "keys-passed"


class ShowTokens(Record):
    """Task: mask the values that you hold, and send their tokens."""

    kind = "show-tokens"


class KeyTokens(Record):
    """Contribution: tokens of the next party's rows, key by key."""

    kind = "key-tokens"
    reach = "agreement"
    meaning = "Keyed tokens of match keys; no name and no id can be read."

    tokens: _Points


class ListOrder(Record):
    """Memory: ``order[k]`` is the party's own row at position k of its list."""

    kind = "list-order"

    order: Annotated[IntArray, Spec("t", low=0)]


class SelectLinked(Record):
    """Task: the positions of your list that take part, and the rows of each slot.

    rows: in the common order of the row group; empty for a slot that is alone in its row
        group: all its rows take part.
    """

    kind = "select-linked"

    rows: Annotated[IntArray, Spec("t", low=0)]
    n_rows: dict[str, int]


class LinkageState(Record):
    """The analyst's state: the open task, and how often parties passed lists on."""

    kind = "linking"

    asked: Literal["mask-keys", "pass-keys", "show-tokens", "select-linked"]
    n_passed: int = 0
    n_rows: dict[str, int]


@dataclass(frozen=True)
class LinkageAnalyst(AnalystRole[Params, Record, LinkageState]):
    """Asks for three rounds, and for one more per party beyond two in a row group."""

    alignment: Alignment

    state = LinkageState

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask every party that shares rows for masked values."""
        return _ask_all_rings(session, MaskKeys(), 0)

    def step(
        self,
        session: SessionContext,
        state: LinkageState,
        contributions: Mapping[str, Record],
    ) -> Ask | Finish:
        """Return the next round; at the end the numbers of rows that take part."""
        if state.asked == "select-linked":
            compare_digests(session, all_of(Digests, contributions))
            return Finish(n_rows=state.n_rows)
        if state.asked == "show-tokens":
            return self._ask_selection(session, contributions)
        if state.n_passed < n_passes(session.layout):
            return _ask_all_rings(session, PassKeys(), state.n_passed + 1)
        n_keys = self.alignment.n_keys
        sizes = {
            slot: {"k": n_keys, "t": session.member(neighbour(group, slot, 1)).n_rows}
            for group in find_rings(session.layout)
            for slot in group
        }
        return Ask(
            state=LinkageState(asked="show-tokens", n_rows={}),
            tasks=dict.fromkeys(sizes, ShowTokens()),
            dims=sizes,
        )

    def _ask_selection(
        self, session: SessionContext, contributions: Mapping[str, Record]
    ) -> Ask:
        n_rows = {slot: session.member(slot).n_rows for slot in session.slots}
        rows = dict.fromkeys(session.slots, np.empty(0, dtype=np.int64))
        for group, positions in link_all_rings(session, contributions).items():
            n_common = len(positions[0])
            check_overlap(session, group, n_common, self.alignment.minimum_overlap)
            n_rows |= dict.fromkeys(group, n_common)
            rows |= zip(group, positions, strict=True)
        tasks = {
            slot: SelectLinked(rows=rows[slot], n_rows=n_rows) for slot in session.slots
        }
        return Ask(
            state=LinkageState(asked="select-linked", n_rows=n_rows), tasks=tasks
        )


def link_all_rings(
    session: SessionContext, contributions: Mapping[str, Record]
) -> dict[tuple[str, ...], list[IntArray]]:
    """Return the linked list positions of each ring, from all parties' tokens."""
    answers = all_of(KeyTokens, contributions)
    positions = {}
    for group in find_rings(session.layout):
        # the party before a slot in the ring sends the tokens of its rows
        tokens = [answers[neighbour(group, slot, -1)].tokens for slot in group]
        positions[group] = find_common_rows(list(map(as_bytes, group, tokens)))
    return positions


def _ask_all_rings(
    session: SessionContext, task: MaskKeys | PassKeys, n_passed: int
) -> Ask:
    slots = [slot for group in find_rings(session.layout) for slot in group]
    asked: Literal["mask-keys", "pass-keys"] = "pass-keys" if n_passed else "mask-keys"
    state = LinkageState(asked=asked, n_passed=n_passed, n_rows={})
    return Ask(state=state, tasks=dict.fromkeys(slots, task))


_Task = MaskKeys | PassKeys | ShowTokens | SelectLinked
_Content = MaskedKeys | Digests


@dataclass(frozen=True)
class LinkageParty(PartyRole[Params, _Task, _Content]):
    """Masks its own values, and then those of the other parties.

    shuffles: whether it permutes lists of others, so that nobody can follow a row round
        the ring.
    """

    alignment: Alignment
    shuffles: bool = False

    def takes_part(self, context: PartyContext, task: type[Record]) -> bool:
        """Return whether this party masks: only where others hold the same rows."""
        return task is SelectLinked or not is_alone_in_row_group(context)

    def reply(self, context: PartyContext, task: _Task, data: DataSource) -> Reply:
        """Return the answer to the task that is due."""
        if isinstance(task, MaskKeys):
            return self._mask_own_keys(context, data)
        if isinstance(task, PassKeys):
            return self._pass_list_on(context)
        if isinstance(task, ShowTokens):
            return self._send_tokens(context)
        return select_common_rows(
            context,
            rows=_selected_rows(context, task, data.n_rows),
            n_rows=task.n_rows,
            ids=(),  # not compared: a person's cells may differ
            data=data,
            alignment=self.alignment,
        )

    def receive(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[_Content]]
    ) -> Sequence[Record]:
        """Store the list that the previous party sent; check turn and size."""
        if context.memory.get(Selection) is not None:
            check_envelopes_after_selection(context, envelopes)
            return []
        content = content_of(_previous_in_ring(context), envelopes, "Masked match keys")
        if not isinstance(content, MaskedKeys):
            raise EnvelopeRefused("The previous party may send only masked match keys.")
        last = context.memory.get(MaskedKeys)
        expected = 1 if last is None else last.n_masks + 1
        if content.n_masks != expected or content.n_masks >= len(_own_ring(context)):
            raise EnvelopeRefused("Masked match keys came out of turn.")
        origin = neighbour(_own_ring(context), context.slot.name, -content.n_masks)
        n_rows = context.session.member(origin).n_rows
        content.require({"k": self.alignment.n_keys, "t": n_rows})
        return [content]

    # The party's own list

    def _mask_own_keys(self, context: PartyContext, data: DataSource) -> Reply:
        keys = self.alignment.match_key_values(data)
        order = context.lasting_stream("list-order").permutation(data.n_rows)
        mask, filler = _joint_mask(context), context.lasting_stream("no-value")
        masked = []
        for number, key in enumerate(keys):
            values = (key.values[row] for row in order)
            ordered = [None if value is None else value.encode() for value in values]
            masked.append(
                mask.begin(ordered, _binding(context, f"key {number}"), filler)
            )
        content = MaskedKeys(points=np.stack(masked), n_masks=1)
        quotas = ", ".join(
            f"{slot} {len(keys) * context.session.member(slot).n_rows}"
            for slot in _own_ring(context)
        )
        return Reply(
            contribution=KeysMasked(),
            envelopes=[PeerMessage(peer=_next_in_ring(context), content=content)],
            awaits=[_previous_in_ring(context)],
            remember=[ListOrder(order=order)],
            notes={"values of match keys compared, at most": quotas},
        )

    # The lists of others

    def _pass_list_on(self, context: PartyContext) -> Reply:
        incoming = context.recall(MaskedKeys)
        if incoming.n_masks == len(_own_ring(context)) - 1:
            return Reply(contribution=KeysPassed())  # a smaller ring is finished
        points = self._mask_incoming(context, incoming)
        content = MaskedKeys(points=points, n_masks=incoming.n_masks + 1)
        return Reply(
            contribution=KeysPassed(),
            envelopes=[PeerMessage(peer=_next_in_ring(context), content=content)],
            awaits=[_previous_in_ring(context)],
            remember=[_drop_points(incoming)],
        )

    def _send_tokens(self, context: PartyContext) -> Reply:
        incoming = context.recall(MaskedKeys)
        if incoming.n_masks != len(_own_ring(context)) - 1 or not incoming.points.size:
            raise ProtocolFailed("The analyst asks for tokens out of turn.")
        points = self._mask_incoming(context, incoming)
        return Reply(
            contribution=KeyTokens(
                tokens=hash_points(_binding(context, "token"), points)
            ),
            remember=[_drop_points(incoming)],
        )

    def _mask_incoming(self, context: PartyContext, incoming: MaskedKeys) -> ByteArray:
        points = incoming.points
        if self.shuffles:
            stream = context.lasting_stream(f"shuffle {incoming.n_masks}")
            points = points[:, stream.permutation(points.shape[1])]
        flat = points.reshape(-1, points.shape[-1])
        return _joint_mask(context).mask_again(flat).reshape(points.shape)


def _own_ring(context: PartyContext) -> tuple[str, ...]:
    return context.session.layout.row_group(context.slot.row)


def _next_in_ring(context: PartyContext) -> str:
    return neighbour(_own_ring(context), context.slot.name, 1)


def _previous_in_ring(context: PartyContext) -> str:
    return neighbour(_own_ring(context), context.slot.name, -1)


def _joint_mask(context: PartyContext) -> JointMask:
    return JointMask(context.lasting_stream("mask"), context.engine)


def _binding(context: PartyContext, purpose: str) -> bytes:
    session, row = context.session, context.slot.row
    return binding(session.terms.session, session.agreement_digest, row, purpose)


def binding(session: str, agreement: str, row: int, purpose: str) -> bytes:
    """Return bytes that bind values or tokens to an agreement, row group and purpose."""
    return length_prefixed("coterie/linkage/1", purpose, session, agreement, row)


def _drop_points(masked: MaskedKeys) -> MaskedKeys:
    """Return the record without points: memory is written in every later round."""
    return MaskedKeys(points=masked.points[:, :0], n_masks=masked.n_masks)


def hash_points(context: bytes, points: ByteArray) -> ByteArray:
    """Return the SHA-256 of each point, as nobody can mask a hash further."""
    flat = points.reshape(-1, points.shape[-1])
    digests = hash_with_prefix(sha256(context), map(bytes, flat))
    tokens = np.frombuffer(b"".join(digests), np.uint8)
    return tokens.reshape(*points.shape[:2], TOKEN_BYTES)


def _selected_rows(context: PartyContext, task: SelectLinked, n_rows: int) -> IntArray:
    """Return this party's rows that take part, in the row group's common order."""
    if is_alone_in_row_group(context):
        return np.arange(n_rows)
    order = context.recall(ListOrder).order
    if (task.rows >= len(order)).any() or len(np.unique(task.rows)) < len(task.rows):
        raise ProtocolFailed("The analyst selects missing or repeated rows.")
    return order[task.rows]

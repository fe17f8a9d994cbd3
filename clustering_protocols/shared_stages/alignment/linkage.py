"""Stage: link the rows of the same people, by ids or match keys, within each row group.

The parties of a row group form a ring, in slot order. Each party shuffles its list of
ids or match key values, masks them under its own key, and sends them in an envelope to
the next party, which masks them again. Each list goes round the ring once; the last
party hashes the values, which all parties have masked by then, into tokens. No party
sees the tokens of its own rows, and nobody can compute the token of a guess without the
help of all parties. For each key, a list has one value per row of its party. If rows
have ids, the id is the only key.

A party masks each list of another party once, and only if it has as many values as that
party has rows in the roster. So all others together, even with the analyst, can test
one guess for each of their rows and keys.

The analyst links the rows of the leader to those of each other party. Two rows are
linked by the first key on which they agree, unless an earlier key has already linked
one of them. The analyst tells each party which of its rows take part, but not by which
key they were linked. If the key is the id, a keyed digest of the common ids proves that
the whole row group has selected the same rows. Links by match keys cannot be checked,
because cells of the same person may differ between tables.

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
    leader_content,
    narrow_all,
)
from clustering_protocols.contract.published import Selection
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records.arrays import ByteArray, IntArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.ristretto import (
    RistrettoKey,
    hash_values,
    hash_with_prefix,
)
from clustering_protocols.shared_stages.alignment.cell_values import rows_without_id
from clustering_protocols.shared_stages.alignment.digests import (
    Digests,
    check_envelopes_after_selection,
    check_overlap,
    compare_digests,
    is_alone_in_row_group,
    own_row_group,
    select_common_rows,
)
from clustering_protocols.shared_stages.alignment.identifiers import normalise_ids
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.shared_stages.row_selection import shared_row_groups
from clustering_protocols.terms.terms import Layout

NAME = "linkage"


def build_stage(alignment: Alignment, layout: Layout) -> Stage:
    """Return the stage, which needs the secrets of row and column groups."""
    return Stage(
        name=NAME,
        analyst=lambda: LinkageAnalyst(alignment),
        party=lambda: LinkageParty(alignment),
        exchanges=(
            *build_ring_exchanges(layout),
            Exchange(SelectLinked, Digests, own=("rows",)),
        ),
        envelopes=(MaskedKeys, Digests),
    )


def build_ring_exchanges(layout: Layout) -> tuple[Exchange, ...]:
    """Return the exchanges in which lists go round all rings and are hashed."""
    passes = n_passes(layout)
    passing = Exchange(PassKeys, KeysPassed, passes, passes, slots=_ring_slots)
    return (
        Exchange(MaskKeys, KeysMasked, slots=_ring_slots),
        *([passing] if passes else []),
        Exchange(ShowTokens, KeyTokens, slots=_ring_slots),
    )


def _ring_slots(session: SessionContext) -> list[str]:
    return [slot for group in shared_row_groups(session.layout) for slot in group]


def n_passes(layout: Layout) -> int:
    """Return the number of rounds in which parties pass lists on to the next party."""
    return max((len(group) - 2 for group in shared_row_groups(layout)), default=0)


def neighbour(group: Sequence[str], slot: str, steps: int) -> str:
    """Return the slot that is ``steps`` positions after this one in the ring."""
    return group[(group.index(slot) + steps) % len(group)]


Tokens = NDArray[np.bytes_]


def as_bytes(slot: str, tokens: ByteArray) -> Tokens:
    """Return tokens (k, t, 32) as byte strings (k, t).

    Raises InvalidArray if a token of a key occurs twice: parties must leave out values
        that several of their rows share.
    """
    n_keys, n_rows, width = tokens.shape
    flat: Tokens = np.ascontiguousarray(tokens).view(f"S{width}")
    texts = flat.reshape(n_keys, n_rows)
    ordered = np.sort(texts, axis=1)
    if (ordered[:, :-1] == ordered[:, 1:]).any():
        raise InvalidArray(f"The tokens of {slot!r} contain a duplicate.")
    return texts


def link_rows(leader: Tokens, other: Tokens) -> IntArray:
    """Link each row of the leader to a row of another party.

    Keys are tried in order, and each key links only rows that no earlier key has
    linked. So every row is linked at most once.

    leader, other: bytes (k, n) and (k, m); the tokens of each key.

    Returns int64 (n,): the linked row of the other party, or -1 if there is none.
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
    """Return, for each party, the list positions of the common rows, in a common order.

    A row of the leader is common if it is linked to a row of every other party. People
    who are missing from the leader's table do not take part.
    """
    leader, *members = tokens
    links = [link_rows(leader, member) for member in members]
    rows = np.arange(leader.shape[1], dtype=np.int64)
    common = np.flatnonzero(np.all([linked >= 0 for linked in links], axis=0))
    return [positions[common] for positions in (rows, *links)]


TOKEN_BYTES = 32

_Points = Annotated[ByteArray, Spec("k", "t", 32)]


class MaskKeys(Record):
    """Task: mask your ids or match key values for the next party."""

    kind = "mask-keys"


class KeysMasked(Record):
    """Contribution: confirms that the masked values were sent to the next party."""

    kind = "keys-masked"


class MaskedKeys(Record):
    """Envelope and memory: a party's list of masked ids or match key values.

    points: uint8 (k, t, 32); the masked value of each key and row.
    n_masks: the number of parties that have masked the list.
    """

    kind = "masked-keys"
    reach = "hidden"
    meaning = "Ids or match keys, masked by each party in turn: nobody can read them."

    points: _Points
    n_masks: int = Field(ge=1)


class PassKeys(Record):
    """Task: mask the list that you received, and pass it on to the next party."""

    kind = "pass-keys"


class KeysPassed(Record):
    """Contribution: confirms that the party passed the list on, if that was needed."""

    kind = "keys-passed"


class ShowTokens(Record):
    """Task: mask the list that you received, and send its tokens."""

    kind = "show-tokens"


class KeyTokens(Record):
    """Contribution: the tokens (k, t, 32) of the next party's rows, for each key."""

    kind = "key-tokens"
    reach = "agreement"
    meaning = "Keyed tokens of ids or match keys; no name and no id can be read."

    tokens: _Points


class ListOrder(Record):
    """Memory: ``order[k]`` is the number of the party's row at position k of its list."""

    kind = "list-order"

    order: Annotated[IntArray, Spec("t", low=0)]


class SelectLinked(Record):
    """Task: select the linked rows.

    rows: their positions in the slot's list, in the common order of the row group. The
        array is empty for a slot that is alone in its row group, since all of its rows
        take part.
    n_rows: the number of participating rows of each slot.
    """

    kind = "select-linked"

    rows: Annotated[IntArray, Spec("t", low=0)]
    n_rows: dict[str, int]


class LinkageState(Record):
    """The analyst's state: the open task, and the number of passes of lists so far."""

    kind = "linking"

    asked: Literal["mask-keys", "pass-keys", "show-tokens", "select-linked"]
    n_passed: int = 0
    n_rows: dict[str, int] = Field(default_factory=dict)


@dataclass(frozen=True)
class LinkageAnalyst(AnalystRole[Params, Record, LinkageState]):
    """Links rows in three rounds, plus one for each party beyond two in a ring."""

    alignment: Alignment

    state = LinkageState

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask every party that shares rows to mask its ids or match key values."""
        return _ask_all_rings(session, MaskKeys(), 0)

    def step(
        self,
        session: SessionContext,
        state: LinkageState,
        contributions: Mapping[str, Record],
    ) -> Ask | Finish:
        """Open the next round, or finish with the numbers of rows that take part."""
        if state.asked == "select-linked":
            compare_digests(session, narrow_all(Digests, contributions))
            return Finish(n_rows=state.n_rows)
        if state.asked == "show-tokens":
            return self._ask_selection(session, contributions)
        if state.n_passed < n_passes(session.layout):
            return _ask_all_rings(session, PassKeys(), state.n_passed + 1)
        n_keys = self.alignment.n_keys
        sizes = {
            slot: {"k": n_keys, "t": session.member(neighbour(group, slot, 1)).n_rows}
            for group in shared_row_groups(session.layout)
            for slot in group
        }
        return Ask(
            state=LinkageState(asked="show-tokens"),
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
    """Return, for each ring, the list positions of every party's linked rows."""
    answers = narrow_all(KeyTokens, contributions)
    positions = {}
    for group in shared_row_groups(session.layout):
        # The tokens of a slot's rows come from the party before it in the ring.
        tokens = [answers[neighbour(group, slot, -1)].tokens for slot in group]
        positions[group] = find_common_rows(list(map(as_bytes, group, tokens)))
    return positions


def _ask_all_rings(
    session: SessionContext, task: MaskKeys | PassKeys, n_passed: int
) -> Ask:
    asked: Literal["mask-keys", "pass-keys"] = "pass-keys" if n_passed else "mask-keys"
    state = LinkageState(asked=asked, n_passed=n_passed)
    return Ask(state=state, tasks=dict.fromkeys(_ring_slots(session), task))


_Task = MaskKeys | PassKeys | ShowTokens | SelectLinked
_Content = MaskedKeys | Digests


@dataclass(frozen=True)
class LinkageParty(PartyRole[Params, _Task, _Content]):
    """Masks its own ids or match key values, and then those of the other parties.

    shuffles: whether the party also permutes the lists of others, so that nobody can
        follow a row round the ring.
    """

    alignment: Alignment
    shuffles: bool = False

    def reply(self, context: PartyContext, task: _Task, data: DataSource) -> Reply:
        """Return the reply to a task of this stage."""
        if isinstance(task, MaskKeys):
            return self._mask_own_keys(context, data)
        if isinstance(task, PassKeys):
            return self._pass_list_on(context)
        if isinstance(task, ShowTokens):
            return self._send_tokens(context)
        rows = _selected_rows(context, task, data.n_rows)
        return select_common_rows(
            context,
            rows=rows,
            n_rows=task.n_rows,
            ids=self._selected_ids(context, rows, data),
            data=data,
            alignment=self.alignment,
        )

    def receive(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[_Content]]
    ) -> Sequence[Record]:
        """Store the list that the previous party sent.

        Raises EnvelopeRefused if another list is due, InvalidArray if its size is wrong.
        """
        if context.memory.get(Selection) is not None:
            check_envelopes_after_selection(context, envelopes)
            return []
        content = leader_content(
            _neighbour_in_ring(context, -1), envelopes, "A list of masked values"
        )
        if not isinstance(content, MaskedKeys):
            raise EnvelopeRefused("The previous party may send only masked values.")
        last = context.memory.get(MaskedKeys)
        expected = 1 if last is None else last.n_masks + 1
        ring = own_row_group(context)
        if content.n_masks != expected or content.n_masks >= len(ring):
            raise EnvelopeRefused("Masked values came out of turn.")
        origin = _neighbour_in_ring(context, -content.n_masks)
        n_rows = context.session.member(origin).n_rows
        content.require({"k": self.alignment.n_keys, "t": n_rows})
        return [content]

    # The party's own list

    def _selected_ids(
        self, context: PartyContext, rows: IntArray, data: DataSource
    ) -> Sequence[str]:
        """Return the ids of selected rows, which are equal for all members of the ring.

        Without ids, the result is empty, as a person's cells may differ between tables.
        """
        if self.alignment.match_keys or is_alone_in_row_group(context):
            return ()
        if self.alignment.duplicates == "first":  # all rows decide which is the first
            (key,) = self.alignment.match_key_values(data)
            ids = [name for row in rows if (name := key.values[row]) is not None]
        else:
            every_id = data.ids or ()
            nameless = set(rows_without_id(every_id))
            names = [every_id[row] for row in rows if row not in nameless]
            ids = list(normalise_ids(names, self.alignment.normalisation))
        if len(ids) < len(rows):
            raise ProtocolFailed(
                "The analyst selects rows whose ids were not compared."
            )
        return ids

    def _mask_own_keys(self, context: PartyContext, data: DataSource) -> Reply:
        keys = self.alignment.match_key_values(data)
        order = context.lasting_stream("list-order").permutation(data.n_rows)
        mask = _joint_mask(context)
        filler = context.lasting_stream("no-value")
        masked = []
        for number, key in enumerate(keys):
            values = (key.values[row] for row in order)
            ordered = [None if value is None else value.encode() for value in values]
            purpose = _binding(context, f"key {number}")
            masked.append(mask.evaluate(hash_values(ordered, purpose, filler)))
        content = MaskedKeys(points=np.stack(masked), n_masks=1)
        kind = "values of match keys" if self.alignment.match_keys else "ids"
        quotas = ", ".join(
            f"{slot} {len(keys) * context.session.member(slot).n_rows}"
            for slot in own_row_group(context)
        )
        return Reply(
            contribution=KeysMasked(),
            envelopes=[
                PeerMessage(peer=_neighbour_in_ring(context, 1), content=content)
            ],
            awaits=[_neighbour_in_ring(context, -1)],
            remember=[ListOrder(order=order)],
            notes={f"{kind} compared in your row group, at most": quotas},
        )

    # The lists of others

    def _pass_list_on(self, context: PartyContext) -> Reply:
        incoming = context.recall(MaskedKeys)
        if incoming.n_masks == len(own_row_group(context)) - 1:
            return Reply(contribution=KeysPassed())  # this ring is smaller than others
        points = self._mask_incoming(context, incoming)
        content = MaskedKeys(points=points, n_masks=incoming.n_masks + 1)
        return Reply(
            contribution=KeysPassed(),
            envelopes=[
                PeerMessage(peer=_neighbour_in_ring(context, 1), content=content)
            ],
            awaits=[_neighbour_in_ring(context, -1)],
            remember=[_drop_points(incoming)],
        )

    def _send_tokens(self, context: PartyContext) -> Reply:
        incoming = context.recall(MaskedKeys)
        if incoming.n_masks != len(own_row_group(context)) - 1:
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
        if not points.size:
            raise ProtocolFailed("The analyst asks to mask a list a second time.")
        if self.shuffles:
            stream = context.lasting_stream(f"shuffle {incoming.n_masks}")
            points = points[:, stream.permutation(points.shape[1])]
        flat = points.reshape(-1, points.shape[-1])
        return _joint_mask(context).multiply(flat).reshape(points.shape)


def _neighbour_in_ring(context: PartyContext, steps: int) -> str:
    """Return the slot that is ``steps`` positions after this party in its ring."""
    return neighbour(own_row_group(context), context.slot.name, steps)


def _joint_mask(context: PartyContext) -> RistrettoKey:
    return RistrettoKey(context.lasting_stream("mask"), context.engine)


def _binding(context: PartyContext, purpose: str) -> bytes:
    session, row = context.session, context.slot.row
    return binding(session.terms.session, session.agreement_digest, row, purpose)


def binding(session: str, agreement: str, row: int, purpose: str) -> bytes:
    """Return the bytes that bind values to an agreement, a row group and a purpose."""
    return length_prefixed("coterie/linkage/1", purpose, session, agreement, row)


def _drop_points(masked: MaskedKeys) -> MaskedKeys:
    """Return the record without its points, to save memory in later rounds."""
    return MaskedKeys(points=masked.points[:, :0], n_masks=masked.n_masks)


def hash_points(context: bytes, points: ByteArray) -> ByteArray:
    """Return the SHA-256 (k, t, 32) of each point. A hash cannot be masked again."""
    flat = points.reshape(-1, points.shape[-1])
    digests = hash_with_prefix(sha256(context), map(bytes, flat))
    tokens = np.frombuffer(b"".join(digests), np.uint8)
    return tokens.reshape(*points.shape[:2], TOKEN_BYTES)


def _selected_rows(context: PartyContext, task: SelectLinked, n_rows: int) -> IntArray:
    """Return this party's participating rows, in the common order of the row group."""
    if is_alone_in_row_group(context):
        return np.arange(n_rows)
    order = context.recall(ListOrder).order
    if (task.rows >= len(order)).any() or len(np.unique(task.rows)) < len(task.rows):
        raise ProtocolFailed("The analyst selects missing or repeated rows.")
    return order[task.rows]

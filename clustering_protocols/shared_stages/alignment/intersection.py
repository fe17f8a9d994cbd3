"""Stage: find rows with common ids by private set intersection within each row group.

The leader of a row group holds a key. The members send the leader their blinded ids,
and the leader evaluates these ids under its key
(:mod:`clustering_protocols.secrecy.ristretto`). Blinded ids and evaluations travel in
envelopes that the analyst cannot open. Then every party sends the analyst
tokens: hashes of each id together with its evaluation. Equal ids have equal tokens, and
without the key nobody can tell which id a token belongs to. The analyst reports which
tokens are common. Common rows are sorted by their tokens, and a keyed digest of their
ids proves that the whole row group has selected the same rows.

A leader evaluates ids only once, and for each member at most as many ids as this member
has rows in the roster. In a row group of one slot, all rows take part.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `blind` → `counted` | `blinded-ids` from members to leaders |
| 2 | `evaluate` → `evaluated` (leaders) | `answers` from leaders to members |
| 3 | `unblind` → `shown` (members) | |
| 4 | `select` → `digests` | |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from clustering_protocols.common.errors import (
    EnvelopeRefused,
    GuardRefused,
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
    N_BYTES,
    RistrettoKey,
    blind,
    hash_ids,
    hash_with_prefix,
    unblind,
)
from clustering_protocols.shared_stages.alignment.digests import (
    Digests,
    check_envelopes_after_selection,
    check_overlap,
    compare_digests,
    is_alone_in_row_group,
    own_row_group,
    select_common_rows,
)
from clustering_protocols.shared_stages.alignment.identifiers import IdentifiedRows
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.shared_stages.row_selection import shared_row_groups

NAME = "intersection"


def build_stage(alignment: Alignment) -> Stage:
    """Return the stage, which needs the secrets of row and column groups."""
    return Stage(
        name=NAME,
        analyst=lambda: IntersectionAnalyst(alignment),
        party=lambda: IntersectionParty(alignment),
        exchanges=(
            Exchange(Blind, IdCount),
            Exchange(Evaluate, EvaluatedTokens, slots=_leaders),
            Exchange(Unblind, PartyTokens, slots=_members),
            Exchange(Select, Digests, own=("common",)),
        ),
        envelopes=(BlindedIds, EvaluatedIds, Digests),
    )


TOKEN_BYTES = 32

Tokens = Annotated[ByteArray, Spec("t", TOKEN_BYTES)]
_NO_TOKENS: Final[ByteArray] = np.empty((0, TOKEN_BYTES), np.uint8)


class Blind(Record):
    """Task: send the number of your ids, and seal the blinded ids to your leader."""

    kind = "blind"


class IdCount(Record):
    """Contribution: the number of a party's ids; from leaders, also the ids' tokens."""

    kind = "counted"
    reach = "agreement"
    meaning = "How many ids you have, and keyed digests of them."

    n_ids: int = Field(ge=1)
    tokens: Tokens


class BlindedIds(Record):
    """Envelope to the leader: the sender's blinded ids."""

    kind = "blinded-ids"
    reach = "hidden"
    meaning = "Your ids, blinded: nobody can read them."

    elements: Annotated[ByteArray, Spec("n", "w")]


class ToEvaluate(Record):
    """Memory of a leader: the blinded ids of all members, concatenated in slot order."""

    kind = "to-evaluate"

    elements: Annotated[ByteArray, Spec("n", "w")]
    counts: dict[str, int]


class Evaluate(Record):
    """Task for leaders: evaluate the members' blinded ids."""

    kind = "evaluate"


class EvaluatedTokens(Record):
    """Contribution and memory of the leader: confirms that it has evaluated the ids."""

    kind = "evaluated"


class EvaluatedIds(Record):
    """Envelope to a member, and its memory: evaluations of the member's blinded ids."""

    kind = "answers"
    reach = "hidden"
    meaning = "Ids of others, blinded, for their party: nobody else can read them."

    elements: Annotated[ByteArray, Spec("n", "w")]


class Unblind(Record):
    """Task for members other than the leader: send your tokens."""

    kind = "unblind"


class PartyTokens(Record):
    """Contribution: the sorted tokens of a party."""

    kind = "shown"
    reach = "agreement"
    meaning = "Keyed digests of your ids; no id can be read."

    tokens: Tokens


class TokenOrder(Record):
    """Memory: ``order[k]`` is the index of the id to which the k-th token belongs."""

    kind = "token-order"

    order: Annotated[IntArray, Spec("t", low=0)]


class Select(Record):
    """Task: select the rows with common tokens.

    common: 1 for each of the slot's tokens that is common, else 0. The array is empty
        for a slot that is alone in its row group, since all of its rows take part.
    n_rows: the number of participating rows of each slot.
    """

    kind = "select"

    common: Annotated[ByteArray, Spec("t", high=1)]
    n_rows: dict[str, int]


class IntersectionState(Record):
    """The analyst's state: the open task, and the contributions so far.

    tokens: the concatenated tokens of all leaders, while they are needed.
    """

    kind = "intersecting"

    asked: Literal["blind", "evaluate", "unblind", "select"]
    n_ids: dict[str, int] = Field(default_factory=dict)
    n_rows: dict[str, int] = Field(default_factory=dict)
    tokens: Tokens = Field(default_factory=lambda: _NO_TOKENS)


@dataclass(frozen=True)
class IntersectionAnalyst(AnalystRole[Params, Record, IntersectionState]):
    """Asks for blinded ids, evaluations, tokens and a selection, in four rounds."""

    alignment: Alignment

    state = IntersectionState

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask all parties for the number of their ids, and for blinded ids."""
        return Ask.to_everybody(
            session, Blind(), state=IntersectionState(asked="blind")
        )

    def step(
        self,
        session: SessionContext,
        state: IntersectionState,
        contributions: Mapping[str, Record],
    ) -> Ask | Finish:
        """Open the next round, or finish with the numbers of rows that take part."""
        if state.asked == "blind":
            return _ask_evaluate(session, contributions)
        if state.asked == "evaluate":
            members = _members(session)
            return Ask(
                state=state.model_copy(update={"asked": "unblind"}),
                tasks=dict.fromkeys(members, Unblind()),
                dims={slot: {"t": state.n_ids[slot]} for slot in members},
            )
        if state.asked == "unblind":
            return self._ask_selection(session, state, contributions)
        compare_digests(session, narrow_all(Digests, contributions))
        return Finish(n_rows=state.n_rows)

    def _ask_selection(
        self,
        session: SessionContext,
        state: IntersectionState,
        contributions: Mapping[str, Record],
    ) -> Ask:
        leaders = _leaders(session)
        ends = np.cumsum([state.n_ids[slot] for slot in leaders])
        arrays = dict(zip(leaders, np.split(state.tokens, ends[:-1]), strict=True))
        answers = narrow_all(PartyTokens, contributions)
        arrays |= {slot: answer.tokens for slot, answer in answers.items()}
        tokens = {slot: as_sorted_bytes(slot, array) for slot, array in arrays.items()}
        common = {slot: np.empty(0, np.uint8) for slot in session.slots}
        n_rows = dict(state.n_ids)
        for group in shared_row_groups(session.layout):
            shared = reduce(np.intersect1d, (tokens[slot] for slot in group))
            n_rows |= dict.fromkeys(group, len(shared))
            common |= {s: np.isin(tokens[s], shared).view(np.uint8) for s in group}
        for group in session.layout.row_groups:
            minimum = self.alignment.minimum_overlap
            check_overlap(session, group, n_rows[group[0]], minimum)
        return Ask(
            state=IntersectionState(asked="select", n_ids=state.n_ids, n_rows=n_rows),
            tasks={
                slot: Select(common=common[slot], n_rows=n_rows)
                for slot in session.slots
            },
        )


def _leaders(session: SessionContext) -> list[str]:
    return [group[0] for group in shared_row_groups(session.layout)]


def _members(session: SessionContext) -> list[str]:
    groups = shared_row_groups(session.layout)
    return [slot for _, *members in groups for slot in members]


def _ask_evaluate(session: SessionContext, contributions: Mapping[str, Record]) -> Ask:
    counts = narrow_all(IdCount, contributions)
    leaders = _leaders(session)
    for slot, count in counts.items():
        n_tokens = count.n_ids if slot in leaders else 0
        if count.n_ids > session.member(slot).n_rows:
            raise InvalidArray(f"{slot!r} has more ids than the rows it joined with.")
        if len(count.tokens) != n_tokens:
            raise InvalidArray(
                f"{slot!r} sent {len(count.tokens)} tokens, not {n_tokens}."
            )
    return Ask(
        state=IntersectionState(
            asked="evaluate",
            n_ids={slot: count.n_ids for slot, count in counts.items()},
            tokens=np.concatenate([counts[slot].tokens for slot in leaders]),
        ),
        tasks=dict.fromkeys(leaders, Evaluate()),
    )


def as_sorted_bytes(slot: str, tokens: ByteArray) -> NDArray[np.bytes_]:
    """Return tokens (t, 32) as byte strings (t,).

    Raises InvalidArray if the tokens are not in ascending order, or are not distinct.
    """
    flat: NDArray[np.bytes_] = np.ascontiguousarray(tokens).view("S32").reshape(-1)
    if not (flat[:-1] < flat[1:]).all():
        raise InvalidArray(f"The tokens of {slot!r} are not sorted, each once.")
    return flat


_Task = Blind | Evaluate | Unblind | Select
_Content = BlindedIds | EvaluatedIds | Digests


class SortedTokens(NamedTuple):
    """The sorted tokens (t, 32) of a party, and the index of the id of each (t,)."""

    tokens: ByteArray
    order: IntArray


@dataclass(frozen=True)
class IntersectionParty(PartyRole[Params, _Task, _Content]):
    """Evaluates the ids of others, as leader; otherwise has its own ids evaluated."""

    alignment: Alignment

    def reply(self, context: PartyContext, task: _Task, data: DataSource) -> Reply:
        """Return the reply to a task of this stage."""
        if isinstance(task, Evaluate):
            return self._evaluate_blinded_ids(context)
        if is_alone_in_row_group(context):  # row numbers take the place of ids
            numbers = np.arange(data.n_rows)
            own = IdentifiedRows(list(map(str, numbers)), numbers)
        else:
            own = self.alignment.identify_rows(data)
        if isinstance(task, Blind):
            return self._blind_own_ids(context, own)
        if isinstance(task, Unblind):
            return self._unblind_own_ids(context, own)
        indices = np.arange(len(own.ids))
        if not is_alone_in_row_group(context):
            order = context.recall(TokenOrder).order
            task.require({"t": len(order)})
            indices = order[task.common == 1]
        return select_common_rows(
            context,
            rows=own.rows[indices],
            n_rows=task.n_rows,
            ids=[own.ids[index] for index in indices],
            data=data,
            alignment=self.alignment,
        )

    def receive(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[_Content]]
    ) -> Sequence[Record]:
        """Store the blinded ids from the members, or the evaluations from the leader."""
        if context.memory.get(Selection) is not None:
            check_envelopes_after_selection(context, envelopes)
            return []
        leader, *_ = own_row_group(context)
        if context.slot.name == leader:
            return [self._collect_blinded_ids(context, envelopes)]
        content = leader_content(leader, envelopes, "Answers")
        if isinstance(content, EvaluatedIds):
            return [content]
        raise EnvelopeRefused("A leader may send only answers.")

    def _collect_blinded_ids(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[_Content]]
    ) -> ToEvaluate:
        """Return the blinded ids of all members.

        Raises EnvelopeRefused if a member sent none, GuardRefused if it sent too many.
        """
        _, *members = own_row_group(context)
        contents = {
            e.peer: e.content for e in envelopes if isinstance(e.content, BlindedIds)
        }
        if set(contents) != set(members) or len(contents) != len(envelopes):
            raise EnvelopeRefused("Blinded ids must come from each other member, once.")
        for slot, blinded in contents.items():
            quota = context.session.member(slot).n_rows
            blinded.require({"w": N_BYTES})
            if len(blinded.elements) > quota:
                raise GuardRefused(
                    f"{slot!r} sent {len(blinded.elements)} ids, but joined with {quota} "
                    "rows."
                )
        return ToEvaluate(
            elements=np.concatenate([contents[slot].elements for slot in members]),
            counts={slot: len(contents[slot].elements) for slot in members},
        )

    # The leader

    def _evaluate_blinded_ids(self, context: PartyContext) -> Reply:
        """Evaluate the members' ids once; a second time would exceed their quotas."""
        if context.memory.get(EvaluatedTokens) is not None:
            raise ProtocolFailed("The analyst asks to evaluate ids a second time.")
        blinded = context.recall(ToEvaluate)
        elements = _evaluation_key(context).multiply(blinded.elements)
        _, *members = own_row_group(context)
        ends = np.cumsum([blinded.counts[slot] for slot in members])
        parts = np.split(elements, ends[:-1])
        return Reply(
            contribution=EvaluatedTokens(),
            envelopes=[
                PeerMessage(peer=slot, content=EvaluatedIds(elements=part))
                for slot, part in zip(members, parts, strict=True)
            ],
            # The ids are dropped because every later round writes the whole memory.
            remember=[
                EvaluatedTokens(),
                ToEvaluate(elements=blinded.elements[:0], counts={}),
            ],
        )

    # Blinding and unblinding

    def _blind_own_ids(self, context: PartyContext, own: IdentifiedRows) -> Reply:
        ids = [name.encode() for name in own.ids]
        leader, *members = own_row_group(context)
        if context.slot.name == leader and members:
            hashes = hash_ids(ids, _binding(context))
            values = _evaluation_key(context).evaluate(hashes)
            tokens, order = compute_tokens(_binding(context), ids, values)
            return Reply(
                contribution=IdCount(n_ids=len(ids), tokens=tokens),
                remember=[TokenOrder(order=order)],
                notes=_quotas(context),
            )
        count = IdCount(n_ids=len(ids), tokens=_NO_TOKENS)
        if context.slot.name == leader:
            return Reply(contribution=count)
        stream = context.lasting_stream("blinding")
        elements = blind(ids, _binding(context), stream)
        message = PeerMessage(peer=leader, content=BlindedIds(elements=elements))
        return Reply(contribution=count, envelopes=[message], notes=_quotas(context))

    def _unblind_own_ids(self, context: PartyContext, own: IdentifiedRows) -> Reply:
        answers = context.recall(EvaluatedIds)
        answers.require({"n": len(own.ids), "w": N_BYTES})
        ids = [name.encode() for name in own.ids]
        stream = context.lasting_stream("blinding")
        values = unblind(answers.elements, stream)
        tokens, order = compute_tokens(_binding(context), ids, values)
        no_answers = EvaluatedIds(elements=answers.elements[:0])
        return Reply(
            contribution=PartyTokens(tokens=tokens),
            remember=[TokenOrder(order=order), no_answers],
        )


def _evaluation_key(context: PartyContext) -> RistrettoKey:
    """Return the leader's key, which it derives from its entropy whenever needed."""
    return RistrettoKey(context.lasting_stream("key"), context.engine)


def _quotas(context: PartyContext) -> dict[str, object]:
    """Return a note for the operator on how many ids of each party can be compared."""
    quotas = (f"{s} {context.session.member(s).n_rows}" for s in own_row_group(context))
    return {"ids compared in your row group, at most": ", ".join(quotas)}


def _binding(context: PartyContext) -> bytes:
    session = context.session
    return binding(session.terms.session, session.agreement_digest, context.slot.row)


def binding(session: str, agreement: str, row: int) -> bytes:
    """Return the bytes that bind evaluations to an agreement and a row group."""
    return length_prefixed("coterie/intersection/1", session, agreement, row)


def compute_tokens(
    context: bytes, ids: Sequence[bytes], values: ByteArray
) -> SortedTokens:
    """Return the sorted tokens of ids: SHA-256 of an id and its evaluation, ``values``.

    The hash hides the evaluation from the analyst.
    """
    prefix = sha256(length_prefixed("coterie/token/1", context))
    # Concatenation is unambiguous because all values have the same length.
    texts = (bytes(value) + name for name, value in zip(ids, values, strict=True))
    tokens = list(hash_with_prefix(prefix, texts))
    order = np.argsort(np.array(tokens), kind="stable").astype(np.int64)
    flat = np.frombuffer(b"".join(tokens), np.uint8)
    return SortedTokens(flat.reshape(-1, TOKEN_BYTES)[order], order)

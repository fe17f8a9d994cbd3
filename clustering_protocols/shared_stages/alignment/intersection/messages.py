"""Records of the intersection."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clustering_protocols.records.arrays import ByteArray, IntArray, Spec
from clustering_protocols.records.record import Record

TOKEN_BYTES = 32

Tokens = Annotated[ByteArray, Spec("t", TOKEN_BYTES)]


class Blind(Record):
    """Task: say how many ids you have, and have them evaluated by your leader."""

    kind = "blind"


class IdCount(Record):
    """Contribution: how many ids a party has, and of a leader also its tokens."""

    kind = "counted"
    reach = "agreement"
    meaning = "How many ids you have, and keyed digests of them."

    n_ids: int = Field(ge=1)
    tokens: Tokens


class BlindedIds(Record):
    """Envelope to the leader."""

    kind = "blinded-ids"
    reach = "hidden"
    meaning = "Your ids, blinded: nobody can read them."

    elements: Annotated[ByteArray, Spec("n", "w")]


class ToEvaluate(Record):
    """Memory of a leader: the members' blinded ids, in the order of the slots."""

    kind = "to-evaluate"

    elements: Annotated[ByteArray, Spec("n", "w")]
    counts: dict[str, int]


class Evaluate(Record):
    """Task for leaders: evaluate what the members have sent you."""

    kind = "evaluate"


class EvaluatedTokens(Record):
    """Contribution, and memory: it is done once."""

    kind = "evaluated"


class EvaluatedIds(Record):
    """Envelope to a member, and its memory: its blinded ids, evaluated."""

    kind = "answers"
    reach = "hidden"
    meaning = "Ids of others, blinded, for their party: nobody else can read them."

    elements: Annotated[ByteArray, Spec("n", "w")]


class Unblind(Record):
    """Task for the other slots: send your tokens."""

    kind = "unblind"


class PartyTokens(Record):
    """Contribution: a party's tokens, sorted."""

    kind = "shown"
    reach = "agreement"
    meaning = "Keyed digests of your ids; no id can be read."

    tokens: Tokens


class TokenOrder(Record):
    """Memory: ``order[k]`` is the place of the k-th token's id among a party's ids."""

    kind = "token-order"

    order: Annotated[IntArray, Spec("t", low=0)]


class Select(Record):
    """Task: which of your tokens are common, and how many rows of each slot take part.

    A slot that is alone in its row group is told of no token: all its ids take part.
    """

    kind = "select"

    common: Annotated[ByteArray, Spec("t", high=1)]
    n_rows: dict[str, int]


class IntersectionState(Record):
    """The analyst's state: which task is out, and what has come so far.

    tokens: of all leaders, one after the other.
    """

    kind = "intersecting"

    asked: Literal["blind", "evaluate", "unblind", "select"]
    n_ids: dict[str, int]
    n_rows: dict[str, int]
    tokens: Tokens

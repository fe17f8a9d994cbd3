"""Records of the linkage by match keys."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clustering_protocols.records.arrays import ByteArray, IntArray, Spec
from clustering_protocols.records.record import Record

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

    n_masks: under how many parties' keys they are.
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
    """Memory: ``order[k]`` is the party's own row at place k of its list."""

    kind = "list-order"

    order: Annotated[IntArray, Spec("t", low=0)]


class SelectLinked(Record):
    """Task: which places of your list take part, and how many rows of each slot.

    rows: in the order in which all parties of the row group put their rows. A slot that
        is alone in its row group is told none: all its rows take part.
    """

    kind = "select-linked"

    rows: Annotated[IntArray, Spec("t", low=0)]
    n_rows: dict[str, int]


class LinkageState(Record):
    """The analyst's state: which task is out, and how often lists were passed on."""

    kind = "linking"

    asked: Literal["mask-keys", "pass-keys", "show-tokens", "select-linked"]
    n_passed: int = 0
    n_rows: dict[str, int]

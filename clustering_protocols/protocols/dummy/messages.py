"""Records of the dummy."""

from __future__ import annotations

from typing import Annotated

from clustering_protocols.records.arrays import IntArray, Spec, WordArray
from clustering_protocols.records.record import Record


class Greet(Record):
    """Task of round 1."""

    kind = "greet"


class Greeted(Record):
    """Contribution of round 1."""

    kind = "greeted"


class Word(Record):
    """Envelope of rounds 1 and 2: a random word for the next slot, and its echo."""

    kind = "word"
    meaning = "A word for the next party."

    word: Annotated[WordArray, Spec(1)]


class OwnWord(Record):
    """Memory: the word that this party sent."""

    kind = "own-word"

    word: Annotated[WordArray, Spec(1)]


class HeardWord(Record):
    """Memory: the word that this party received, and its sender."""

    kind = "heard-word"

    sender: str
    word: Annotated[WordArray, Spec(1)]


class Count(Record):
    """Task of round 2."""

    kind = "count"


class Counted(Record):
    """Contribution of round 2: the row numbers of a party."""

    kind = "counted"
    meaning = "The numbers of your rows."

    positions: Annotated[IntArray, Spec("n", low=0)]


class Counting(Record):
    """The analyst's state in the second stage."""

    kind = "counting"

    voided: int
    total: int


class Confirm(Record):
    """Task of round 3."""

    kind = "confirm"

    total: int


class Confirmed(Record):
    """Contribution of round 3."""

    kind = "confirmed"
    meaning = "The number of all rows, as you read it."

    total: int


class Labels(Record):
    """Result of a slot."""

    kind = "labels"

    labels: Annotated[IntArray, Spec("n", low=0)]


class Total(Record):
    """Summary for the coordinator."""

    kind = "total"

    total: int

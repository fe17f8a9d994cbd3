"""Messages and stored records of the dummy protocol."""

from __future__ import annotations

from typing import Annotated

from clustering_protocols.records.arrays import IntArray, Spec, WordArray
from clustering_protocols.records.record import Record


class Greet(Record):
    """Task of round 1: send a random word to the next party."""

    kind = "greet"


class Greeted(Record):
    """Contribution of round 1: the confirmation that a word was sent."""

    kind = "greeted"


class Word(Record):
    """Envelope of rounds 1 and 2: a random word for the next slot, then its echo."""

    kind = "word"
    meaning = "A word for the next party."

    word: Annotated[WordArray, Spec(1)]


class OwnWord(Record):
    """Memory: the word that this party sent."""

    kind = "own-word"

    word: Annotated[WordArray, Spec(1)]


class HeardWord(Record):
    """Memory: the word that this party received, and the slot that sent it."""

    kind = "heard-word"

    sender: str
    word: Annotated[WordArray, Spec(1)]


class Count(Record):
    """Task of round 2: send the indices of your rows."""

    kind = "count"


class Counted(Record):
    """Contribution of round 2: the indices of a party's rows."""

    kind = "counted"
    meaning = "The numbers of your rows."

    positions: Annotated[IntArray, Spec("n", low=0)]


class Counting(Record):
    """The analyst's state in the second stage: repeated attempts, and the total."""

    kind = "counting"

    voided: int
    total: int


class Confirm(Record):
    """Task of round 3: confirm the total number of rows."""

    kind = "confirm"

    total: int


class Confirmed(Record):
    """Contribution of round 3: the total number of rows as this party read it."""

    kind = "confirmed"
    meaning = "The number of all rows, as you read it."

    total: int


class Labels(Record):
    """Result of a slot: the labels of its rows."""

    kind = "labels"

    labels: Annotated[IntArray, Spec("n", low=0)]


class Total(Record):
    """The summary that the coordinator receives: the total number of rows."""

    kind = "total"

    total: int

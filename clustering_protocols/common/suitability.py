"""Facts about protocols that help a coordinator choose one.

Each protocol lists its methods: an algorithm, the ways in which the data may be split,
and initial parameters. :mod:`party_sdk.advice` prints them as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, Self, TypeAlias

Partitioning: TypeAlias = Literal["horizontal", "vertical", "mixed"]
Kind: TypeAlias = Literal["numeric", "counts", "categories"]
Shape: TypeAlias = Literal[
    "spherical", "elongated", "arbitrary", "fuzzy", "co-clusters"
]


class _Level(IntEnum):
    """A level with a one-word label for tables, and a phrase that explains it."""

    word: str
    sentence: str

    def __new__(cls, value: int, word: str, sentence: str) -> Self:
        level = int.__new__(cls, value)
        level._value_, level.word, level.sentence = value, word, sentence
        return level


class Exposure(_Level):
    """What an observer can learn about rows beyond the result of the session."""

    NOTHING = 0, "nothing", "only the result"
    TOTALS = 1, "sums", "sums over all parties"
    GEOMETRY = (
        2,
        "distances",
        "how rows lie relative to each other (distances, or coarse coordinates)",
    )
    ROWS = 3, "rows", "values of single rows, exactly or nearly"


class RoundBudget(_Level):
    """The number of rounds that a protocol needs, in three classes."""

    ONE = (
        0,
        "one",
        "one upload of data derived from the rows, after a fixed number of short rounds",
    )
    FEW = 1, "few", "a fixed number of rounds, some of which send much"
    MANY = 2, "many", "a round for every update of the algorithm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One recommended way to use a protocol.

    name: the name of the algorithm; unique for a protocol and a partitioning.
    partitionings: the ways in which the data may be split between parties.
    shapes: the shapes of the clusters that the algorithm finds.
    data: the kind of data for which the algorithm is intended.
    params: the recommended initial parameters, without the number of clusters.
    agreement: for each partitioning, the mean adjusted Rand index of the labels with
        those of clustering the pooled rows, on the worst and on the best public data
        set of docs/evidence.md. Empty if it was not measured.
    counted: whether the number of clusters is a parameter, ``n_clusters``.
    """

    name: str
    partitionings: tuple[Partitioning, ...]
    shapes: tuple[Shape, ...]
    data: Kind = "numeric"
    rounds: RoundBudget
    params: Mapping[str, Any] = field(default_factory=dict)
    agreement: Mapping[Partitioning, tuple[float, float]] = field(default_factory=dict)
    counted: bool = True

    def recommended_params(self, n_clusters: int) -> dict[str, Any]:
        """Return the recommended parameters for ``n_clusters`` clusters."""
        count = {"n_clusters": n_clusters} if self.counted else {}
        return {**count, **self.params}

"""The suitability of a protocol, as facts that help to choose one.

Each protocol lists its *ways*: an algorithm, the splits of data for it, and parameters
to begin with. :mod:`party_sdk.advice` prints them as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, TypeAlias

Partitioning: TypeAlias = Literal["horizontal", "vertical", "mixed"]
Kind: TypeAlias = Literal["numeric", "counts", "categories"]
Shape: TypeAlias = Literal[
    "spherical", "elongated", "arbitrary", "fuzzy", "co-clusters"
]


class Exposure(IntEnum):
    """The knowledge about rows that an observer can gain beyond the result."""

    NOTHING = 0
    TOTALS = 1
    GEOMETRY = 2
    ROWS = 3

    @property
    def word(self) -> str:
        """Return the exposure as a cell of a table."""
        return _WORDS[self]

    @property
    def sentence(self) -> str:
        """Return what it means."""
        return _EXPOSURE_SENTENCES[self]


class RoundBudget(IntEnum):
    """How often all parties have to answer."""

    ONE = 0
    FEW = 1
    MANY = 2

    @property
    def word(self) -> str:
        """Return the name in small letters."""
        return self.name.lower()

    @property
    def sentence(self) -> str:
        """Return what it means."""
        return _ROUNDS[self]


_WORDS: Mapping[Exposure, str] = {
    Exposure.NOTHING: "nothing",
    Exposure.TOTALS: "sums",
    Exposure.GEOMETRY: "distances",
    Exposure.ROWS: "rows",
}
_EXPOSURE_SENTENCES: Mapping[Exposure, str] = {
    Exposure.NOTHING: "only the result",
    Exposure.TOTALS: "sums over all parties",
    Exposure.GEOMETRY: "how rows lie to each other (distances, or coarse coordinates)",
    Exposure.ROWS: "values of single rows, exactly or nearly",
}
_ROUNDS: Mapping[RoundBudget, str] = {
    RoundBudget.ONE: "one upload of data derived from the rows, after a fixed number of short rounds",
    RoundBudget.FEW: "a fixed number of rounds, some of which send much",
    RoundBudget.MANY: "a round for every update of the algorithm",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way to use a protocol.

    name: the name of the algorithm; unique for a protocol and a partitioning.
    partitionings: the possible splits of data.
    shapes: the shapes of clusters that it finds.
    data: the kind of data that it is for.
    params: the parameters to begin with, except the number of clusters.
    agreement: how well the labels agree with a clustering of the pooled rows, by split:
        the mean adjusted Rand index of the worst and of the best public data set of
        docs/evidence.md. Empty if not measured.
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

    def parameters(self, n_clusters: int) -> dict[str, Any]:
        """Return the parameters for ``n_clusters`` clusters."""
        count = {"n_clusters": n_clusters} if self.counted else {}
        return {**count, **self.params}

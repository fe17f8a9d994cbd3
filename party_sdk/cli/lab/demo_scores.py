"""What the demo's labels are held against, and the tables that it ends with.

Two questions, apart: what the federation cost (fidelity), and what k-means finds of the
true classes, which no method saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from clustering_protocols import catalogue, simulation
from clustering_protocols.contract import Params
from clustering_protocols.numerics import scores
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.records.arrays import FloatArray, IntArray

LOCAL = "each party alone"
POOLED = "pooled data"
OVERALL = "overall"

_FIDELITY = (
    "Fidelity: agreement with the same k-means on the pooled data (adjusted Rand index).",
    "1.000 means that nothing was lost by not pooling; a party alone finds other clusters.",
)
_CLASSES = (
    "True classes: agreement with benign and malignant, which no method was told.",
    "It judges k-means, not the federation: at fidelity 1 it is that of pooled data.",
)


@dataclass(frozen=True, kw_only=True)
class Score:
    """Agreement with the classes, and with pooled clustering."""

    ari: float
    fidelity: float


Scores = Mapping[str, Mapping[str, Score]]


@dataclass(frozen=True, kw_only=True)
class DemoClasses:
    """Classes, and how the rows lie with the parties."""

    classes: IntArray
    parts: simulation.Split

    def of(self, labels: IntArray, pooled: IntArray) -> dict[str, Score]:
        """Return the scores of each party's rows, and of all rows."""
        slots = self.parts.layout.slots
        rows = {slot.name: self.parts.rows[slot.row] for slot in slots}
        everybody = np.arange(len(labels))
        return {
            name: self._score(chosen, labels[chosen], pooled)
            for name, chosen in {**rows, OVERALL: everybody}.items()
        }

    def alone(self, params: Params, pooled: IntArray) -> dict[str, Score]:
        """Return the scores of what each party finds alone; overall is their mean."""
        scores: dict[str, Score] = {}
        known = catalogue.protocol_of(params)
        for slot in self.parts.layout.slots:
            own: FloatArray = matrix(self.parts.data[slot.name])
            labels = known.reference().cluster_pooled(params, own, None)
            scores[slot.name] = self._score(self.parts.rows[slot.row], labels, pooled)
        each = list(scores.values())
        mean = Score(
            ari=float(np.mean([score.ari for score in each])),
            fidelity=float(np.mean([score.fidelity for score in each])),
        )
        return {**scores, OVERALL: mean}

    def _score(self, rows: IntArray, labels: IntArray, pooled: IntArray) -> Score:
        return Score(
            ari=scores.adjusted_rand(self.classes[rows], labels),
            fidelity=simulation.fidelity(pooled[rows], labels),
        )


def table_lines(scores: Scores) -> Iterator[str]:
    """Yield both tables, each below a sentence that says what it is of."""
    yield from _FIDELITY
    yield from _table({m: row for m, row in scores.items() if m != POOLED}, "fidelity")
    yield ""
    yield from _CLASSES
    yield from _table(scores, "ari")


def _table(scores: Scores, what: str) -> Iterator[str]:
    names = list(next(iter(scores.values())))
    yield " " * 20 + "".join(f"{name:>9}" for name in names)
    for method, row in scores.items():
        cells = "".join(f"{getattr(row[name], what):9.3f}" for name in names)
        yield f"  {method:18}{cells}"

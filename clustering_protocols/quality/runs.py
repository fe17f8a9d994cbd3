"""What is told of several runs together: whether clusters are there, and last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from clustering_protocols.contract import Run, SessionContext
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.row_blocks import RowBlocks
from clustering_protocols.records.arrays import FloatArray

from .gap import gaps
from .halves import prediction_strength, stability

_MOST_ROWS: Final = 5_000
_MOST_NUMBERS: Final = 500_000


def across(
    session: SessionContext,
    rows: FloatArray | RowBlocks,
    numbers: Sequence[int],
    runs: Sequence[Run],
) -> list[Run]:
    """Return the runs of k-means of rows with what compares them among their figures.

    A session of one run stays as it is: its figures compare nothing. Of many rows some
    are drawn, for both: what they cost grows with rows, runs and references.

    rows: float64 (n, width), or RowBlocks; what was clustered.
    numbers: the number of clusters of each run.
    """
    if len(runs) < 2:
        return list(runs)
    X = _some(row_blocks.of(rows), session.generator("quality", "rows"))
    found = gaps(X, numbers, session.generator("quality", "gap"))
    gap_of_one = next((each.gap for each in found if each.n_clusters == 1), None)
    by_number = {each.n_clusters: each for each in found}
    told = []
    for k, run in zip(numbers, runs, strict=True):
        own = by_number.get(k)
        rng = session.generator("quality", "stability", k)
        other = session.generator("quality", "prediction", k)
        more = {
            "gap": None if own is None else own.gap,
            "gap_error": None if own is None else own.error,
            "gap_of_one": gap_of_one,
            "stability": stability(X, k, rng),
            "prediction_strength": prediction_strength(X, k, other),
        }
        figures = run.figures and run.figures.model_copy(update=more)
        told.append(replace(run, figures=figures))
    return told


def _some(rows: RowBlocks, rng: np.random.Generator) -> FloatArray:
    """Return the rows, of many some."""
    n, width = rows.shape
    most = min(_MOST_ROWS, max(_MOST_NUMBERS // width, 1))
    if n <= most:
        return row_blocks.whole(rows)
    return rows.take(np.sort(rng.permutation(n)[:most]))

"""Figures that compare several runs: the gap statistic, stability, prediction strength."""

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
    """Return runs of k-means with the figures that compare them; one run stays as it is.

    Of many rows a sample is drawn: the cost grows with rows, runs and references.

    rows: float64 (n, width), or RowBlocks; what was clustered.
    numbers: the number of clusters of each run.
    """
    if len(runs) < 2:
        return list(runs)
    blocks = row_blocks.of(rows)
    n, width = blocks.shape
    limit = min(_MOST_ROWS, max(_MOST_NUMBERS // width, 1))
    if n <= limit:
        X = row_blocks.whole(blocks)
    else:
        sample = session.generator("quality", "rows").permutation(n)[:limit]
        X = blocks.take(np.sort(sample))
    run_gaps = gaps(X, numbers, session.generator("quality", "gap"))
    by_number = {gap.n_clusters: gap for gap in run_gaps}
    gap_of_one = by_number[1].gap if 1 in by_number else None
    compared = []
    for k, run in zip(numbers, runs, strict=True):
        gap = by_number.get(k)
        more = {
            "gap": gap and gap.gap,
            "gap_error": gap and gap.error,
            "gap_of_one": gap_of_one,
            "stability": stability(X, k, session.generator("quality", "stability", k)),
            "prediction_strength": prediction_strength(
                X, k, session.generator("quality", "prediction", k)
            ),
        }
        figures = run.figures and run.figures.model_copy(update=more)
        compared.append(replace(run, figures=figures))
    return compared

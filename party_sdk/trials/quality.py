"""What the runs of a session are like, as a table of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clustering_protocols.figures import Figures


def quality_table(
    numbers: Sequence[int | None], figures: Sequence[Figures]
) -> Mapping[str, Any]:
    """Return the figures of runs, a column each, as ``pandas.DataFrame`` takes them.

    Parameters
    ----------
    numbers : sequence of int or None
        The number of clusters that each run was asked for.
    figures : sequence of Figures
        Of each run; none where the protocol computes none.

    Returns
    -------
    mapping of str to array of shape (n_runs,)
        ``n_clusters`` as asked, ``clusters_with_rows``, and each figure that some run
        has; NaN where another has none.
    """
    table: dict[str, Any] = {"n_clusters": np.array(numbers)}
    told = [each.values for each in figures]
    for name in told[0] if told else ():
        column = [run[name] for run in told]
        if any(value is not None for value in column):
            called = "clusters_with_rows" if name == "n_clusters" else name
            table[called] = _array(column)
    return table


def _array(column: Sequence[Any]) -> Any:
    whole = all(value is not None for value in column)
    return np.array(column) if whole else np.array(column, dtype=np.float64)

"""Made rows of known groups."""

from __future__ import annotations

from typing import Any

import numpy as np


def lumps(width: int) -> tuple[Any, Any]:
    """Return rows (655, width) and the numbers of their three groups.

    Groups lie far apart; one of them falls into four lumps with gaps between them, each
    of which is a part of the graph of ten nearest neighbours by itself.
    """
    rng = np.random.default_rng(0)
    sizes, groups = (200, 180, 160, 60, 40, 15), (0, 1, 2, 2, 2, 2)
    middles = np.zeros((6, width))
    middles[1, 0], middles[2:, 1] = 90.0, [90.0, 98.0, 106.0, 114.0]
    lump = np.repeat(np.arange(6), sizes)
    X = middles[lump] + 0.3 * rng.normal(size=(len(lump), width))
    order = rng.permutation(len(X))  # parties hold rows of every lump
    return X[order], np.asarray(groups)[lump[order]]

"""Images of rows under a map, in one order of additions.

No matrix product: its last bits depend on how many rows it is given, and on the machine.
A row's image has the same bits in whichever block it is computed, and wherever.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.numerics.compilation import compile_once
from clustering_protocols.records.arrays import FloatArray

_BLOCK: Final = 256  # rows that stay in the cache, features first


@compile_once(2)
def add_products(X: FloatArray, G: FloatArray, first: int, image: FloatArray) -> None:
    """Add X G to some columns of images.

    X: float64 (n, width).
    G: float64 (width, m), C-contiguous.
    first: the first of the columns.
    image: float64 (n, m̂), C-contiguous, added to.
    """
    n, width = X.shape
    whole = width - width % 4
    block = np.empty((width, _BLOCK))
    added = np.empty((G.shape[1], _BLOCK))
    for begin in range(0, n, _BLOCK):
        size = min(_BLOCK, n - begin)
        for i in range(size):
            for j in range(width):
                block[j, i] = X[begin + i, j]
        for f in range(G.shape[1]):
            for i in range(size):
                added[f, i] = 0.0
            for j in range(0, whole, 4):  # a quarter of the loads and stores
                a, b, c, d = G[j, f], G[j + 1, f], G[j + 2, f], G[j + 3, f]
                for i in range(size):
                    added[f, i] += (block[j, i] * a + block[j + 1, i] * b) + (
                        block[j + 2, i] * c + block[j + 3, i] * d
                    )
            for j in range(whole, width):
                a = G[j, f]
                for i in range(size):
                    added[f, i] += block[j, i] * a
        for i in range(size):
            for f in range(G.shape[1]):
                image[begin + i, first + f] += added[f, i]

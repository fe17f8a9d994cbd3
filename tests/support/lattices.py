"""Short bases of lattices, as attacks look for them."""

import time

import numpy as np

from clustering_protocols.records.arrays import FloatArray


def reduced(B: FloatArray, seconds: float) -> FloatArray:
    """Return a shorter basis of the lattice of B's rows, by the algorithm LLL."""
    B, k, end = B.copy(), 1, time.monotonic() + seconds
    G = np.zeros_like(B)  # orthogonalised rows; those below k are valid
    G[0] = B[0]
    norms = np.einsum("ij,ij->i", G, G)
    while k < len(B) and time.monotonic() < end:
        for j in range(k - 1, -1, -1):
            B[k] -= np.rint(B[k] @ G[j] / norms[j]) * B[j]
        mu = G[:k] @ B[k] / norms[:k]
        G[k] = B[k] - mu @ G[:k]
        G[k] -= (G[:k] @ G[k] / norms[:k]) @ G[:k]  # again, for rounding
        norms[k] = G[k] @ G[k]
        if norms[k] >= (0.99 - mu[k - 1] ** 2) * norms[k - 1]:
            k += 1
            continue
        B[[k, k - 1]] = B[[k - 1, k]]
        k = max(k - 1, 1)
        if k == 1:
            G[0], norms[0] = B[0], B[0] @ B[0]
    return B

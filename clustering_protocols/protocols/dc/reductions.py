"""Ways to reduce a party's scaled rows to fewer dimensions: the inner part of f_ij.

Each takes scaled rows (n, m) or their triangular factor and returns axes F (m, width),
or, where the reduction is not linear, a function of rows. All of them are private.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray

RowFunction = Callable[[FloatArray], FloatArray]

_LPP_NEIGHBORS = 10
_HIDDEN = 32
_EPOCHS = 500


def random_axes(n_columns: int, width: int, stream: KeyedStream) -> FloatArray:
    """Return orthonormal axes in random directions, independent of the data."""
    return np.ascontiguousarray(stream.rotation(n_columns)[:, :width])


def locality_preserving_axes(Z: FloatArray, width: int) -> FloatArray:
    """Return the axes that keep neighbouring rows near each other.

    X. He and P. Niyogi, "Locality preserving projections", 2003: the smallest
    generalised eigenvectors of Z'LZ a = λ Z'DZ a, with the graph of nearest neighbours
    (weight 1), D its degrees and L its Laplacian. Directions in which the data do not
    vary are left out first: there both sides are zero.

    Z: float64 (n, m); centred rows.
    width: at most the rank of Z.
    """
    from scipy.linalg import eigh
    from sklearn.neighbors import kneighbors_graph

    _, values, Vt = np.linalg.svd(Z, full_matrices=False)
    kept = Vt[values > max(Z.shape) * np.finfo(np.float64).eps * values[0]].T
    Y = Z @ kept
    n_neighbors = min(_LPP_NEIGHBORS, len(Y) - 1)
    graph = kneighbors_graph(Y, n_neighbors)
    weights = graph.maximum(graph.T)
    degree = np.asarray(weights.sum(axis=1))
    YDY = (Y * degree.reshape(-1, 1)).T @ Y
    YLY = YDY - Y.T @ (weights @ Y)
    _, vectors = eigh((YLY + YLY.T) / 2, (YDY + YDY.T) / 2)
    axes: FloatArray = kept @ vectors[:, :width]
    unit: FloatArray = axes / np.linalg.norm(axes, axis=0)
    return unit


def autoencoder(Z: FloatArray, width: int, seed: int) -> RowFunction:
    """Return the encoder of a network that was trained to reproduce its input.

    One hidden layer on either side of a layer of ``width`` units; hyperbolic tangent;
    trained by Adam (scikit-learn's MLPRegressor) on one thread, so that a seed repeats.

    Z: float64 (n, m); scaled rows.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    spread = float(np.sqrt(np.mean(np.square(Z)))) or 1.0
    network = MLPRegressor(
        hidden_layer_sizes=(_HIDDEN, width, _HIDDEN),
        activation="tanh",
        max_iter=_EPOCHS,
        random_state=seed,
    )
    target = Z / spread
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the epochs are a budget
        network.fit(Z / spread, target.ravel() if target.shape[1] == 1 else target)
    (W1, W2), (b1, b2) = network.coefs_[:2], network.intercepts_[:2]

    def encode(rows: FloatArray) -> FloatArray:
        code: FloatArray = np.tanh(np.tanh(rows / spread @ W1 + b1) @ W2 + b2)
        return code

    return encode

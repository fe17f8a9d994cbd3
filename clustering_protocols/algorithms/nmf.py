"""Non-negative matrix factorisation with scikit-learn, to obtain features to cluster."""

from __future__ import annotations

import warnings

from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from clustering_protocols.records.arrays import FloatArray


def nmf(A: FloatArray, n_components: int, max_iter: int, seed: int) -> FloatArray:
    """Factorise A ≈ W H into non-negative matrices and return W (n, n_components).

    A: float64 (n, width); no value may be negative.
    n_components: if it exceeds the number of rows or of columns, W and H are
        initialised with random numbers, because A has too few singular vectors.
    """
    init = "nndsvda" if n_components <= min(A.shape) else "random"
    model = NMF(n_components, init=init, max_iter=max_iter, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the caller chose max_iter
        W: FloatArray = model.fit_transform(A)
    return W

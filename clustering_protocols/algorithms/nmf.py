"""Non-negative matrix factorisation as features to cluster, by scikit-learn."""

from __future__ import annotations

import warnings

from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from clustering_protocols.records.arrays import FloatArray


def nmf(A: FloatArray, n_components: int, max_iter: int, seed: int) -> FloatArray:
    """Return W (n, n_components), where A ≈ W H and neither has negative numbers.

    A: float64 (n, width); non-negative.
    n_components: if above the number of rows or columns, the factors start from random
        numbers, because a singular value decomposition has too few components.
    """
    init = "nndsvda" if n_components <= min(A.shape) else "random"
    model = NMF(n_components, init=init, max_iter=max_iter, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the caller chose max_iter
        W: FloatArray = model.fit_transform(A)
    return W

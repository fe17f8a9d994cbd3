"""Pooled k-means: scikit-learn's, or diffprivlib's (ε = 1). FOLDER [private]."""

import sys
from pathlib import Path

import lloyd
import numpy as np

folder, *private = sys.argv[1:]
_, updates = lloyd.settings(folder)
X, V = np.load(Path(folder) / "all.npy"), lloyd.start(folder)
if private:
    from diffprivlib.models import KMeans

    bounds = (X.min(axis=0), X.max(axis=0))
    model = KMeans(len(V), epsilon=1.0, bounds=bounds, random_state=0)
else:
    from sklearn.cluster import KMeans

    model = KMeans(len(V), init=V, n_init=1, max_iter=updates, tol=0)
model.fit(X)
lloyd.write(folder, model.cluster_centers_, model.n_iter_)

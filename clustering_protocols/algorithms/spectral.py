"""Spectral embedding of rows, from a graph of nearest neighbours.

The form is scikit-learn's (``SpectralClustering(affinity="nearest_neighbors")``): the
graph joins each row with its nearest rows, itself among them; it is symmetrised; the
embedding holds the first eigenvectors of the symmetric normalised Laplacian, divided by
the square roots of the degrees. The way there is ours, because the general one takes
most of its time for two things that are known beforehand:

- The graph's connected components give one eigenvector each, for the eigenvalue 0,
  without any iteration. Where they are as many as the clusters nothing is left to do.
- The other eigenvectors are the largest of the normalised affinity on each component,
  where Lanczos converges in a few hundred products, instead of the smallest of the
  Laplacian, where it needs a factorisation or thousands.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

from clustering_protocols.arrays import FloatArray, IntArray

N_NEIGHBORS: Final = 10
_TOLERANCE: Final = 1e-5  # of the eigenvalues; 1e-2 loses clusters
_TREE_WIDTH: Final = 20  # beyond this a tree visits nearly everything


def spectral_embedding(
    X: FloatArray, n_components: int, rng: np.random.Generator
) -> FloatArray:
    """Return the embedding (n, n_components) of rows X (n, width).

    Parameters
    ----------
    X : float64 array of shape (n, width)
    n_components : int
        How many eigenvectors, the constant one included; the number of clusters.
    rng : Generator
        Of the iteration's start.
    """
    return embed_neighbors(_nearest(X, min(N_NEIGHBORS, len(X))), n_components, rng)


def embed_neighbors(
    neighbors: IntArray, n_components: int, rng: np.random.Generator
) -> FloatArray:
    """Return the same from the row numbers (n, n_neighbors) of each row's nearest rows."""
    normalised, root_degree = _normalise(_symmetrised(neighbors))
    vectors = _leading_vectors(normalised, root_degree, n_components, rng)
    return _with_fixed_signs(vectors / root_degree[:, None])


def neighbor_graph(X: FloatArray, n_neighbors: int) -> sparse.csr_matrix:
    """Return the symmetrised connectivity: 1 for mutual neighbours, 1/2 for others.

    A row counts among its own neighbours, as in scikit-learn.
    """
    return _symmetrised(_nearest(X, n_neighbors))


def _symmetrised(neighbors: IntArray) -> sparse.csr_matrix:
    n, n_neighbors = neighbors.shape
    rows = np.repeat(np.arange(n, dtype=np.int32), n_neighbors)
    weights = np.full(len(rows), 0.5)
    directed = sparse.csr_matrix((weights, (rows, neighbors.ravel())), shape=(n, n))
    return directed + directed.T


def _nearest(X: FloatArray, n_neighbors: int) -> IntArray:
    """Return row numbers (n, n_neighbors) of the nearest rows, by a tree if it pays."""
    if X.shape[1] <= _TREE_WIDTH:
        _, nearest = cKDTree(X).query(X, n_neighbors, workers=-1)
        return np.reshape(nearest, (-1, n_neighbors))
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(X)
    found: IntArray = search.kneighbors(X, return_distance=False)
    return found


def _normalise(affinity: sparse.csr_matrix) -> tuple[sparse.csr_matrix, FloatArray]:
    """Return D^-1/2 A D^-1/2 without loops, and the square roots of the degrees.

    A row without neighbours gets degree 1, as in scipy's Laplacian.
    """
    A = affinity.copy()
    A.setdiag(0.0)
    A.eliminate_zeros()
    degree = np.asarray(A.sum(axis=0)).ravel()
    root = np.sqrt(np.where(degree > 0, degree, 1.0))
    scaling = sparse.diags_array(1.0 / root)
    return (scaling @ A @ scaling).tocsr(), root


def _leading_vectors(
    normalised: sparse.csr_matrix,
    root_degree: FloatArray,
    n_components: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return orthonormal eigenvectors (n, n_components) of the largest eigenvalues."""
    known = _component_vectors(normalised, root_degree)
    missing = n_components - known.shape[1]
    if missing <= 0:
        return known[:, :n_components]
    n = len(root_degree)
    if n <= 10 * n_components or n < 200:  # too small for an iteration to pay
        return _dense(normalised, known, missing)

    def deflated(vector: FloatArray) -> FloatArray:
        product: FloatArray = normalised @ vector
        return product - known @ (known.T @ product)

    operator = LinearOperator((n, n), matvec=deflated, dtype=np.float64)
    start = rng.standard_normal(n)
    start -= known @ (known.T @ start)
    values, vectors = eigsh(operator, k=missing, which="LA", tol=_TOLERANCE, v0=start)
    order = np.argsort(values)[::-1]
    return np.hstack([known, vectors[:, order]])


def _component_vectors(
    normalised: sparse.csr_matrix, root_degree: FloatArray
) -> FloatArray:
    """Return D^1/2 1 on each connected component, normalised: eigenvalue 1 exactly."""
    count, component = connected_components(normalised, directed=False)
    n = len(root_degree)
    vectors = np.zeros((n, count)) if count < n else np.eye(n)
    vectors[np.arange(n), component] = root_degree
    unit: FloatArray = vectors / np.linalg.norm(vectors, axis=0)
    return unit


def _dense(
    normalised: sparse.csr_matrix, known: FloatArray, missing: int
) -> FloatArray:
    """Return the same by a full decomposition, for small graphs."""
    dense = normalised.toarray() - 2.0 * known @ known.T  # moves the known ones to -1
    _, vectors = np.linalg.eigh(dense)
    return np.hstack([known, vectors[:, ::-1][:, :missing]])


def _with_fixed_signs(vectors: FloatArray) -> FloatArray:
    """Return vectors whose entry of largest absolute value is positive."""
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs)

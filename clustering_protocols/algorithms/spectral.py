"""Spectral embedding of rows, from a graph of nearest neighbours.

The form is scikit-learn's (``SpectralClustering(affinity="nearest_neighbors")``): the
graph joins each row with its nearest rows, itself among them; it is symmetrised; the
embedding holds the first eigenvectors of the symmetric normalised Laplacian, divided by
the square roots of the degrees. The algorithm is our own, because two facts save most
of a general solver's time:

- Each connected component of the graph gives one eigenvector of the eigenvalue 0, without
  any iteration. If there are as many components as clusters, they are the clusters. If
  there are more, the eigenvectors to take are not unique: `graph_parts` joins components,
  and each union gives one vector.
- The other eigenvectors belong to the largest eigenvalues of the normalised affinity, for
  which Lanczos converges in a few hundred products. For the smallest of the Laplacian it
  needs a factorisation or thousands of products.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh

from clustering_protocols.records.arrays import FloatArray, IntArray

from . import graph_parts
from .neighbors import Neighbors, RowNeighbors

N_NEIGHBORS: Final = 10
_TOLERANCE: Final = 1e-5  # of the eigenvalues; 1e-2 loses clusters


def spectral_embedding(
    X: FloatArray, n_components: int, rng: np.random.Generator
) -> FloatArray:
    """Return the embedding (n, n_components) of rows X (n, width).

    X: float64 (n, width).
    n_components: number of eigenvectors, the constant one included: the number of
        clusters.
    rng: draws the first vector of the iteration.
    """
    return embed_neighbors(RowNeighbors(X), len(X), n_components, rng)


def embed_neighbors(
    neighbors: Neighbors, n: int, n_components: int, rng: np.random.Generator
) -> FloatArray:
    """Return the embedding (n, n_components) of n rows, given their neighbours."""
    graph = build_affinity(neighbors.nearest_rows(min(N_NEIGHBORS, n)))
    _, part = connected_components(graph, directed=False)
    part = graph_parts.join_components(part, n_components, neighbors)
    return embed_graph(graph, part, n_components, rng)


def embed_graph(
    affinity: sparse.csr_matrix,
    part: IntArray,
    n_components: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the embedding (n, n_components) from affinities (n, n) and part numbers (n,).

    A part is one or several connected components; there are at most n_components parts.
    """
    normalised, root_degree = _normalise_affinity(affinity)
    # D^1/2 1 on each part, normalised, is an eigenvector with eigenvalue exactly 1
    is_in_part = part[:, None] == np.arange(part.max() + 1)
    part_vectors = np.where(is_in_part, root_degree[:, None], 0.0)
    part_vectors /= np.linalg.norm(part_vectors, axis=0)
    vectors = _leading_eigenvectors(normalised, part_vectors, n_components, rng)
    vectors /= root_degree[:, None]
    # the sign of an eigenvector is arbitrary: its largest entry is made positive
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), range(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs)


def build_affinity(neighbors: IntArray) -> sparse.csr_matrix:
    """Return the affinities (n, n): 1 for mutual neighbours, 1/2 if one lists the other.

    neighbors: int64 (n, count); each row is one of its own neighbours, as in scikit-learn.
    """
    n, n_neighbors = neighbors.shape
    rows = np.repeat(np.arange(n, dtype=np.int32), n_neighbors)
    weights = np.full(len(rows), 0.5)
    directed = sparse.csr_matrix((weights, (rows, neighbors.ravel())), shape=(n, n))
    return directed + directed.T


def _normalise_affinity(
    affinity: sparse.csr_matrix,
) -> tuple[sparse.csr_matrix, FloatArray]:
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


def _leading_eigenvectors(
    normalised: sparse.csr_matrix,
    part_vectors: FloatArray,
    n_components: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return orthonormal eigenvectors (n, n_components) of the largest eigenvalues.

    part_vectors: float64 (n, at most n_components); come first in the result.
    """
    n, n_further = len(part_vectors), n_components - part_vectors.shape[1]
    if n_further == 0:
        return part_vectors
    if n <= 10 * n_components or n < 200:  # an iteration saves no time
        # the part vectors get the eigenvalue -1, so that they are not found again
        deflated = normalised.toarray() - 2.0 * part_vectors @ part_vectors.T
        vectors = np.linalg.eigh(deflated)[1][:, ::-1][:, :n_further]
        return np.hstack([part_vectors, vectors])

    def multiply_deflated(vector: FloatArray) -> FloatArray:
        product: FloatArray = normalised @ vector
        return product - part_vectors @ (part_vectors.T @ product)

    operator = LinearOperator((n, n), matvec=multiply_deflated, dtype=np.float64)
    start = rng.standard_normal(n)
    start -= part_vectors @ (part_vectors.T @ start)
    values, vectors = eigsh(operator, k=n_further, which="LA", tol=_TOLERANCE, v0=start)
    order = np.argsort(values)[::-1]
    return np.hstack([part_vectors, vectors[:, order]])

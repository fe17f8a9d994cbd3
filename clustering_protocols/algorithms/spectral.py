"""Spectral embedding of rows, computed from a graph of nearest neighbours.

The definition is scikit-learn's (``SpectralClustering(affinity="nearest_neighbors")``).
The graph connects each row with its nearest rows, including itself, and is made
symmetric. The embedding consists of the first eigenvectors of the symmetric normalised
Laplacian, divided by the square roots of the degrees. This module has its own solver,
because two facts save most of the time that a general solver takes:

- Each connected component of the graph yields an eigenvector with eigenvalue 0 without
  any iteration. If there are as many components as clusters, they are the clusters. If
  there are more, the choice of eigenvectors is not unique. Then components are joined
  into parts, and each part yields one eigenvector.
- The other eigenvectors belong to the largest eigenvalues of the normalised affinity,
  for which Lanczos converges within a few hundred products. For the smallest
  eigenvalues of the Laplacian, Lanczos would need a factorisation or thousands of
  products.

Rows of different components share no edge, so their distances decide which components
are joined into one part. A minimum spanning tree connects the components; its edges
have the affinity 1 / distance. The two parts joined next are those whose separation has
the largest normalised cut (J. Shi, J. Malik, "Normalized cuts and image segmentation",
2000), which is (1/a + 1/b) / distance for parts of a and b rows. If distances alone
decided, distant cliques would become clusters of their own; if sizes alone decided,
small groups would never be clusters (decision record 50).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh

from clustering_protocols.records.arrays import FloatArray, IntArray

from .neighbors import Neighbors, RowNeighbors

N_NEIGHBORS: Final = 10
_TOLERANCE: Final = 1e-5  # relative error of eigenvalues; at 1e-2 clusters are missed


def spectral_embedding(
    X: FloatArray, n_components: int, rng: np.random.Generator
) -> FloatArray:
    """Return the spectral embedding (n, n_components) of rows X (n, width).

    n_components: the number of eigenvectors, including the constant one.
    rng: draws the initial vector of the iteration.
    """
    return embed_neighbors(RowNeighbors(X), len(X), n_components, rng)


def embed_neighbors(
    neighbors: Neighbors, n: int, n_components: int, rng: np.random.Generator
) -> FloatArray:
    """Return the spectral embedding (n, n_components) of n rows from their neighbours."""
    graph = build_affinity(neighbors.nearest_rows(min(N_NEIGHBORS, n)))
    _, component = connected_components(graph, directed=False)
    part = join_components(component, n_components, neighbors)
    normalised, root_degree = _normalise_affinity(graph)
    # D^1/2 1 restricted to a part and normalised is an eigenvector with eigenvalue 1
    is_in_part = part[:, None] == np.arange(part.max() + 1)
    part_vectors = np.where(is_in_part, root_degree[:, None], 0.0)
    part_vectors /= np.linalg.norm(part_vectors, axis=0)
    vectors = _leading_eigenvectors(normalised, part_vectors, n_components, rng)
    vectors /= root_degree[:, None]
    # eigenvectors have arbitrary signs, so make the largest entry of each positive
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), range(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs)


def build_affinity(neighbors: IntArray) -> sparse.csr_matrix:
    """Return affinities (n, n): 1 for mutual neighbours, 1/2 for neighbours one way only.

    neighbors: int64 (n, count); the neighbours of each row, including the row itself.
    """
    n, n_neighbors = neighbors.shape
    rows = np.repeat(np.arange(n, dtype=np.int32), n_neighbors)
    weights = np.full(len(rows), 0.5)
    directed = sparse.csr_matrix((weights, (rows, neighbors.ravel())), shape=(n, n))
    return directed + directed.T


def _normalise_affinity(
    affinity: sparse.csr_matrix,
) -> tuple[sparse.csr_matrix, FloatArray]:
    """Return D^-1/2 A D^-1/2 for A without its diagonal, and the roots of the degrees.

    A row without neighbours counts as having degree 1, as in scipy's Laplacian.
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

    part_vectors: float64 (n, at most n_components); known eigenvectors with eigenvalue
        1, which come first in the result.
    """
    n, n_further = len(part_vectors), n_components - part_vectors.shape[1]
    if n_further == 0:
        return part_vectors
    if n <= 10 * n_components or n < 200:  # a dense solver is as fast
        # the part vectors get the eigenvalue -1, so that they are not found twice
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


def join_components(part: IntArray, max_parts: int, neighbors: Neighbors) -> IntArray:
    """Join components (n,) into at most ``max_parts`` parts and return their numbers (n,).

    No component is split. The order of the rows matters only if distances or costs tie.
    """
    sizes = np.bincount(part)
    if len(sizes) <= max_parts:
        return part
    ends, distances = _spanning_tree(part, neighbors)
    part_of = np.arange(len(sizes))
    while len(distances) >= max_parts:
        a, b = sizes[part_of[ends]]
        cheapest = int((distances * (a / (a + b)) * b).argmin())
        target, source = part_of[ends[:, cheapest]]
        sizes[target] += sizes[source]
        part_of[part_of == source] = target
        ends = np.delete(ends, cheapest, axis=1)
        distances = np.delete(distances, cheapest)
    _, renumbered = np.unique(part_of, return_inverse=True)
    return renumbered[part]


def _spanning_tree(part: IntArray, neighbors: Neighbors) -> tuple[IntArray, FloatArray]:
    """Return the components (2, m) that each tree edge connects, and its length (m,).

    The shortest edge that leaves a set of rows always belongs to the tree. Each step
    starts from the smallest set, because searching it is cheapest.
    """
    original, part, sizes = part, part.copy(), np.bincount(part).astype(np.float64)
    ends, distances = [], []
    for _ in range(len(sizes) - 1):
        smallest = int(sizes.argmin())
        edge = neighbors.closest_outside(part == smallest)
        ends.append((original[edge.inside], original[edge.row]))
        distances.append(edge.distance)
        neighbor_part = part[edge.row]
        part[part == smallest] = neighbor_part
        sizes[neighbor_part] += sizes[smallest]
        sizes[smallest] = np.inf
    return np.transpose(ends), np.array(distances)

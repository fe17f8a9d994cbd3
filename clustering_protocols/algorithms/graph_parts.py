"""Join the components of a neighbour graph if there are more of them than clusters.

Rows of different components share no edge, so their distances decide which components
are joined into one part. A minimum spanning tree connects the components; its edges
have the affinity 1 / distance. The two parts joined next are those whose separation has
the largest normalised cut (J. Shi, J. Malik, "Normalized cuts and image segmentation",
2000), which is (1/a + 1/b) / distance for parts of a and b rows. If distances alone
decided, distant cliques would become clusters of their own; if sizes alone decided,
small groups would never be clusters (decision record 50).
"""

from __future__ import annotations

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray

from .neighbors import Neighbors


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

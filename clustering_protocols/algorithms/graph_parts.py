"""Parts of a graph of neighbours, where there are more of them than clusters.

Rows of different parts share no edge, so parts are joined by distances, not by the
graph. Parts are the nodes of a tree of the shortest ways between them, each of affinity
1 / distance, and the two join whose separation costs the normalised cut most (J. Shi,
J. Malik, "Normalized cuts and image segmentation", 2000): of parts of a and b rows (1/a
+ 1/b) / distance. So neither far cliques keep clusters of their own, as if only
distances counted, nor small groups lose theirs, as if only sizes did (decision record
50).
"""

from __future__ import annotations

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray

from .neighbors import Neighbors


def join(part: IntArray, max_parts: int, neighbors: Neighbors) -> IntArray:
    """Return part numbers (n,) below so many, from those of components (n,).

    No part is cut. The order of rows decides only where distances or costs are equal.
    """
    sizes = np.bincount(part)
    if len(sizes) <= max_parts:
        return part
    ends, distances = _spanning_tree(part, neighbors)
    into = np.arange(len(sizes))
    while len(distances) >= max_parts:
        a, b = sizes[into[ends]]
        cheapest = int((distances * (a / (a + b)) * b).argmin())
        target, source = into[ends[:, cheapest]]
        sizes[target] += sizes[source]
        into[into == source] = target
        ends = np.delete(ends, cheapest, axis=1)
        distances = np.delete(distances, cheapest)
    _, renumbered = np.unique(into, return_inverse=True)
    return renumbered[part]


def _spanning_tree(part: IntArray, neighbors: Neighbors) -> tuple[IntArray, FloatArray]:
    """Return the parts (2, m) and lengths (m,) of the shortest edges that join all parts.

    The shortest edge that leaves a set of rows is one of them, whichever the set. The
    smallest set is searched next, which costs least.
    """
    original, part, sizes = part, part.copy(), np.bincount(part).astype(np.float64)
    ends, distances = [], []
    for _ in range(len(sizes) - 1):
        smallest = int(sizes.argmin())
        edge = neighbors.outside(part == smallest)
        ends.append((original[edge.inside], original[edge.row]))
        distances.append(edge.distance)
        neighbor_part = part[edge.row]
        part[part == smallest] = neighbor_part
        sizes[neighbor_part] += sizes[smallest]
        sizes[smallest] = np.inf
    return np.transpose(ends), np.array(distances)

"""Parts of a graph of neighbours, where there are more of them than clusters.

Rows of different parts share no edge, so that the graph does not say which parts belong
together; distances do. Parts are the nodes of a tree of the shortest ways between them,
each of affinity 1 / distance, and the two join whose separation costs the normalised cut
most (J. Shi, J. Malik, "Normalized cuts and image segmentation", 2000): of parts of a and b
rows (1/a + 1/b) / distance. So neither far cliques keep clusters of their own, as if
only distances counted, nor small groups lose theirs, as if only sizes did (decision
record 50).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray

from .neighbors import Neighbors


def join(part: IntArray, most: int, neighbors: Neighbors) -> IntArray:
    """Return part numbers (n,) below so many, from those of components (n,).

    No part is cut. The order of rows decides only where distances or costs are equal.
    """
    sizes = np.bincount(part)
    if len(sizes) <= most:
        return part
    tree = _spanning_tree(part, neighbors)
    into = np.arange(len(sizes))
    while len(tree.distances) >= most:
        a, b = sizes[into[tree.ends]]
        at = int((tree.distances * (a / (a + b)) * b).argmin())
        kept, joining = into[tree.ends[:, at]]
        sizes[kept] += sizes[joining]
        into[into == joining] = kept
        tree = tree.without(at)
    _, renumbered = np.unique(into, return_inverse=True)
    return renumbered[part]


class _Tree(NamedTuple):
    """Edges between parts: the numbers of both (2, m), and distances (m,)."""

    ends: IntArray
    distances: FloatArray

    def without(self, at: int) -> _Tree:
        return _Tree(np.delete(self.ends, at, axis=1), np.delete(self.distances, at))


def _spanning_tree(part: IntArray, neighbors: Neighbors) -> _Tree:
    """Return the shortest edges that join all parts.

    The shortest edge that leaves a set of rows is one of them, whichever the set: it is
    the smallest that has not joined another, which a search costs least.
    """
    given, part, sizes = part, part.copy(), np.bincount(part).astype(np.float64)
    ends, distances = [], []
    for _ in range(len(sizes) - 1):
        smallest = int(sizes.argmin())
        found = neighbors.outside(part == smallest)
        ends.append((given[found.inside], given[found.row]))
        distances.append(found.distance)
        other = part[found.row]
        part[part == smallest] = other
        sizes[other] += sizes[smallest]
        sizes[smallest] = np.inf
    return _Tree(np.transpose(ends), np.array(distances))

"""Rules for a graph of neighbours that has more parts than clusters, beside each other.

    python -m benchmarks.graph_parts [--draws 20]

Printed is the adjusted Rand index with the groups or classes, of made sets the mean over
those draws whose graph of ten nearest neighbours has more parts than clusters.

first     the vectors of the parts with the lowest numbers; rows of all others have none.
largest   the largest parts stay, each other row joins the nearest row of these.
smallest  the smallest part joins the nearest.
nearest   the two parts that lie nearest to each other join (single linkage).
squares   as cut, with affinities of 1 / distance².
edges     the shortest edges that make the graph connected, of the others' weight, and the
          eigenvectors of what comes out: as Isomap does in scikit-learn.
wider     twice as many neighbours of all rows, until there are no more parts than
          clusters. Takes memory of n² where clusters lie far apart.
cut       the two parts join whose separation costs the normalised cut most, of affinities
          1 / distance: what `clustering_protocols` does.

The first set is 1,000,000 rows by 10,000 means, as a session of `dc` has them that leaves
out a dimension of each party; by the first draw of it, two lumps of one group are parts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import pairwise_distances_argmin_min

from benchmarks.datasets import MissingDataError, load
from clustering_protocols.algorithms import graph_parts, spectral
from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.algorithms.neighbors import RowNeighbors
from clustering_protocols.algorithms.representatives import Representatives
from clustering_protocols.common.limits import N_REPRESENTATIVES
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.dc import collaboration

MANY, PARTIES, ANCHORS = 1_000_000, 4, 500
FEW_MEANS: Final = 3  # draws of the dear set


class Data(NamedTuple):
    """Rows (n, F), their groups (n,), how many, and their graph with its parts."""

    X: Any
    y: Any
    k: int
    graph: Any
    part: Any


def of(X: Any, y: Any, k: int, n_neighbors: int = spectral.N_NEIGHBORS) -> Data:
    """Return rows with their graph."""
    graph = spectral.neighbor_graph(X, min(n_neighbors, len(X)))
    _, part = connected_components(graph, directed=False)
    return Data(X, y, k, graph, part)


# Sets: functions of a draw


def standardised(name: str) -> Data:
    """Return a set in units of its spreads."""
    X, y = load(name)
    return of((X - X.mean(axis=0)) / X.std(axis=0), y, len(np.unique(y)))


def as_given(name: str) -> Data:
    """Return a set in its own units."""
    X, y = load(name)
    return of(X, y, len(np.unique(y)))


def means_of_many(draw: int) -> Data:
    """Return the means that stand for ten groups' rows, each party's less a dimension."""
    rng = np.random.default_rng(draw)
    middles = 3.0 * np.random.default_rng(0).normal(size=(10, 16))
    y = rng.integers(10, size=MANY)
    owner = np.sort(rng.integers(PARTIES, size=MANY))
    rotations = [
        KeyedStream(bytes([each]) * 32).rotation(16) for each in range(PARTIES)
    ]
    anchors = rng.normal(size=(ANCHORS, 16))
    sent = [anchors @ rotation[:, 1:] for rotation in rotations]
    maps = collaboration.isometric_maps(sent, 15, affine=True)
    X = np.empty((MANY, 15))
    for party, (rotation, found) in enumerate(zip(rotations, maps, strict=True)):
        own = owner == party
        rows = middles[y[own]] + rng.normal(size=(np.count_nonzero(own), 16))
        X[own] = rows @ rotation[:, 1:] @ found.G + found.g
    some = Representatives.draw(row_blocks.of(X), N_REPRESENTATIVES, rng)
    return of(some.V, y[some.drawn], 10)


def groups(rng: Any, n: int, sizes: Any, width: int, spread: float) -> tuple[Any, Any]:
    """Return rows of round groups whose middles scatter so much."""
    middles = spread * rng.normal(size=(len(sizes), width))
    y = rng.choice(len(sizes), n, p=sizes)
    return middles[y] + rng.normal(size=(n, width)), y


def far_cliques(draw: int) -> Data:
    """Make four groups, and three dense cliques of twelve rows elsewhere."""
    rng = np.random.default_rng(draw)
    X, y = groups(rng, 2000, np.full(4, 0.25), 4, 6.0)
    far = np.repeat(15.0 * rng.normal(size=(3, 4)), 12, axis=0)
    return beside(X, y, 4, far + 0.1 * rng.normal(size=far.shape))


def small_group(draw: int) -> Data:
    """Make four groups, one of them of thirty rows, and twelve rows elsewhere."""
    rng = np.random.default_rng(draw)
    middles, y = (
        20.0 * rng.normal(size=(5, 3)),
        np.repeat(range(4), (600, 600, 600, 30)),
    )
    X = middles[y] + rng.normal(size=(len(y), 3))
    return beside(X, y, 4, middles[4] + rng.normal(size=(12, 3)))


def beside(X: Any, y: Any, k: int, others: Any) -> Data:
    """Return rows with others, each of which counts to the group of its nearest."""
    nearest = pairwise_distances_argmin_min(others, X)[0]
    return of(np.vstack([X, others]), np.concatenate([y, y[nearest]]), k)


def whole_numbers(draw: int) -> Data:
    """Make four groups in three columns of whole numbers: equal rows are cliques."""
    rng = np.random.default_rng(draw)
    middles, y = 2 * rng.integers(8, size=(4, 3)), rng.integers(4, size=3000)
    return of(np.round(middles[y] + 0.8 * rng.normal(size=(3000, 3))), y, 4)


def two_lumps(draw: int) -> Data:
    """Make groups of a hundred rows, of a thousand, and of a thousand in two lumps."""
    rng = np.random.default_rng(draw)
    y = np.repeat([0, 1, 1, 2], (1000, 700, 300, 100))
    middles = np.array([[0.0, 0.0], [40.0, 0.0], [49.0, 0.0], [0.0, 40.0]])
    lump = np.repeat(range(4), (1000, 700, 300, 100))
    return of(middles[lump] + rng.normal(size=(len(y), 2)), y, 3)


SETS: Final[dict[str, Callable[[int], Data]]] = {
    "means of 1,000,000": means_of_many,
    "banknote": lambda _: as_given("banknote"),
    "banknote, scaled": lambda _: standardised("banknote"),
    "far cliques": far_cliques,
    "a small group": small_group,
    "whole numbers": whole_numbers,
    "two lumps": two_lumps,
}
ONCE: Final = ("banknote", "banknote, scaled")
DEAR: Final = ("means of 1,000,000",)


# Rules: functions that return part numbers or labels


def first(given: Data) -> Any:
    """Return labels by the vectors of the first parts."""
    return np.minimum(given.part, given.k)


def largest(given: Data) -> Any:
    """Return the largest parts, with the rows of others that lie nearest to each."""
    kept = np.argsort(-np.bincount(given.part), kind="stable")[: given.k]
    inside = np.isin(given.part, kept)
    nearest = pairwise_distances_argmin_min(given.X[~inside], given.X[inside])[0]
    part = given.part.copy()
    part[~inside] = part[inside][nearest]
    return part


class Edge(NamedTuple):
    """The shortest way between two parts."""

    distance: float
    row: int
    other: int


def shortest(given: Data) -> list[Edge]:
    """Return the edges of a minimum spanning tree between parts."""
    search = RowNeighbors(given.X)
    part, edges = given.part.copy(), []
    while len(numbers := np.unique(part)) > 1:
        number = min(numbers, key=lambda each: np.count_nonzero(part == each))
        found = search.outside(part == number)
        edges.append(Edge(found.distance, found.inside, found.row))
        part[part == number] = part[found.row]
    return edges


def joined(given: Data, cost: Callable[[float, int, int], Any]) -> Any:
    """Return parts after those joined whose edge costs least by distance and sizes."""
    part, edges = given.part.copy(), shortest(given)
    while len(edges) >= given.k:
        sizes = np.bincount(part)
        costs = [
            cost(edge.distance, sizes[part[edge.row]], sizes[part[edge.other]])
            for edge in edges
        ]
        edge = edges.pop(min(range(len(edges)), key=lambda at: costs[at]))
        part[part == part[edge.row]] = part[edge.other]
    return part


def smallest(given: Data) -> Any:
    """Return parts by their sizes alone."""
    return joined(given, lambda distance, a, b: (min(a, b), distance))


def nearest(given: Data) -> Any:
    """Return parts by single linkage."""
    return joined(given, lambda distance, *_: distance)


def squares(given: Data) -> Any:
    """Return parts by the normalised cut of two, the distance squared."""
    return joined(given, lambda distance, a, b: distance**2 * a * b / (a + b))


def edges(given: Data) -> Any:
    """Return labels by the graph with a spanning tree's edges between its parts."""
    _, rows, others = zip(*shortest(given), strict=True)
    more = sparse.csr_matrix(
        (np.full(len(rows), 0.5), (rows, others)), given.graph.shape
    )
    return by_vectors(given._replace(graph=(given.graph + more + more.T).tocsr()))


def wider(given: Data) -> Any:
    """Return labels by the first graph of more neighbours with few enough parts."""
    n_neighbors = spectral.N_NEIGHBORS
    while given.part.max() >= given.k:
        n_neighbors *= 2
        given = of(given.X, given.y, given.k, n_neighbors)
    return by_vectors(given)


def by_vectors(given: Data) -> Any:
    """Return labels by k-means of eigenvectors of a graph."""
    rng = np.random.default_rng(0)
    _, part = connected_components(given.graph, directed=False)
    Z = spectral.embed_graph(given.graph, part, given.k, rng)
    return kmeans(Z, draw_starts(Z, given.k, 10, rng), 300).labels


def cut(given: Data) -> Any:
    """Return what `clustering_protocols` makes of it."""
    return graph_parts.join(given.part, given.k, RowNeighbors(given.X))


RULES: Final = (first, largest, smallest, nearest, squares, edges, wider, cut)


def drawn(name: str, draws: int) -> Iterator[Data]:
    """Yield the draws of a set with more parts than clusters."""
    of_set = 1 if name in ONCE else min(draws, FEW_MEANS) if name in DEAR else draws
    for draw in range(of_set):
        given = SETS[name](draw)
        if given.part.max() >= given.k:
            yield given


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--draws", type=int, default=20)
    arguments = parser.parse_args()
    names = (rule.__name__ for rule in RULES)
    print("| set | draws | parts | " + " | ".join(names) + " |")
    print("|" + " --- |" * (3 + len(RULES)))
    for name in arguments.sets:
        try:
            row = figures([*drawn(name, arguments.draws)])
        except MissingDataError as missing:
            row = str(missing)
        print(f"| {name} | {row} |", flush=True)


def figures(all_given: list[Data]) -> str:
    """Return the means over draws of a set."""
    parts = [1 + given.part.max() for given in all_given]
    indices = [
        f"{np.mean([adjusted_rand(given.y, rule(given)) for given in all_given]):.3f}"
        for rule in RULES
        if all_given
    ]
    return " | ".join(
        [
            f"{len(parts)}",
            f"{min(parts, default=0)} to {max(parts, default=0)}",
            *indices,
        ]
    )


if __name__ == "__main__":
    main()

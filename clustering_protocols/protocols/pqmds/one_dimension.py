"""Exact k-means of one feature.

Clusters of sorted values are intervals, so k-means is the shortest path with k links
from 0 to m, where the link (i, j) costs the squared deviations of the values i … j-1:
three prefix sums. These costs satisfy the quadrangle inequality, and so

- with a penalty per link and the number of links left free, one pass with a queue of
  candidates finds the shortest path (Z. Galil and K. Park, "A linear-time algorithm for
  concave one-dimensional dynamic programming", 1990);
- the least cost is convex in the number of links, so some penalty gives k links, and
  where it gives fewer and more at once, two such paths can be joined to one of k links
  (A. Aggarwal, B. Schieber, T. Tokuyama, "Finding a minimum-weight k-link path in graphs
  with the concave Monge property", 1994).

O(m log m) per penalty; a handful of penalties.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.numerics.compilation import compile_kernel, inline_helper
from clustering_protocols.records.arrays import FloatArray, IntArray

_MAX_PENALTIES: Final = 64
_NARROW: Final = 1 + 1e-12  # two penalties this close are one but for rounding


def optimal_intervals(values: FloatArray, weights: FloatArray, size: int) -> IntArray:
    """Return where the clusters of least inertia begin, and m at the end.

    values: float64 (m,); ascending and different.
    weights: float64 (m,); how often each occurs.
    size: number of clusters; the result has ``min(size, m) + 1`` entries.
    """
    m = len(values)
    few: IntArray = np.array([0, m], dtype=np.int64)
    many = np.arange(m + 1, dtype=np.int64)
    if size >= m:
        return many
    if size == 1:
        return few
    sums = _prefix_sums(values, weights)
    high = float(sums[2, m] - sums[1, m] ** 2 / sums[0, m])  # one link costs as much
    low = high * float(np.finfo(np.float64).eps) ** 2
    penalty = high / size**3
    for _ in range(_MAX_PENALTIES):
        path = _cheapest_path(sums, penalty)
        links = len(path) - 1
        if links == size:
            return path
        if links < size:
            few, high = path, penalty
        else:
            many, low = path, penalty
        if high <= low * _NARROW:
            break
        penalty = _next_penalty(penalty, links / size, low, high)
    return _join_paths(few, many, size)


def _prefix_sums(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return sums of w, w x and w x² (3, m + 1) of centred values."""
    centred = values - np.average(values, weights=weights)
    terms = weights * np.stack([np.ones_like(centred), centred, centred**2])
    return np.pad(np.cumsum(terms, axis=1), ((0, 0), (1, 0)))


def _next_penalty(penalty: float, excess: float, low: float, high: float) -> float:
    """Return the next guess: of a smooth density, links fall with penalty^(-1/3)."""
    guess = penalty * excess**3
    return guess if low < guess < high else float(np.sqrt(low * high))


@inline_helper
def _cost(sums: FloatArray, i: int, j: int) -> float:
    """Return the squared deviations of the values i … j-1 from their mean."""
    moved = sums[1, j] - sums[1, i]
    cost: float = sums[2, j] - sums[2, i] - moved**2 / (sums[0, j] - sums[0, i])
    return cost


@inline_helper
def _beats(sums: FloatArray, length: FloatArray, j: int, i: int, end: int) -> bool:
    """Return whether a last link from j to ``end`` is better than one from i."""
    by_j: float = length[j] + _cost(sums, j, end)
    by_i: float = length[i] + _cost(sums, i, end)
    return by_j < by_i


@compile_kernel
def _first_beaten(
    sums: FloatArray, length: FloatArray, j: int, i: int, worse: int
) -> int:
    """Return the first node where j beats i: after ``worse``, not after the last.

    It is usually near: steps double before what lies between is halved.
    """
    m = len(length) - 1
    better, step = worse + 1, 1
    while better < m and not _beats(sums, length, j, i, better):
        worse = better
        step *= 2
        better = min(m, better + step)
    while worse + 1 < better:
        middle = (worse + better) // 2
        if _beats(sums, length, j, i, middle):
            better = middle
        else:
            worse = middle
    return better


@compile_kernel
def _nodes(before: IntArray) -> IntArray:
    """Return the nodes of the path that ends at the last node, ascending."""
    links, j = 0, len(before) - 1
    while j > 0:
        j = before[j]
        links += 1
    path = np.zeros(links + 1, np.int64)
    j = len(before) - 1
    for link in range(links, -1, -1):
        path[link] = j
        j = before[j]
    return path


@compile_kernel
def _cheapest_path(sums: FloatArray, penalty: float) -> IntArray:
    """Return the nodes of the shortest path from 0 to m with a penalty per link.

    ``candidates`` in the queue are best predecessors from ``begins`` on, each until the
    next one begins: by the quadrangle inequality a later one, once better, stays better.
    """
    m = sums.shape[1] - 1
    length = np.zeros(m + 1)
    before = np.zeros(m + 1, np.int64)
    candidates = np.zeros(m + 1, np.int64)
    begins = np.zeros(m + 1, np.int64)
    head, tail = 0, 1
    for j in range(1, m + 1):
        while head + 1 < tail and begins[head + 1] <= j:
            head += 1
        i = candidates[head]
        length[j] = length[i] + _cost(sums, i, j) + penalty
        before[j] = i
        if j == m:
            break
        last = candidates[tail - 1]
        if not _beats(sums, length, j, last, m):
            continue
        place = j + 1
        while tail > head:
            last = candidates[tail - 1]
            place = max(begins[tail - 1], j + 1)
            if not _beats(sums, length, j, last, place):
                place = _first_beaten(sums, length, j, last, place)
                break
            tail -= 1
        candidates[tail] = j
        begins[tail] = place
        tail += 1
    return _nodes(before)


def _join_paths(few: IntArray, many: IntArray, size: int) -> IntArray:
    """Return ``size`` links: the beginning of one shortest path, the end of another.

    Where a link of ``many`` lies within the link of ``few`` of the right number, they
    can change their ends at no cost.
    """
    ahead = len(many) - 1 - size
    shifted = many[ahead : ahead + len(few)]
    link = int(np.flatnonzero(shifted[1:] <= few[1 : len(shifted)])[0])
    return np.concatenate([few[: link + 1], many[ahead + link + 1 :]])

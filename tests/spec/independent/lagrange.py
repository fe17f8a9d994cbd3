"""Section 12: omnifc, Lagrange coding modulo p, and distances between shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .derivations import P

Words = NDArray[np.uint64]


def _base(nodes: Sequence[int], own: int, at: int) -> int:
    """Section 12, omnifc, shares: what a point counts at another one."""
    top = bottom = 1
    for node in nodes:
        if node != own:
            top, bottom = top * (at - node) % P, bottom * (own - node) % P
    return top * pow(bottom, -1, P) % P


def cut(residues: Words, n_segments: int) -> list[Words]:
    """Section 12, omnifc, shares: segments of rows."""
    n, d = residues.shape
    width = -(-d // n_segments)
    filled = np.zeros((n, n_segments * width), np.uint64)
    filled[:, :d] = residues
    return [filled[:, o * width : (o + 1) * width] for o in range(n_segments)]


def encode(parts: Sequence[Words], number: int) -> Words:
    """Section 12, omnifc, shares: the share of a slot."""
    nodes = [2 * o + 1 for o in range(len(parts))]
    total: NDArray[Any] = np.zeros(parts[0].shape, object)
    for node, part in zip(nodes, parts, strict=True):
        total += _base(nodes, node, 2 * number) * part.astype(object)
    return (total % P).astype(np.uint64)


def weigh(n_segments: int, number: int, n_slots: int) -> int:
    """Section 12, omnifc, distances: with what a slot multiplies its own."""
    points = [2 * j for j in range(n_slots)]
    found = (_base(points, 2 * number, 2 * o + 1) for o in range(n_segments))
    return sum(found) % P


def compare(held: Words, first: int) -> list[int]:
    """Section 12, omnifc, distances: of pairs i < j, i among the first rows."""
    rows = held.astype(object)
    return [
        int(np.square(rows[i] - rows[j]).sum()) % P
        for i in range(first)
        for j in range(i + 1, len(rows))
    ]

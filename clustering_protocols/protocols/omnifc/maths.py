"""Lagrange coding: the points, the weights that follow from them, and rows as shares.

A row is l segments and t noise segments s_1 … s_{l+t}. They are the values of a
polynomial f of degree l + t - 1 at the *data points* 1, 3, 5, …; party j holds f at its
*share point* 2j. No share point is a data point: it would hand out the segment.

Plain integers modulo any prime: these are a few hundred numbers per session, and a small
prime lets a test try all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy import field
from clustering_protocols.secrecy.prime import P

Matrix = list[list[int]]

MIN_PARTIES: Final = 3


def count_needed_values(segments: int, noise: int) -> int:
    """Return R = 2l + 2t - 1: the values that determine a pair's polynomial."""
    return 2 * segments + 2 * noise - 1


def data_points(count: int) -> list[int]:
    """Return the points of the segments and the noise: odd."""
    return [2 * index + 1 for index in range(count)]


def share_points(count: int) -> list[int]:
    """Return the points of the parties, in slot order: even."""
    return [2 * index for index in range(count)]


def basis(nodes: Sequence[int], at: int, p: int = P) -> list[int]:
    """Return L_j(at) mod p for each node j: 1 at its own node, 0 at the others."""
    values = []
    for j, own in enumerate(nodes):
        top = bottom = 1
        for k, other in enumerate(nodes):
            if k != j:
                top = top * (at - other) % p
                bottom = bottom * (own - other) % p
        values.append(top * pow(bottom, -1, p) % p)
    return values


def build_encoding_matrix(
    segments: int, noise: int, parties: int, p: int = P
) -> Matrix:
    """Return the matrix (parties × (l + t)) that takes segments to shares."""
    nodes = data_points(segments + noise)
    return [basis(nodes, point, p) for point in share_points(parties)]


def build_decoding_weights(
    segments: int, points: Sequence[int], p: int = P
) -> list[int]:
    """Return w_j = Σ_{o ≤ l} L_j(α_o), the weight of the answer at each share point.

    A pair's answers are the values of a polynomial of degree 2(l + t - 1) whose values
    at the first l data points add up to the squared distance (the paper's Theorem 1).
    """
    values = [basis(points, point, p) for point in data_points(segments)]
    return [sum(column) % p for column in zip(*values, strict=True)]


def checks(points: Sequence[int], needed_: int, p: int = P) -> Matrix:
    """Return weights whose sums over consistent answers are zero.

    Rows of the dual of the Reed-Solomon code of length N and dimension R: v_j and, with
    two more answers than needed, v_j β_j, where v_j = 1 / Π_{k ≠ j} (β_j - β_k). If
    answer j alone is wrong by e, they give e v_j and e v_j β_j, and their ratio is β_j.
    """
    v = []
    for j, own in enumerate(points):
        bottom = 1
        for k, other in enumerate(points):
            if k != j:
                bottom = bottom * (own - other) % p
        v.append(pow(bottom, -1, p))
    rows = min(len(points) - needed_, 2)
    return [
        [w * pow(x, power, p) % p for w, x in zip(v, points, strict=True)]
        for power in range(rows)
    ]


_TERMS: Final = 4  # of one pass; see `field.add_multiples`


def combine(weights: Sequence[int], parts: Sequence[WordArray]) -> WordArray:
    """Return Σ_k weights_k parts_k mod p, for parts of equal length."""
    total: WordArray = np.zeros(len(parts[0]), dtype=np.uint64)
    for rows, block in blocks(total):
        add_combination(block, weights, [part[rows] for part in parts])
        field.settle(block)
    return total


def blocks(total: WordArray) -> Iterator[tuple[slice, WordArray]]:
    """Yield pieces of an array that stay in the cache while parts are added to them."""
    for begin in range(0, len(total), field.BLOCK):
        rows = slice(begin, begin + field.BLOCK)
        yield rows, total[rows]


def add_combination(
    total: WordArray, weights: Sequence[int], parts: Sequence[WordArray]
) -> None:
    """Add Σ_k weights_k parts_k to total, in place; it may end unsettled."""
    if all(weight == 1 for weight in weights):
        for part in parts:
            field.add(total, part)
        return
    for begin in range(0, len(parts), _TERMS):
        some = list(parts[begin : begin + _TERMS])
        padded = np.zeros(_TERMS, dtype=np.uint64)
        padded[: len(some)] = weights[begin : begin + _TERMS]
        some += some[:1] * (_TERMS - len(some))  # with weight 0, and in the cache
        field.add_multiples(total, padded, *some)


def cut(rows: WordArray, segments: int) -> list[WordArray]:
    """Return l segments (n · width,) of rows (n, d); zeros fill the last."""
    n, d = rows.shape
    width = -(-d // segments)
    padded: WordArray = np.zeros((n, segments * width), dtype=np.uint64)
    padded[:, :d] = rows
    return [
        np.ascontiguousarray(padded[:, begin : begin + width]).reshape(-1)
        for begin in range(0, segments * width, width)
    ]


def encode(
    matrix: Sequence[Sequence[int]], parts: Sequence[WordArray]
) -> list[WordArray]:
    """Return each party's share (n · width,) of segments and noise.

    matrix: (parties × (l + t)) integers; see :func:`lagrange.build_encoding_matrix`.
    parts: l + t uint64 (n · width,).
    """
    return [combine(weights, parts) for weights in matrix]

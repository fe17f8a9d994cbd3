"""Combinations of residue arrays, and the encoding of rows into shares by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy import field

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

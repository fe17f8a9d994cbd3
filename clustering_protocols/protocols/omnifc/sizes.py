"""Memory as a function of n, and the refusal of what does not fit."""

from __future__ import annotations

from collections.abc import Callable

from .params import OmniFC

_PROCESS = 1 << 28  # the interpreter and its libraries, and blocks of fixed size
_WORD = 8
_FEATURE_COPIES = 6  # rows of an embedding, its factor, and an iteration's temporaries
_GRAPH = 200  # words per row of a graph of ten neighbours, symmetrised and scaled
PARTY_LIMIT = 3 << 30


def n_pairs(n: int) -> int:
    """Return n (n - 1) / 2."""
    return n * (n - 1) // 2


def upload_bytes(n: int) -> int:
    """Return the bytes of one party's answer: 4 n (n - 1), 400 MB for 10,000 rows."""
    return _WORD * n_pairs(n)


def analyst_bytes(params: OmniFC, n: int, n_features: int) -> int:
    """Return the anonymous memory of the analyst's step, a bound.

    Condensed distances, decoded from mapped uploads block by block. Nothing grows with
    the number of parties.
    """
    per_row = _FEATURE_COPIES * (n_features + 2) + 4 * (params.n_clusters or 1) + _GRAPH
    return _PROCESS + upload_bytes(n) * _condensed(params) + n * per_row * _WORD


def _condensed(params: OmniFC) -> int:
    """Return how many condensed arrays are held at once; a square counts as two."""
    count = 1
    if params.features == "distance_rows":
        count += 2  # the rows
    if params.algorithm == "nmf":
        count += 4  # W H and its difference from the rows, for scikit-learn's error
    elif params.features == "distance_rows":
        count += 1  # distances between rows
    if params.algorithm == "hierarchical":
        count += 1  # fastcluster's own
    return count


def party_bytes(params: OmniFC, n: int, n_features: int) -> int:
    """Return the memory of a party's round: its answer, once more as bytes, shares."""
    width = -(-n_features // params.segments)
    return _PROCESS + 2 * upload_bytes(n) + 4 * n * width * _WORD


def most_rows(bytes_of: Callable[[int], int], limit: int) -> int:
    """Return the largest n whose bytes, a growing function of n, stay within a limit."""
    low, high = 0, 1 << 24
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bytes_of(middle) <= limit else (low, middle)
    return low

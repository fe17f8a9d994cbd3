"""What fits: refused when a session is created, or when all have joined.

Numbers of parties, segments and noise are known from the terms, those of rows and
features from the roster. Memory is a function of n.
"""

from __future__ import annotations

from collections.abc import Callable

from clustering_protocols.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.terms import Layout

from . import lagrange, rosters
from .params import OmniFC, OmniSession

_PROCESS = 1 << 28  # the interpreter and its libraries, and blocks of fixed size
_WORD = 8
_FEATURE_COPIES = 6  # rows of an embedding, its factor, and an iteration's temporaries
_GRAPH = 200  # words per row of a graph of ten neighbours, symmetrised and scaled
PARTY_LIMIT = 3 << 30


def check(params: OmniFC, layout: Layout) -> None:
    """Raise :class:`InvalidParameters` unless parameters and layout fit."""
    if layout.n_column_groups > 1:
        raise InvalidParameters(
            f"omnifc splits rows alone; the layout has {layout.n_column_groups} column "
            "groups."
        )
    _check_parties(params, len(layout.slots))
    _check_memory(params)


def _check_parties(params: OmniFC, parties: int) -> None:
    needed = lagrange.needed(params.segments, params.noise)
    if parties >= needed:
        return
    most = (parties + 1) // 2
    with_these = (
        f"{parties} parties suffice for segments + noise of at most {most}."
        if most >= 2
        else f"The least, segments = noise = 1, takes {lagrange.MIN_PARTIES}."
    )
    raise InvalidParameters(
        f"segments = {params.segments} and noise = {params.noise} need {needed} parties; "
        f"the layout has {parties}. {with_these}"
    )


def _check_memory(params: OmniFC) -> None:
    """Refuse a number of rows whose distances do not fit, features not counted."""
    needed = analyst_bytes(params, params.max_rows, n_features=1)
    if needed > params.memory_limit:
        most = most_rows(lambda n: analyst_bytes(params, n, 1), params.memory_limit)
        raise InvalidParameters(
            f"max_rows = {params.max_rows} takes {needed} bytes at the analyst; "
            f"memory_limit is {params.memory_limit}, room for max_rows = {most}."
        )


def check_roster(session: OmniSession) -> None:
    """Refuse rows, features or clusters that the terms have no room for."""
    params = session.params
    n, d = rosters.n_rows(session), rosters.n_features(session)
    if n > params.max_rows:
        raise ProtocolFailed(f"{n} rows came together; max_rows is {params.max_rows}.")
    needed = analyst_bytes(params, n, d)
    if needed > params.memory_limit:
        most = most_rows(
            lambda rows: analyst_bytes(params, rows, d), params.memory_limit
        )
        raise ProtocolFailed(
            f"{n} rows of {d} features take {needed} bytes; memory_limit is "
            f"{params.memory_limit}, room for {most} rows."
        )
    if params.n_clusters is not None and params.n_clusters > n:
        raise ProtocolFailed(f"n_clusters is {params.n_clusters}; there are {n} rows.")


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

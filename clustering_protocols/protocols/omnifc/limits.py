"""Sizes of a session's uploads and memory; sessions that are too large are refused.

The numbers of parties, segments and noise segments come from the terms, and the numbers
of rows and features from the roster.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from clustering_protocols.common.limits import count_graph_rows
from clustering_protocols.contract.sizing import WORD, Extent, Sizes

from .params import OmniFC, OmniSession


def n_pairs(n: int) -> int:
    """Return the number of pairs of n rows, n (n - 1) / 2."""
    return n * (n - 1) // 2


def n_landmarks(n_features: int) -> int:
    """Return L = d + 1, the smallest number of landmarks that span d dimensions."""
    return n_features + 1


def size_of(session: OmniSession) -> tuple[int, int]:
    """Return n, the number of rows of all parties, and d, the number of features."""
    return sum(session.row_counts), session.column_widths[0]


_PROCESS = 1 << 28  # the interpreter and its libraries, and blocks of fixed size
_FEATURE_COPIES = 6  # rows of an embedding, its factor, and an iteration's temporaries
_GRAPH = 200  # words per row of a graph of ten neighbours, symmetrised and scaled
_STRIPES = 32  # rows of distances to landmarks: two stripes of 16 at a time
_SILHOUETTE_ROWS = 32_768
PARTY_LIMIT = 3 << 30


def answer_pairs(params: OmniFC, n: int, n_features: int) -> int:
    """Return the number of distances in an answer.

    An answer has one distance for each pair of rows or, with landmarks, about L
    distances for each row.
    """
    if params.distances == "all":
        return n_pairs(n)
    count = n_landmarks(n_features)
    return n_pairs(count) + count * n


def upload_bytes(params: OmniFC, n: int, n_features: int) -> int:
    """Return the size in bytes of one party's answer.

    For 10,000 rows of 16 features, all distances take 400 MB, and those to landmarks
    1.4 MB.
    """
    return WORD * answer_pairs(params, n, n_features)


def measures_silhouette(params: OmniFC) -> bool:
    """Return whether the silhouette is computed, which takes time in proportion to n²."""
    return params.distances == "all" or params.max_rows <= _SILHOUETTE_ROWS


def analyst_bytes(params: OmniFC, n: int, n_features: int) -> int:
    """Return an upper bound on the memory in bytes of the analyst's step.

    Memory-mapped files do not count. Distances are decoded block by block from mapped
    uploads, so that nothing grows with the number of parties.
    """
    per_row = _FEATURE_COPIES * (n_features + 2) + 4 * (params.n_clusters or 1)
    graph = _GRAPH * (count_graph_rows(n) if params.samples_rows(n) else n)
    decoded = upload_bytes(params, n, n_features)
    copies = WORD * n_pairs(n) * _count_condensed_arrays(params)
    return _PROCESS + decoded + copies + (n * per_row + graph) * WORD


def _count_condensed_arrays(params: OmniFC) -> int:
    """Return how many condensed arrays are in memory besides the decoded distances.

    A square array counts as two.
    """
    if params.distances == "landmarks":
        return {"kmedoids": 1, "hierarchical": 2}.get(params.algorithm, 0)
    count = 0
    if params.features == "distance_rows":
        count += 2  # the square matrix of distances
    if params.algorithm == "nmf":
        count += 4  # W H, and X - W H, from which scikit-learn computes the error
    elif params.features == "distance_rows":
        count += 1  # distances between the rows of that matrix
    if params.algorithm == "hierarchical":
        count += 1  # fastcluster's own copy
    return count


def party_bytes(params: OmniFC, n: int, n_features: int) -> int:
    """Return the bytes that a party's round takes: two copies of its answer, and shares."""
    width = params.segment_width(n_features)
    answer = upload_bytes(params, n, n_features)
    stripes = _STRIPES * n if params.distances == "landmarks" else 0
    return _PROCESS + 2 * answer + (4 * n * width + stripes) * WORD


def most_rows(bytes_of: Callable[[int], int], limit: int) -> int:
    """Return the largest n with bytes_of(n) ≤ limit; bytes_of must increase with n."""
    return max(bisect_right(range(1 << 24), limit, key=bytes_of) - 1, 0)


def rows_that_fit(params: OmniFC, n_features: int) -> int:
    """Return the largest number of rows that the analyst can cluster in memory_limit."""
    return most_rows(
        lambda n: analyst_bytes(params, n, n_features), params.memory_limit
    )


class OmniFcSizes(Sizes[OmniFC]):
    """Estimates how much a session of OmniFC uploads and holds in memory."""

    def upload_bytes(self, params: OmniFC, extent: Extent) -> int:
        """Return the bytes of a party's shares for all others, and of its answer."""
        width = params.segment_width(extent.features)
        shares = WORD * extent.party_rows * width * (extent.parties - 1)
        return shares + upload_bytes(params, extent.rows, extent.features)

    def memory_bytes(self, params: OmniFC, extent: Extent) -> int:
        """Return an upper bound on the memory of the analyst's step, in bytes."""
        return analyst_bytes(params, extent.rows, extent.features)

    def most_rows(self, params: OmniFC, n_features: int) -> int:
        """Return max_rows, or fewer if the analyst would exceed memory_limit."""
        return min(params.max_rows, rows_that_fit(params, n_features))

    def advice_beyond_limit(self, params: OmniFC) -> str:
        """Return a sentence on how more rows can be clustered."""
        if params.distances == "all":
            return (
                "Distances between all rows grow with the square of their number: choose "
                "distances 'landmarks', or raise max_rows and memory_limit."
            )
        return "Raise max_rows, and memory_limit if needed."

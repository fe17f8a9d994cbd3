"""From what a protocol tells of a result to what a report says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from clustering_protocols import session_terms
from clustering_protocols.numerics.outcomes import OutcomeTable, outcome_tables
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.terms.terms import Terms
from clustering_protocols.wire.answers import SessionStatus
from coterie_pages.models import Matrix

_OTHER_ARRAYS: Final = frozenset(
    {"cluster_sizes", "clusters", "sizes", "centroids", "starts"}
)


def n_clusters_of(terms: Terms, status: SessionStatus) -> int | None:
    """Return how many clusters were asked for, of the run that counts."""
    chosen = [run.n_clusters for run in status.runs if run.chosen]
    if terms.evaluation is not None and chosen:
        return chosen[0]
    found: int | None = getattr(session_terms.check_terms(terms), "n_clusters", None)
    return found


def outcomes_in(terms: Terms, profiles: Sequence[Profile]) -> tuple[OutcomeTable, ...]:
    """Return intervals and tests of the variables that terms only describe."""
    described = [schema.described_names for schema in terms.dictionary or ()]
    return outcome_tables(profiles, described)


def result_of(summary: Record, n_clusters: int | None) -> dict[str, Any]:
    """Return sizes, centroids and what else the coordinator may read of a result.

    Where a protocol tells no sizes of small clusters, those that it tells are named.
    """
    arrays = summary.arrays
    sizes, clusters = arrays.get("cluster_sizes"), arrays.get("clusters")
    told = plain(summary.values)
    told |= {
        name: ", ".join(map(str, array.tolist()))
        for name, array in arrays.items()
        if array.ndim == 1 and array.size and name not in _OTHER_ARRAYS
    }
    if clusters is not None and "sizes" in arrays:
        sizes = arrays["sizes"]
        if clusters.tolist() != list(range(n_clusters or len(clusters))):
            pairs = zip(clusters.tolist(), sizes.tolist(), strict=True)
            told["rows of large clusters"] = ", ".join(f"{c}: {n}" for c, n in pairs)
            sizes = None
    return {
        "sizes": sizes_of(sizes),
        "centroids": matrix_of(arrays.get("centroids"), ()),
        "told": told,
    }


def matrix_of(values: FloatArray | None, columns: tuple[str, ...]) -> Matrix | None:
    """Return centroids (k, m) as rows of numbers, with names where there are m of them."""
    if values is None or values.ndim != 2 or not values.size:
        return None
    named = columns if len(columns) == values.shape[1] else ()
    return Matrix(columns=named, rows=tuple(map(tuple, values.tolist())))


def sizes_of(sizes: IntArray | None) -> tuple[int, ...]:
    """Return the rows of each cluster; nothing where nobody tells."""
    return () if sizes is None else tuple(sizes.tolist())


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a protocol tells as JSON values, a table's items each by itself."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= {f"{name} {key}": item for key, item in value.items()}
        elif value is not None:
            found[name] = value
    return found

"""Views of a session's status and result, for its page and its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from clustering_protocols import session_terms
from clustering_protocols.numerics.outcomes import OutcomeTable, outcome_tables
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.terms.terms import Layout, Terms
from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.states import SessionState, summarise_stop
from coterie_pages.models import Matrix, SlotEntry

Action: TypeAlias = Literal["cancel", "extend", "choose"]


def slot_entries(
    status: SessionStatus, layout: Layout | None = None
) -> Iterator[SlotEntry]:
    """Yield an entry for each slot in the status, with its title if a layout is given."""
    for slot in status.slots:
        yield SlotEntry(
            slot=slot.name,
            title="" if layout is None else layout.slot(slot.name).title,
            row=slot.row,
            column=slot.column,
            state=slot.state,
            reason=slot.reason or "",
            read_at=slot.read_at,
            stopped=summarise_stop(slot.stopped),
            joined_at=slot.joined_at,
            n_rows=slot.n_rows,
        )


def allowed_actions(status: SessionStatus) -> Iterator[Action]:
    """Yield the actions that the coordinator can take in the current state."""
    if status.is_over:
        return
    yield "cancel"
    if status.state is not SessionState.STEPPING:
        yield "extend"
    if status.state is SessionState.CHOOSING:
        yield "choose"


_OTHER_ARRAYS: Final = frozenset(
    {"cluster_sizes", "clusters", "sizes", "centroids", "starts"}
)


def n_clusters_of(terms: Terms, status: SessionStatus) -> int | None:
    """Return the number of clusters of the selected run, or None if it has none."""
    selected = [run.n_clusters for run in status.runs if run.chosen]
    if terms.evaluation is not None and selected:
        return selected[0]
    number: int | None = getattr(session_terms.check_terms(terms), "n_clusters", None)
    return number


def outcomes_in(terms: Terms, profiles: Sequence[Profile]) -> tuple[OutcomeTable, ...]:
    """Return intervals and tests for the variables that are described but not clustered."""
    described = [schema.described_names for schema in terms.dictionary or ()]
    return outcome_tables(profiles, described)


def result_of(summary: Record, n_clusters: int | None) -> dict[str, Any]:
    """Return the sizes, centroids and other values that the coordinator may read.

    If the sizes of small clusters are withheld, ``sizes`` is empty, and an entry of
    ``told`` lists the sizes of the other clusters.
    """
    arrays = summary.arrays
    sizes, clusters = arrays.get("cluster_sizes"), arrays.get("clusters")
    details = flatten(summary.values)
    details |= {
        name: ", ".join(map(str, array.tolist()))
        for name, array in arrays.items()
        if array.ndim == 1 and array.size and name not in _OTHER_ARRAYS
    }
    if clusters is not None and "sizes" in arrays:
        sizes = arrays["sizes"]
        if clusters.tolist() != list(range(n_clusters or len(clusters))):
            pairs = zip(clusters.tolist(), sizes.tolist(), strict=True)
            details["rows of large clusters"] = ", ".join(f"{c}: {n}" for c, n in pairs)
            sizes = None
    return {
        "sizes": sizes_of(sizes),
        "centroids": matrix_of(arrays.get("centroids"), ()),
        "told": details,
    }


def matrix_of(values: FloatArray | None, columns: tuple[str, ...]) -> Matrix | None:
    """Return centroids (k, m) as a matrix, with column names if there are m of them."""
    if values is None or values.ndim != 2 or not values.size:
        return None
    names = columns if len(columns) == values.shape[1] else ()
    return Matrix(columns=names, rows=tuple(map(tuple, values.tolist())))


def sizes_of(sizes: IntArray | None) -> tuple[int, ...]:
    """Return the number of rows in each cluster; empty if the sizes are not published."""
    return () if sizes is None else tuple(sizes.tolist())


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten published values: drop None, and replace each mapping by its items."""
    plain_values: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            plain_values |= {f"{name} {key}": item for key, item in value.items()}
        elif value is not None:
            plain_values[name] = value
    return plain_values

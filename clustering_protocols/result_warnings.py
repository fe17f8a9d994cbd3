"""What may have spoilt a result, or will: sentences for anyone who relies on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clustering_protocols import catalogue, field_risks, session_terms
from clustering_protocols.contract.disclosures import Kind, Reader, kinds_of

if TYPE_CHECKING:
    from clustering_protocols.contract import Params
    from clustering_protocols.numerics.metrics import Figures
    from clustering_protocols.terms.preparation import ColumnPlan
    from clustering_protocols.terms.schema import Schema
    from clustering_protocols.terms.terms import Layout, Terms

_OUTLIERS = 2
"""As many rows or fewer are no cluster."""


def of_terms(terms: Terms) -> list[str]:
    """Return what follows from terms; widths are known where a dictionary says them."""
    if terms.dictionary is None:
        return []
    plans = terms.plans
    widths = [len(schema.clustered_part.names) for schema in terms.dictionary]
    if plans:
        widths = [len(plan.columns) for plan in plans]
    params = session_terms.check_terms(terms)
    return [
        *of_session(params, terms.layout, widths),
        *of_fields(params, terms.layout, terms.dictionary, plans),
    ]


def of_session(params: Params, layout: Layout, widths: Sequence[int]) -> list[str]:
    """Return what follows from parameters and the columns of each column group."""
    known = catalogue.protocol_of(params)
    return list(known.cautions(params, layout, widths))


def of_fields(
    params: Params,
    layout: Layout,
    dictionary: Sequence[Schema],
    plans: Sequence[ColumnPlan] = (),
) -> list[str]:
    """Return which fields the analyst may find in rows up to a motion, if it has these.

    dictionary: of each column group.
    plans: what becomes of the fields of each column group, where the terms say it.
    """
    known = catalogue.protocol_of(params)
    if Kind.GEOMETRY not in kinds_of(known.shows(params, layout), Reader.OUTSIDE):
        return []
    clustered = [schema.clustered_part for schema in dictionary]
    return field_risks.sentences(clustered, plans)


def _all_coincide(known: frozenset[str], figures: Figures | None) -> bool:
    """Return whether one cluster has all rows, or memberships are alike in all."""
    if figures is None or figures.n_clusters == 1:
        return figures is not None
    if figures.inertia is None and figures.criterion is None:
        return False  # figures that were held back
    return "partition_coefficient" in known and figures.partition_coefficient is None


def of_result(
    params: Params,
    *,
    layout: Layout,
    report: Mapping[str, Any],
    figures: Figures | None,
    sizes: Sequence[int] | None,
    runs: Sequence[Figures] = (),
) -> list[str]:
    """Return what a result shows by itself.

    params: of the run that counts.
    report: what the protocol told the operator.
    figures: of that run.
    sizes: rows of each cluster, over all parties.
    runs: the figures of all runs, where there are several.
    """
    from clustering_protocols.quality.gap import says_one  # numpy: pages need none

    known = catalogue.protocol_of(params)
    k = getattr(params, "n_clusters", None)
    alike = int(report.get("n_coinciding") or 0)
    found = []
    if k is not None and k > 1:
        if alike >= k - 1 or _all_coincide(known.figures(params, layout), figures):
            found.append(
                f"All {k} clusters coincide: labels tell nothing. {known.apart}"
            )
        elif alike:
            found.append(
                f"Clusters coincide: {alike} of {k} with one of a lower number, which "
                f"has their rows. {known.apart}"
            )
    counts = [] if sizes is None else list(sizes)
    if not found:
        found += _of_sizes(counts)
    if says_one(runs):
        found.append(
            "No clusters: the gap statistic says that all rows are one cluster; what was "
            "found are parts of it."
        )
    if figures is not None and figures.converged is False:
        after = "" if figures.n_iter is None else f" after {figures.n_iter} updates"
        found.append(f"Clusters still moved{after}: raise max_iter.")
    return [*found, *known.cautions_of(params, layout, counts)]


def _of_sizes(sizes: Sequence[int]) -> list[str]:
    """Return sentences on clusters of no row, and of one or two."""
    empty, tiny = sizes.count(0), sum(0 < size <= _OUTLIERS for size in sizes)
    found = []
    if empty:
        found.append(
            f"{empty} of {len(sizes)} clusters have no row: ask for fewer clusters, or "
            "for more starts (n_init)."
        )
    if tiny and len(sizes) > 1:
        found.append(
            f"{tiny} of {len(sizes)} clusters have one or two rows: outliers? Correct or "
            "leave out such rows (a column's declared range finds them), or take 'omnifc' "
            "with kmedoids or hdbscan, which outliers pull less."
        )
    return found

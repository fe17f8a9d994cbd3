"""What may have spoilt a result, or will: sentences for whoever relies on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clustering_protocols import registry

if TYPE_CHECKING:
    from clustering_protocols.contract import Params
    from clustering_protocols.figures import Figures
    from clustering_protocols.terms import Layout, Terms


def of_terms(terms: Terms) -> list[str]:
    """Return what follows from terms; widths are known where a dictionary says them."""
    if terms.dictionary is None:
        return []
    plans = terms.plans
    widths = [len(schema.names) for schema in terms.dictionary]
    if plans:
        widths = [len(plan.columns) for plan in plans]
    params = registry.check_terms(terms)
    return of_session(params, terms.layout, widths)


def of_session(params: Params, layout: Layout, widths: Sequence[int]) -> list[str]:
    """Return what follows from parameters and the columns of each column group."""
    known = registry.protocol(registry.name_of(params))
    return list(known.cautions(params, layout, widths))


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
) -> list[str]:
    """Return what a result shows by itself.

    Parameters
    ----------
    params : Params
        Of the run that counts.
    report : mapping
        What the protocol told the operator.
    figures : Figures, optional
        Of that run.
    sizes : sequence of int, optional
        Rows of each cluster, over all parties.
    """
    known = registry.protocol(registry.name_of(params))
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
    if figures is not None and figures.converged is False:
        after = "" if figures.n_iter is None else f" after {figures.n_iter} updates"
        found.append(f"Clusters still moved{after}: raise max_iter.")
    return [*found, *known.cautions_of(params, layout, [] if sizes is None else sizes)]

"""What may have spoilt a result, or will: sentences for anyone who relies on it.

Fields show in rows up to a motion, as far as the data dictionary tells: rounded numbers
lie on a lattice, two values and levels on parallel planes, and rows that were imputed
alike in one plane. A motion leaves all of these: who has the rows up to a motion may find
the axes of such fields (``tests/protocols/omnifc/test_rounded.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from clustering_protocols import catalogue, session_terms
from clustering_protocols.contract.disclosures import Kind, Reader, kinds_of
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.schema import Schema

if TYPE_CHECKING:
    from clustering_protocols.contract import Params
    from clustering_protocols.numerics.metrics import Figures
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
    found = [_of_rounded(clustered, plans), _of_few_values(clustered)]
    found.append(_of_imputed(plans))
    return [text for text in found if text]


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


_MOST_NAMES: Final = 5


def _of_rounded(dictionary: Sequence[Schema], plans: Sequence[ColumnPlan]) -> str:
    curved = set(_logarithms(plans))
    names = [
        field.name
        for schema in dictionary
        for field in schema.fields
        if field.last_digit is not None and field.name not in curved
    ]
    if not names:
        return ""
    return f"Rounded numbers may show the analyst which directions are {_list_names(names)}."


def _of_few_values(dictionary: Sequence[Schema]) -> str:
    names = [
        field.name
        for schema in dictionary
        for field in schema.fields
        if field.is_category or field.type == "boolean"
    ]
    if not names:
        return ""
    return (
        "Yes or no and levels may show the analyst which directions are "
        f"{_list_names(names)}. Leave out what must not show."
    )


def _of_imputed(plans: Sequence[ColumnPlan]) -> str:
    names = [fill.name for plan in plans for fill in plan.fills]
    if not names:
        return ""
    return (
        "Rows with the same imputed value may show the analyst which direction is "
        f"{_list_names(names, 'or')}. With missing 'drop', such rows take no part."
    )


def _logarithms(plans: Sequence[ColumnPlan]) -> Iterator[str]:
    """Yield fields whose logarithm is taken: what was rounded is even no more."""
    for plan in plans:
        yield from (
            field.name
            for field in plan.schema.fields
            if plan.preparation.of(field).log1p
        )


def _list_names(names: Iterable[str], joint: str = "and") -> str:
    """Return names for people: the first five, and how many more there are."""
    quoted = [repr(name) for name in names]
    shown, more = quoted[:_MOST_NAMES], len(quoted) - _MOST_NAMES
    if more > 0:
        return f"{', '.join(shown)} {joint} {more} more"
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} {joint} {shown[-1]}"

"""Warnings about results and terms, in sentences for the people who rely on them.

Some fields can be recognised in rows that were rotated, reflected and shifted: rounded
numbers lie on a lattice, fields with few distinct values put the rows on parallel
planes, and rows with the same imputed value lie in one plane. These properties survive
any such motion, so a reader of the rows may find the axes of these fields
(``tests/protocols/omnifc/test_rounded.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from clustering_protocols import catalogue, session_terms
from clustering_protocols.contract.disclosures import Kind, Reader, kinds_read_by
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.schema import Schema

if TYPE_CHECKING:
    from clustering_protocols.contract import Params
    from clustering_protocols.numerics.metrics import Figures
    from clustering_protocols.terms.terms import Layout, Terms

_OUTLIERS: Final = 2
"""Clusters with at most this many rows are reported as possible outliers."""

_MOST_NAMES: Final = 5


def find_terms_warnings(terms: Terms) -> list[str]:
    """Return warnings about a session's terms; empty if they have no dictionary."""
    if terms.dictionary is None:
        return []
    widths = [len(terms.columns(group[0], ())) for group in terms.layout.column_groups]
    params = session_terms.check_terms(terms)
    return [
        *find_session_warnings(params, terms.layout, widths),
        *find_field_warnings(params, terms.layout, terms.dictionary, terms.plans),
    ]


def find_session_warnings(
    params: Params, layout: Layout, widths: Sequence[int]
) -> list[str]:
    """Return a protocol's warnings; ``widths``: columns of each column group."""
    protocol = catalogue.find_protocol(params)
    return list(protocol.cautions(params, layout, widths))


def find_field_warnings(
    params: Params,
    layout: Layout,
    dictionary: Sequence[Schema],
    plans: Sequence[ColumnPlan],
) -> list[str]:
    """Return warnings about fields that disguised rows reveal, or that make distances tie.

    dictionary: the schema of each column group.
    plans: the plan of each column group; empty if the terms have no preparation.
    """
    protocol = catalogue.find_protocol(params)
    if Kind.GEOMETRY not in kinds_read_by(
        protocol.disclosures(params, layout), Reader.OUTSIDE
    ):
        return []
    fields = [f for schema in dictionary for f in schema.clustered_part.fields]
    curved = {  # the logarithms of rounded numbers lie on no lattice
        field.name
        for plan in plans
        for field in plan.schema.fields
        if plan.preparation.of(field).log1p
    }
    rounded = [
        field.name
        for field in fields
        if field.value_step is not None and field.name not in curved
    ]
    with_few_values = [
        field.name for field in fields if field.is_category or field.type == "boolean"
    ]
    imputed = [fill.name for plan in plans for fill in plan.fills]
    warnings = []
    if rounded:
        warnings.append(
            "Rounded numbers may show the analyst which directions are "
            f"{_list_names(rounded)}."
        )
    if with_few_values:
        warnings.append(
            "Yes-or-no and categorical fields may show the analyst which directions are "
            f"{_list_names(with_few_values)}. Leave out fields that must not be recognised."
        )
    spectral = getattr(params, "algorithm", "") == "spectral"
    if spectral and len(with_few_values) == len(fields):
        warnings.append(
            "Spectral clustering joins each row with its ten nearest. If all fields are "
            "yes-or-no or categorical, many rows are equally near, and rounding chooses "
            "between them: labels may differ from those of pooled rows. Choose another "
            "algorithm."
        )
    if imputed:
        warnings.append(
            "Rows with the same imputed value may show the analyst which direction is "
            f"{_list_names(imputed, 'or')}. With missing 'drop', such rows do not take part."
        )
    return warnings


def _all_clusters_coincide(computed: frozenset[str], figures: Figures | None) -> bool:
    """Return whether there is one cluster, or all memberships are equal."""
    if figures is None or figures.n_clusters == 1:
        return figures is not None
    if figures.inertia is None and figures.criterion is None:
        return False  # the figures were withheld
    return "partition_coefficient" in computed and figures.partition_coefficient is None


def find_result_warnings(
    params: Params,
    *,
    layout: Layout,
    report: Mapping[str, Any],
    figures: Figures | None,
    sizes: Sequence[int] | None,
    runs: Sequence[Figures] = (),
) -> list[str]:
    """Return warnings about the result of a session.

    params: the parameters of the selected run.
    report: the protocol's report to the operator.
    figures: the quality figures of the selected run, if there are any.
    sizes: the number of rows in each cluster, over all parties; None if not published.
    runs: the figures of all runs, if the session compares several.
    """
    from clustering_protocols.quality.runs import favours_one_cluster  # imports numpy

    protocol = catalogue.find_protocol(params)
    k = getattr(params, "n_clusters", None)
    n_coinciding = int(report.get("n_coinciding") or 0)
    sentences = []
    if k is not None and k > 1:
        if n_coinciding >= k - 1 or _all_clusters_coincide(
            protocol.figures(params, layout), figures
        ):
            sentences.append(
                f"All {k} clusters coincide: labels mean nothing. {protocol.apart}"
            )
        elif n_coinciding:
            sentences.append(
                f"Clusters coincide: {n_coinciding} of {k} equal a cluster of a lower number, "
                f"which has their rows. {protocol.apart}"
            )
    counts = [] if sizes is None else list(sizes)
    if not sentences:
        sentences += _size_warnings(counts)
    if favours_one_cluster(runs):
        sentences.append(
            "No clusters: the gap statistic says that all rows are one cluster; the "
            "clusters found are parts of it."
        )
    if figures is not None and figures.converged is False:
        n = figures.n_iter
        updates = "" if n is None else f" after {n} update{'s' * (n != 1)}"
        advice = ": raise max_iter."
        if protocol.rows_limit_updates and n and n < getattr(params, "max_iter", 0):
            advice = (
                ", and the rows allow no more updates. Use more rows or fewer clusters; if "
                "all fields are categorical, more fields or levels also help."
            )
        sentences.append(f"Clusters still moved{updates}{advice}")
    return [*sentences, *protocol.cautions_of(params, layout, counts)]


def _size_warnings(sizes: Sequence[int]) -> list[str]:
    empty, tiny = sizes.count(0), sum(0 < size <= _OUTLIERS for size in sizes)
    sentences = []
    if empty:
        sentences.append(
            f"{empty} of {len(sizes)} clusters have no row: ask for fewer clusters, or "
            "repeat the session, which then starts elsewhere."
        )
    if tiny and len(sizes) > 1:
        sentences.append(
            f"{tiny} of {len(sizes)} clusters have one or two rows: outliers? Correct or "
            "leave out such rows (a column's declared range finds them), or use 'omnifc' "
            "with kmedoids or hdbscan, which outliers affect less."
        )
    return sentences


def _list_names(names: Iterable[str], conjunction: str = "and") -> str:
    """Return a phrase with the first five names and the number of the others."""
    quoted = [repr(name) for name in names]
    first_names, more = quoted[:_MOST_NAMES], len(quoted) - _MOST_NAMES
    if more > 0:
        return f"{', '.join(first_names)} {conjunction} {more} more"
    if len(first_names) == 1:
        return first_names[0]
    return f"{', '.join(first_names[:-1])} {conjunction} {first_names[-1]}"

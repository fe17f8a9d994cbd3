"""What may have spoilt the result of a session that a party took part in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustering_protocols import result_warnings, session_terms
from clustering_protocols.terms.terms import Terms

if TYPE_CHECKING:
    from party_sdk.results.results import Result


def result_cautions(terms: Terms, result: Result) -> list[str]:
    """Return sentences on a result: clusters that coincide, still move, or stayed."""
    runs = session_terms.runs_of(session_terms.check_terms(terms), terms.evaluation)
    sizes = result.cluster_sizes
    return result_warnings.of_result(
        runs[result.chosen],
        layout=terms.layout,
        report=result.report,
        figures=result.figures[result.chosen] if result.figures else None,
        sizes=None if sizes is None else sizes.tolist(),
    )

"""What may have spoilt a result: clusters that coincide, and numbers in other units.

Where one party's numbers are in other units, or all alike, its rows end up in clusters of
their own. Everybody can see that at home, whatever the protocol: sizes are told to all,
and each knows its own rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from clustering_protocols import result_warnings, session_terms
from clustering_protocols.terms.terms import Terms

if TYPE_CHECKING:
    from party_sdk.results.results import Result

_BY_CHANCE: Final = 1e-6


def oddities(own: Sequence[int], sizes: Sequence[int]) -> Iterator[str]:
    """Yield a sentence for each cluster that holds own rows alone, or none of them.

    own, sizes: own rows, and rows of all parties, in each cluster.

    A cluster is told if rows that were dealt out at random would look like that less
    than once in a million times: (1 - q)^n or q^n, of n rows of which a share q is own.
    """
    total, mine = sum(sizes), sum(own)
    if not 0 < mine < total:
        return
    share = mine / total
    for cluster, (here, all_) in enumerate(zip(own, sizes, strict=True)):
        if here == 0 and all_ * math.log1p(-share) < math.log(_BY_CHANCE):
            yield (
                f"Cluster {cluster} holds {all_} rows, and none of yours: ask whether "
                "the others measure in your units, and code as you do."
            )
        elif here == all_ and all_ * math.log(share) < math.log(_BY_CHANCE):
            yield (
                f"Cluster {cluster} holds {all_} rows, all of them yours: are your "
                "columns in the units of the others?"
            )


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

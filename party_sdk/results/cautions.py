"""Warnings about a result, such as clusters that follow the institutions.

If a site measures in other units, or with another scanner or laboratory, its rows form
clusters of their own. Each party can detect this itself with any protocol, because it
knows its own rows and learns the sizes of all clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from clustering_protocols import result_warnings, session_terms
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.terms.terms import Terms

if TYPE_CHECKING:
    from party_sdk.results.results import Result

_BY_CHANCE: Final = 1e-6
_FOLLOWS_SITES: Final = 0.3


def site_agreement(counts: IntArray) -> float | None:
    """Return how much of the variance of sites the clusters explain, at most 1.

    counts: int64 (sites, k); the number of rows of each site in each cluster.

    The agreement is 1 if a row's cluster determines its site, about 0 if clusters say
    nothing about sites, and None for a single site or cluster. It is the R² of R.
    Light, B. Margolin, "An analysis of variance for categorical data", 1971 (Goodman,
    Kruskal), adjusted for the number of clusters as 1 - (1 - R²)(n - 1)/(n - k), so
    that chance gives 0 on average.
    """
    counts = counts[:, counts.sum(axis=0) > 0][counts.sum(axis=1) > 0]
    n_sites, k = counts.shape
    n = counts.sum()
    if min(n_sites, k) < 2 or n <= k:
        return None
    total = 1 - np.square(counts.sum(axis=1) / n).sum()
    unexplained = 1 - (np.square(counts) / counts.sum(axis=0)).sum() / n
    return float(1 - unexplained / total * (n - 1) / (n - k))


def site_effect_warnings(counts: IntArray) -> Iterator[str]:
    """Yield a sentence if the clusters follow the sites more than by chance.

    counts: as for :func:`site_agreement`; a party passes two sites, its own rows and
        those of all others.

    Random labels would give such counts less than once in a million times: Light and
    Margolin's (sites - 1)(n - 1) R² is χ² with d = (sites - 1)(k - 1) degrees of
    freedom, and P(χ² ≥ x) ≤ (x/d)^(d/2) e^((d - x)/2) for x > d.
    """
    agreement = site_agreement(counts)
    if agreement is None or agreement < _FOLLOWS_SITES:
        return
    n, (n_sites, k) = int(counts.sum()), counts.shape
    degrees = (n_sites - 1) * (k - 1)
    statistic = (n_sites - 1) * (n - 1 - (1 - agreement) * (n - k))
    log_chance = (degrees * math.log(statistic / degrees) + degrees - statistic) / 2
    if statistic > degrees and log_chance < math.log(_BY_CHANCE):
        yield (
            f"The clusters follow the institutions: site agreement {agreement:.2f} (1: a "
            "cluster tells whose row it is, 0: it tells nothing). Unless their people "
            "differ that much, a scanner, a laboratory or a unit is the cause: compare "
            "the profiles before you read the clusters as kinds of people."
        )


def site_warnings(own_sizes: Sequence[int], sizes: Sequence[int]) -> Iterator[str]:
    """Yield sentences about clusters that follow the sites, the most important first.

    own_sizes, sizes: the number of own rows, and of all parties' rows, in each cluster.

    A cluster of n rows with only own rows, or without any, is reported if this would
    happen by chance less than once in a million times: if a proportion q of all rows
    is the party's, the probabilities are q^n and (1 - q)^n.
    """
    total, n_own = sum(sizes), sum(own_sizes)
    if not 0 < n_own < total:
        return
    other_sizes = np.maximum(np.subtract(sizes, own_sizes), 0)
    yield from site_effect_warnings(np.array([own_sizes, other_sizes]))
    share = n_own / total
    for cluster, (n_own_here, n_rows) in enumerate(zip(own_sizes, sizes, strict=True)):
        if n_own_here == 0 and n_rows * math.log1p(-share) < math.log(_BY_CHANCE):
            yield (
                f"Cluster {cluster} contains {n_rows} rows, and none of yours: ask "
                "whether the others measure in your units, and code as you do."
            )
        elif n_own_here == n_rows and n_rows * math.log(share) < math.log(_BY_CHANCE):
            yield (
                f"Cluster {cluster} contains {n_rows} rows, all of them yours: are "
                "your columns in the units of the others?"
            )


def result_cautions(terms: Terms, result: Result) -> list[str]:
    """Return warnings about a result, such as clusters that coincide."""
    runs = session_terms.params_per_run(
        session_terms.check_terms(terms), terms.evaluation
    )
    sizes = result.cluster_sizes
    return result_warnings.find_result_warnings(
        runs[result.chosen],
        layout=terms.layout,
        report=result.report,
        figures=result.figures[result.chosen] if result.figures else None,
        sizes=None if sizes is None else sizes.tolist(),
        runs=result.figures,
    )

"""Confidence intervals and tests of described variables, computed from a profile.

Anyone who has the profile can compute them. Clustered variables are not tested, because
the clusters were formed in such a way that these variables differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, Literal

import numpy as np
from pydantic import Field

from clustering_protocols.common.values import Value
from clustering_protocols.numerics.profiles import SHARES, FieldProfile, Profile
from clustering_protocols.records.arrays import FloatArray

CONFIDENCE: Final = 0.95
_FEWEST_EXPECTED: Final = 5.0
"""Expected count below which the chi-squared approximation is poor (Cochran 1954)."""

Bounds = tuple[float, float]


class Outcome(Value):
    """Intervals of one described variable in each line of a profile, and one test.

    name, title, unit, is_date, levels: as in the profile.
    means: the interval of the mean in each line, in the variable's unit; None for a
        line with a single value or a withheld mean. Empty for a variable with levels.
    shares: for each line, the interval of the proportion of each level.
    test: ``anova`` tests whether means differ between lines, ``chi-squared`` whether
        proportions of levels do.
    statistic: F of the analysis of variance, or Pearson's chi-squared without
        continuity correction. It is None, as is ``p``, if there is nothing to compare.
    degrees: degrees of freedom of the statistic: two numbers for F, one number for
        chi-squared.
    p: the probability of a statistic at least as large if the clusters do not differ.
    n_small: the number of cells of the table with an expected count below five.
    """

    name: str
    title: str = ""
    unit: str = ""
    is_date: bool = False
    means: tuple[Bounds | None, ...] = ()
    levels: tuple[str, ...] = ()
    shares: tuple[tuple[Bounds, ...] | None, ...] = ()
    test: Literal["anova", "chi-squared"]
    statistic: float | None = None
    degrees: tuple[int, ...] = ()
    p: float | None = Field(default=None, ge=0, le=1)
    n_small: int = Field(default=0, ge=0)


class OutcomeTable(Value):
    """The outcomes of one profile's described variables, with notes for readers.

    column, own, rounded, clusters, others: as in the profile.
    fields: the outcomes, in the profile's order of variables.
    notes: sentences that explain how to read the table.
    """

    column: int = Field(ge=0)
    own: bool
    rounded: bool
    clusters: tuple[int, ...]
    others: tuple[int, ...] = ()
    fields: tuple[Outcome, ...]
    notes: tuple[str, ...]


def outcome_table(profile: Profile, described: Collection[str]) -> OutcomeTable | None:
    """Return intervals and tests of a profile's described variables.

    described: the names of the described variables.

    Returns None if the profile has no such variable, or no lines to compare.
    """
    times = {name for time in profile.survival for name in (time.name, time.event)}
    fields = [f for f in profile.fields if f.name in {*described} - times]
    if not fields or not profile.n_rows or profile.is_description:
        return None
    return OutcomeTable(
        column=profile.column,
        own=profile.own,
        rounded=profile.rounded,
        clusters=profile.clusters,
        others=profile.others,
        fields=tuple(_outcome_of(field, rounded=profile.rounded) for field in fields),
        notes=tuple(_notes_for_readers(profile)),
    )


def _notes_for_readers(profile: Profile) -> Iterator[str]:
    yield (
        "Clustered variables have no test: the clusters were formed so that these differ."
    )
    yield (
        "p is not corrected for the number of variables, nor for a choice among several "
        "numbers of clusters."
    )
    yield (
        "Intervals are of 95 %: Student's t for means, Wilson's for shares. Rows count as "
        "independent."
    )
    if profile.others:
        clusters = ", ".join(map(str, profile.others))
        yield f"The clusters {clusters} are too small alone and count as one group."
    if profile.rounded:
        yield (
            "All figures follow from rounded values. Shares are off by up to "
            f"{50 / SHARES:g} percentage points, means by up to "
            f"1/{2 * SHARES} of a standard deviation. In clusters of thousands of rows, "
            "rounding alone can make p small."
        )


def _outcome_of(field: FieldProfile, *, rounded: bool) -> Outcome:
    names = {"name": field.name, "title": field.title, "unit": field.unit}
    n = np.array([n_rows or 0 for n_rows in field.n_rows], dtype=np.float64)
    if field.levels:
        lines = list(zip(field.shares, n, strict=True))
        shares = [
            None if p is None else tuple(wilson_interval(share, rows) for share in p)
            for p, rows in lines
        ]
        counts = [np.array(p) * rows for p, rows in lines if p is not None]
        table = np.array(counts).reshape(len(counts), len(field.levels))
        result = _chi_squared(table if rounded else np.rint(table))
        return Outcome(
            **names,
            levels=field.levels,
            shares=tuple(shares),
            test="chi-squared",
            **result,
        )
    means: list[Bounds | None] = []
    groups = []
    for rows, mean, spread in zip(n, field.mean, field.spread, strict=True):
        if mean is None or spread is None:
            means.append(None)
        else:
            means.append(t_interval(mean, spread, rows))
            groups.append((rows, mean, spread))
    result = _analyse_variance(*np.array(groups).reshape(-1, 3).T)
    return Outcome(
        **names,
        is_date=field.is_date,
        means=tuple(means),
        test="anova",
        **result,
    )


def t_interval(mean: float, spread: float, n: float) -> Bounds | None:
    """Return Student's 95 % interval of a mean, or None for fewer than two values.

    mean ± t(n - 1) · s / √n, where s² divides by n - 1 (Student 1908).

    spread: the standard deviation, computed with the divisor n.
    n: the number of values.
    """
    from scipy.special import stdtrit  # slow to import, and rarely needed

    if n < 2:
        return None
    half = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * spread / (n - 1) ** 0.5
    return mean - half, mean + half


def wilson_interval(share: float, n: float) -> Bounds:
    """Return Wilson's 95 % score interval of a proportion of n rows.

    E. B. Wilson, Journal of the American Statistical Association 22 (1927), 209-212.
    """
    from scipy.special import ndtri

    z = float(ndtri(0.5 + CONFIDENCE / 2))
    if n <= 0:
        return 0.0, 1.0
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    root = (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    half = z * root / (1 + z * z / n)
    # Rounding errors must not exclude a proportion of 0 or 1 from its own interval.
    low = 0.0 if share == 0 else max(0.0, centre - half)
    return low, 1.0 if share == 1 else min(1.0, centre + half)


def _analyse_variance(
    n: FloatArray, mean: FloatArray, spread: FloatArray
) -> dict[str, Any]:
    """Return the fields of the one-way analysis of variance of k groups.

    F = [Σ nᵢ (mᵢ - m)² / (k - 1)] / [Σ nᵢ sᵢ² / (N - k)], where sᵢ² divides by nᵢ
    (Fisher 1925).

    n, mean, spread: float64 (k,).
    """
    from scipy.special import fdtrc

    k, total = len(n), float(n.sum())
    if k < 2 or total <= k:
        return {}
    between = float(n @ np.square(mean - n @ mean / total)) / (k - 1)
    within = float(n @ np.square(spread)) / (total - k)
    if within <= 0:
        return {}
    f, degrees = between / within, (k - 1, round(total) - k)
    return {"statistic": f, "degrees": degrees, "p": float(fdtrc(*degrees, f))}


def _chi_squared(counts: FloatArray) -> dict[str, Any]:
    """Return the fields of Pearson's test of independence between lines and levels.

    χ² = Σ (observed - expected)² / expected, without continuity correction (Pearson
    1900). Levels without rows are omitted.

    counts: float64 (lines, levels).
    """
    from scipy.special import chdtrc

    counts = counts[:, counts.sum(axis=0) > 0]
    degrees = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    if degrees < 1:
        return {}
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic = float((np.square(counts - expected) / expected).sum())
    return {
        "statistic": statistic,
        "degrees": (degrees,),
        "p": float(chdtrc(degrees, statistic)),
        "n_small": int(np.count_nonzero(expected < _FEWEST_EXPECTED)),
    }


def outcome_tables(
    profiles: Sequence[Profile], described: Sequence[Collection[str]]
) -> tuple[OutcomeTable, ...]:
    """Return the outcome table of each profile that has described variables.

    described: the names of the described variables of each column group.
    """
    tables = (
        outcome_table(profile, described[profile.column])
        for profile in profiles
        if profile.column < len(described)
    )
    return tuple(table for table in tables if table is not None)

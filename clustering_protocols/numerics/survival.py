"""Survival in each line of a profile: Kaplan-Meier curves and the log-rank test.

Times are grouped into bins of the declared range; an event or a censoring counts at the
end of its bin. Bins of events and bins of censorings are merged until each holds either
no rows or enough rows of its line, so that neither a bin nor the difference between two
bins reveals a few people.

Restricted means and the log-rank test are computed from the bins before they are
merged, because merging moves events to later times, and moves them further in lines
with fewer rows. Both take hazards from life tables, in which a row that was last
observed within a bin is at risk for half of it.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from clustering_protocols.common.values import Value
from clustering_protocols.numerics.round_numbers import round_down
from clustering_protocols.records.arrays import FloatArray, IntArray

BINS: Final = 20
TOO_FEW: Final = "too few events to show"
_Z: Final = 1.959963984540054
"""The 97.5 % quantile of the normal distribution, for intervals of 95 %."""
_MEAN_STEPS: Final = 100


class BinnedRows(Value):
    """The number of rows whose time falls into each bin.

    ends: the ends of the bins, ascending, in the unit of time; the last is the end of
        the range.
    n_rows: the number of rows in each bin.
    """

    ends: tuple[float, ...] = Field(min_length=1, max_length=BINS)
    n_rows: tuple[Annotated[int, Field(ge=0)], ...]

    @model_validator(mode="after")
    def _check(self) -> Self:
        steps = np.diff(self.ends, prepend=0.0)
        if len(self.n_rows) != len(steps) or not (steps > 0).all():
            raise ValueError("Bins have ascending ends, and a number of rows each.")
        return self

    def rows_before(self, times: FloatArray) -> FloatArray:
        """Return the number of rows (m,) in bins that end before each time (m,)."""
        return np.append(0.0, np.cumsum(self.n_rows))[np.searchsorted(self.ends, times)]


class SurvivalLine(Value):
    """The rows of one line by time: how many had an event, and how many were censored.

    mean, deviation: the restricted mean survival up to the end of the range, and its
        standard error; None if there are too few events to show.
    """

    events: BinnedRows
    censored: BinnedRows
    mean: float | None = Field(default=None, ge=0)
    deviation: float | None = Field(default=None, ge=0)

    @property
    def shows_events(self) -> bool:
        """Return whether events are counted; too few to be released are not counted."""
        return any(self.events.n_rows)

    def count_at_risk(self, times: FloatArray) -> FloatArray:
        """Return the number of rows under observation just before each time (m,)."""
        total = sum(self.events.n_rows) + sum(self.censored.n_rows)
        return total - self.events.rows_before(times) - self.censored.rows_before(times)


class Survival(Value):
    """The time to an event in each line of a profile.

    name, title, unit: those of the time variable.
    event: the name of the boolean field that says whether the event occurred.
    most: the end of the declared range.
    lines: the counts of each line; None if a line has too few rows.
    statistic, degrees: the log-rank test of all lines with enough events, and its
        degrees of freedom; None if there is nothing to compare.
    """

    name: str
    title: str = ""
    unit: str = ""
    event: str
    most: float = Field(gt=0)
    lines: tuple[SurvivalLine | None, ...] = Field(min_length=1)
    statistic: float | None = Field(default=None, ge=0)
    degrees: int = Field(default=0, ge=0)

    @property
    def p(self) -> float | None:
        """Return the p-value of the statistic, if all lines have the same hazard."""
        from scipy.special import chdtrc  # few profiles have survival

        if self.statistic is None or not self.degrees:
            return None
        return float(chdtrc(self.degrees, self.statistic))

    @property
    def table(self) -> list[tuple[str | float, ...]]:
        """Return a header, followed by one row for each line and bin of events."""
        rows: list[tuple[str | float, ...]] = [
            ("line", "until", "at_risk", "events", "survival", "low", "high")
        ]
        for number, line in enumerate(self.lines):
            if line is not None and not line.shows_events:
                n_rows = float(line.count_at_risk(np.zeros(1))[0])
                rows.append((number, self.most, n_rows, TOO_FEW, "", "", ""))
            elif line is not None:
                curve = kaplan_meier(line)
                at_risk, events = line.count_at_risk(curve.ends), line.events.n_rows
                columns = (curve.ends, at_risk, events, *curve[1:4])
                rows += [
                    (number, *map(float, cells)) for cells in zip(*columns, strict=True)
                ]
        return rows


class Curve(NamedTuple):
    """A Kaplan-Meier curve, whose arrays are float64 (bins,).

    ends: the ends of the bins of events.
    survival, low, high: the proportion without the event after each end, and its 95 %
        interval.
    """

    ends: FloatArray
    survival: FloatArray
    low: FloatArray
    high: FloatArray


def count_events_and_censored(
    times: FloatArray, events: FloatArray, line: IntArray, end: float, k: int
) -> IntArray:
    """Count the rows with an event and the censored rows by line and bin.

    times, events: float64 (n,); times from 0 to ``end`` and events 0 or 1, with NaN for
        a missing value.
    line: int64 (n,); from 0 to k - 1.

    Returns int64 (k, 2, BINS); events come before censorings.
    """
    observed = ~np.isnan(times) & ~np.isnan(events)
    bins = np.ceil(times[observed] * BINS / end).astype(np.int64) - 1
    cells = (line[observed] * 2 + (events[observed] == 0)) * BINS + bins.clip(
        0, BINS - 1
    )
    return np.bincount(cells, minlength=k * 2 * BINS).reshape(k, 2, BINS)


def build_survival_line(
    counts: IntArray, end: float, smallest: int, *, rounded: bool
) -> SurvivalLine | None:
    """Return a line in publishable form, or None if it has too few rows.

    counts: int64 (2, BINS).
    end: the end of the range.
    rounded: whether running totals are rounded to multiples of ``smallest``, so that
        the tables of two sessions never differ by fewer rows. If so, the mean is also
        rounded to a multiple of at most a hundredth of the range, and its standard
        error to two digits.
    """
    if counts.sum() < smallest:
        return None
    merged = SurvivalLine(
        events=_coarsen(counts[0], end, smallest, rounded=rounded),
        censored=_coarsen(counts[1], end, smallest, rounded=rounded, shows_few=True),
    )
    if not merged.shows_events:
        return merged
    mean, deviation = restricted_mean(counts, end)
    if rounded:
        step = round_down(end / _MEAN_STEPS)
        mean, deviation = round(mean / step) * step, round_to_two_digits(deviation)
    return merged.model_copy(update={"mean": mean, "deviation": deviation})


def round_to_two_digits(value: float) -> float:
    """Return a value rounded to two significant digits."""
    return float(f"{value:.1e}")


def _coarsen(
    counts: IntArray,
    end_time: float,
    smallest: int,
    *,
    rounded: bool,
    shows_few: bool = False,
) -> BinnedRows:
    """Merge bins until each has no rows or at least ``smallest`` rows.

    shows_few: whether rows are counted if all bins together have too few.
    """
    ends: list[int] = []
    totals: list[int] = []
    pending = 0
    for end, n_rows in enumerate(counts.tolist(), start=1):
        pending += n_rows
        if pending == 0 or pending >= smallest:
            ends.append(end)
            totals.append(pending)
            pending = 0
    if pending:  # extend the last nonempty bin so that it includes these rows
        while totals and totals[-1] == 0:
            ends.pop()
            totals.pop()
        last = int(np.flatnonzero(counts)[-1]) + 1 if totals else BINS
        merged = totals.pop() + pending if totals else pending * shows_few
        ends = [*ends[:-1], last, *range(last + 1, BINS + 1)]
        totals = [*totals, merged, *[0] * (BINS - last)]
    if rounded:
        running = np.rint(np.cumsum(totals) / smallest).astype(np.int64) * smallest
        totals = np.diff(running, prepend=0).tolist()
    return BinnedRows(
        ends=tuple(end_time * e / BINS for e in ends), n_rows=tuple(totals)
    )


def kaplan_meier(line: SurvivalLine) -> Curve:
    """Return the curve of a line, with bounds by the exponential Greenwood formula.

    S(t) = Π (1 - dᵢ / nᵢ) (Kaplan and Meier 1958), with bounds exp(-exp(log(-log S) ±
    z σ / log S)) where σ² = Σ dᵢ / (nᵢ (nᵢ - dᵢ)) (Kalbfleisch and Prentice 1980).
    """
    ends = np.array(line.events.ends)
    d = np.array(line.events.n_rows, dtype=np.float64)
    n = line.count_at_risk(ends)
    with np.errstate(divide="ignore", invalid="ignore"):
        survival = np.cumprod(np.where(d > 0, 1.0 - d / n, 1.0), dtype=np.float64)
        terms = np.where(d > 0, d / (n * (n - d)), 0.0)
        log = np.log(survival)
        width = _Z * np.sqrt(np.cumsum(terms)) / log
        bounds = np.exp(-np.exp(np.log(-log) + np.outer([-1, 1], width)))
    certain = (survival == 1.0) | (survival == 0.0)
    low, high = np.where(certain, survival, bounds)
    return Curve(ends, survival, low, high)


def _at_risk(counts: IntArray) -> FloatArray:
    """Return the number of rows at risk in each bin (..., BINS).

    A row that is censored in a bin counts as half a row in that bin. In the last bin,
    it counts as a whole row, because most of these rows are observed until the end.

    counts: int64 (..., 2, BINS).
    """
    events, censored = counts[..., 0, :], counts[..., 1, :]
    leaving = events + censored
    at_begin = counts.sum(axis=(-2, -1))[..., None] - np.cumsum(leaving, -1) + leaving
    half = np.full(BINS, 0.5)
    half[-1] = 0.0
    at_risk: FloatArray = at_begin - half * censored
    return at_risk


def restricted_mean(counts: IntArray, end: float) -> tuple[float, float]:
    """Return the restricted mean survival of a line and its standard error.

    S falls from 1 by the factors 1 - dᵢ / nᵢ (Cutler and Ederer 1958), evenly within
    bins. The mean is the area under S; its variance is Σ Aᵢ² dᵢ / (nᵢ (nᵢ - dᵢ)), with
    the area Aᵢ that the i-th factor scales.

    counts: int64 (2, BINS).
    end: the end of the range.
    """
    d, n = counts[0], _at_risk(counts)
    survival = np.cumprod(1.0 - d / np.maximum(n, 0.5))  # d is 0 where n is
    before = np.append(1.0, survival[:-1])
    width = end / BINS
    area = width * (before + survival) / 2
    scaled = width * survival / 2 + area.sum() - np.cumsum(area)
    terms = np.divide(d, n * (n - d), out=np.zeros(BINS), where=n > d)
    return float(area.sum()), float(np.square(scaled) @ terms) ** 0.5


def log_rank(counts: IntArray) -> tuple[float | None, int]:
    """Return the log-rank statistic of the lines, and its degrees of freedom.

    χ² = (O - E)ᵀ V⁻ (O - E), with the hypergeometric covariance of each bin (Mantel
    1966; Peto and Peto 1972). The statistic is None if there is nothing to compare.

    counts: int64 (lines, 2, BINS).
    """
    degrees = len(counts) - 1
    if degrees < 1:
        return None, 0
    d, n = counts[:, 0], _at_risk(counts)
    D, N = d.sum(axis=0), n.sum(axis=0)
    share = n / np.maximum(N, 1)
    excess = (d - share * D).sum(axis=1)[:-1]
    factor = D * (N - D) / np.maximum(N - 1, 1)
    covariance = np.diag(share @ factor) - (factor * share) @ share.T
    reduced = covariance[:-1, :-1]
    if np.linalg.matrix_rank(reduced) < degrees:
        return None, 0
    return float(excess @ np.linalg.solve(reduced, excess)), degrees

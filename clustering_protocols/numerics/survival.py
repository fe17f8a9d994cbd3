"""Survival in each line of a profile: Kaplan-Meier curves and the log-rank test.

Times are grouped into bins of the declared range; an event or a censoring counts at the
end of its bin. Bins of events and bins of censorings are merged until each holds either
no rows or enough rows of its line, so that neither a bin nor the difference between two
bins reveals a few people.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Annotated, Final, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from clustering_protocols.common.values import Value
from clustering_protocols.records.arrays import FloatArray, IntArray

BINS: Final = 20
TOO_FEW: Final = "too few events to show"
_Z: Final = 1.959963984540054
"""The 97.5 % quantile of the normal distribution, for intervals of 95 %."""


class BinnedRows(Value):
    """Numbers of rows, counted by the bin of their time.

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
        return self._cumulative[np.searchsorted(self.ends, times)]

    def rebin(self, ends: FloatArray) -> FloatArray:
        """Return the rows in coarser bins, whose ends (m,) must be ends of bins."""
        until = self._cumulative[np.searchsorted(self.ends, ends, side="right")]
        return np.diff(until, prepend=0.0)

    @property
    def _cumulative(self) -> FloatArray:
        return np.concatenate([[0.0], np.cumsum(self.n_rows)])


class SurvivalLine(Value):
    """The rows of one line with an event, and those last observed without it."""

    events: BinnedRows
    censored: BinnedRows

    @property
    def shows_events(self) -> bool:
        """Return whether any events are counted; too few to release count as none."""
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
    """

    name: str
    title: str = ""
    unit: str = ""
    event: str
    most: float = Field(gt=0)
    lines: tuple[SurvivalLine | None, ...] = Field(min_length=1)

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
    survival, low, high: the share without the event after each end, and its 95 %
        interval.
    mean, deviation: the restricted mean survival up to the last end, and its standard
        error.
    """

    ends: FloatArray
    survival: FloatArray
    low: FloatArray
    high: FloatArray
    mean: float
    deviation: float


class LogRank(NamedTuple):
    """The result of a log-rank test; all None if there is nothing to compare."""

    statistic: float | None = None
    degrees: int = 0
    p: float | None = None


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
        the tables of two sessions never differ by fewer rows.
    """
    if counts.sum() < smallest:
        return None
    events, censored = (_coarsen(row, end, smallest, rounded=rounded) for row in counts)
    return SurvivalLine(events=events, censored=censored)


def _coarsen(
    counts: IntArray, end_time: float, smallest: int, *, rounded: bool
) -> BinnedRows:
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
        merged = totals.pop() + pending if totals else 0
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

    S(t) = Π (1 - dᵢ / nᵢ) (Kaplan and Meier 1958), with bounds exp(-exp(log(-log S) ± z
    σ / log S)) where σ² = Σ dᵢ / (nᵢ (nᵢ - dᵢ)) (Kalbfleisch and Prentice 1980). The
    restricted mean is the area under S; its variance is Σ Aᵢ² dᵢ / (nᵢ (nᵢ - dᵢ)),
    where Aᵢ is the area after the i-th end.
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
    area = np.diff(ends, prepend=0.0) * np.append(1.0, survival[:-1])
    later_area = area.sum() - np.cumsum(area)
    variance = np.square(later_area) @ np.where(np.isfinite(terms), terms, 0.0)
    return Curve(ends, survival, low, high, float(area.sum()), float(variance) ** 0.5)


def log_rank(lines: Sequence[SurvivalLine | None]) -> LogRank:
    """Test whether all lines have the same hazard.

    Bins are merged until they end at times at which a bin of every line ends. Lines
    with too few events to show are omitted.

    χ² = (O - E)ᵀ V⁻ (O - E), with the hypergeometric covariance of each bin (Mantel
    1966; Peto and Peto 1972).
    """
    from scipy.special import chdtrc  # slow to import, and rarely needed

    compared = [line for line in lines if line is not None and line.shows_events]
    if len(compared) < 2:
        return LogRank()
    common = reduce(set.intersection, (set(line.events.ends) for line in compared))
    ends = np.array(sorted(common))
    d = np.array([line.events.rebin(ends) for line in compared])
    censored = np.array([line.censored.rows_before(ends) for line in compared])
    total = np.array([[line.count_at_risk(np.zeros(1))[0]] for line in compared])
    n = total - censored - (np.cumsum(d, axis=1) - d)
    D, N = d.sum(axis=0), n.sum(axis=0)
    share = n / np.maximum(N, 1)
    excess = (d - share * D).sum(axis=1)[:-1]
    factor = D * (N - D) / np.maximum(N - 1, 1)
    covariance = np.diag(share @ factor) - (factor * share) @ share.T
    reduced, degrees = covariance[:-1, :-1], len(compared) - 1
    if np.linalg.matrix_rank(reduced) < degrees:
        return LogRank()
    statistic = float(excess @ np.linalg.solve(reduced, excess))
    return LogRank(statistic, degrees, float(chdtrc(degrees, statistic)))

"""Cluster profiles, computed from the totals of a column group: exact, or rounded.

Rounded profiles are for readers outside the column group. The rows of a cluster's line
are rounded to multiples of five. Proportions are multiples of 1/20 of these rows, and
quartiles follow from cumulative proportions rounded likewise. Means and deviations
are multiples of a round number that is at most 1/20 of the field's standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.profiles import SHARES, FieldProfile, Profile
from clustering_protocols.numerics.round_numbers import round_rows
from clustering_protocols.numerics.survival import (
    Survival,
    build_survival_line,
    log_rank,
    round_to_two_digits,
)
from clustering_protocols.records.arrays import FloatArray, IntArray, MaskArray
from clustering_protocols.shared_stages.profiles.totals import (
    N_SUMS,
    ProfileFields,
    ProfileTotals,
    between_and_within_variances,
    find_smallest,
    grid_quantile,
    level_labels,
    own_share,
)
from clustering_protocols.terms.schema import Field, Schema

OTHER_LEVELS: Final = "other levels"
_QUARTILES: Final = (0.25, 0.5, 0.75)
_PARTS_APART: Final = 4
"""The minimum number of parts of the grid between the first and the third quartile."""
_MOST_DIFFERENT: Final = 1000.0
_TOLERANCE: Final = 1e-6
_EQUAL_MEANS: Final = 1e-9  # means that agree to nine digits do not differ


@dataclass(frozen=True, eq=False)
class _FieldProfiles:
    """Iterable over the fields of a profile, computed from complete totals."""

    totals: ProfileTotals
    rounded: bool

    @property
    def n_lines(self) -> int:
        return len(self.totals.lines)

    def __iter__(self) -> Iterator[FieldProfile]:
        numbers = categories = 0
        for field in self.totals.fields.schema.fields:
            if level_labels(field):
                yield self._profile_categories(field, categories)
                categories += 1
            else:
                yield self._profile_numbers(field, numbers)
                numbers += 1

    def _profile_numbers(self, field: Field, column: int) -> FieldProfile:
        totals = self.totals
        counts = totals.counts[: self.n_lines, column]
        is_shown = totals.has_enough_values[: self.n_lines, column]
        mean = totals.means[: self.n_lines, column]
        spread = totals.spreads[: self.n_lines, column]
        if self.rounded:
            step = totals.steps[column]
            mean = np.rint(mean / step) * step + 0.0  # no -0
            spread = np.rint(spread / step) * step
            counts = self._round_counts(counts)
        variance = np.square(spread[is_shown])
        return FieldProfile(
            **_describe_field(field),
            is_date=field.type == "date",
            n_rows=_withhold(counts, is_shown),
            mean=_withhold(mean, is_shown),
            spread=_withhold(spread, is_shown),
            quartiles=tuple(
                self._line_quartiles(i, column, mean[i]) if is_shown[i] else None
                for i in range(self.n_lines)
            ),
            difference=_separation(counts[is_shown], mean[is_shown], variance),
        )

    def _round_counts(self, counts: IntArray) -> IntArray:
        rows = self.totals.line_rows[: self.n_lines]
        shares = np.rint(SHARES * counts / rows) / SHARES
        return np.rint(shares * round_rows(rows)).astype(np.int64)

    def _line_quartiles(
        self, line: int, column: int, mean: float
    ) -> tuple[float, float, float] | None:
        """Return the quartiles of a line, or None if their error could be too large.

        A quartile is in error by at most half the width of a part of the grid. If the
        interquartile range is less than four parts, this error is more than an eighth
        of it, and no quartiles are returned unless every value has its own part.
        """
        totals, grid = self.totals, self.totals.grid
        if totals.histograms is None:
            return None
        width = grid.width[line, column]
        if width == 0:
            return (float(mean),) * 3
        counts = totals.histograms[line, column]
        low, high = totals.fields.bounds
        middles = np.clip(grid.centres(line, column), low[column], high[column])
        if self.rounded:
            shares = np.rint(SHARES * np.cumsum(counts) / counts.sum())
            quartiles = [
                float(middles[np.searchsorted(shares, SHARES * q)]) for q in _QUARTILES
            ]
        else:
            quartiles = [grid_quantile(counts, middles, q) for q in _QUARTILES]
        first, second, third = quartiles
        if grid.is_exact(line, column) or _PARTS_APART * width <= third - first:
            return first, second, third
        return None

    def _profile_categories(self, field: Field, column: int) -> FieldProfile:
        ends, smallest = self.totals.fields.level_ends, self.totals.smallest
        counts = self.totals.level_counts[
            : self.n_lines, ends[column] : ends[column + 1]
        ]
        names = list(level_labels(field))
        is_shown = counts.sum(axis=1) >= smallest
        if self.rounded:
            counts, names, has_levels = _merge_rare_levels(counts, names, smallest)
            is_shown &= has_levels
        n_rows = counts.sum(axis=1)
        shares = counts / np.maximum(n_rows, 1)[:, None]
        if self.rounded:
            shares = np.rint(SHARES * shares) / SHARES
            n_rows = self._round_counts(n_rows)
        variance = (shares * (1.0 - shares))[is_shown]
        return FieldProfile(
            **_describe_field(field),
            n_rows=_withhold(n_rows, is_shown),
            levels=tuple(names),
            shares=_withhold(shares, is_shown),
            difference=_separation(n_rows[is_shown], shares[is_shown], variance),
        )


def _withhold(values: FloatArray | IntArray, is_shown: MaskArray) -> tuple[Any, ...]:
    """Return the value of each line (l,), or None for lines that are not shown."""
    pairs = zip(values.tolist(), is_shown, strict=True)
    return tuple(value if shown else None for value, shown in pairs)


def profile_of(
    totals: ProfileTotals, column: int, *, own: bool, rounded: bool
) -> Profile:
    """Return the profile that follows from complete totals.

    column: the number of the column group.
    own: whether the totals cover the rows of a single party only.
    rounded: whether the profile is rounded for readers outside the column group.
    """
    lines = totals.lines
    n_rows = totals.line_rows[: len(lines)]
    fields = _FieldProfiles(totals, rounded) if len(lines) else ()
    return Profile(
        column=column,
        own=own,
        clusters=lines.clusters,
        others=lines.others,
        n_rows=tuple((round_rows(n_rows) if rounded else n_rows).tolist()),
        rounded=rounded,
        fields=tuple(sorted(fields, key=lambda field: -field.difference)),
        survival=tuple(_build_survival(totals, rounded=rounded)) if len(lines) else (),
        is_description=totals.describes,
    )


def _build_survival(totals: ProfileTotals, *, rounded: bool) -> Iterator[Survival]:
    times, n_lines = totals.fields.event_times, len(totals.lines)
    for (index, _), counts in zip(times, totals.survival, strict=True):
        field = totals.fields.schema.fields[index]
        lines = tuple(
            build_survival_line(line, field.bounds[1], totals.smallest, rounded=rounded)
            for line in counts[:n_lines]
        )
        compared = [i for i, line in enumerate(lines) if line and line.shows_events]
        statistic, degrees = log_rank(counts[compared])
        if rounded and statistic is not None:
            statistic = round_to_two_digits(statistic)
        yield Survival(
            **_describe_field(field),
            event=field.event,
            most=field.bounds[1],
            lines=lines,
            statistic=statistic,
            degrees=degrees,
        )


def are_close(first: Profile, second: Profile) -> bool:
    """Return whether two profiles are equal up to a relative error of 10^-6.

    Two machines that compute a profile from the same sums differ by less than that.
    """
    values = first.model_dump(), second.model_dump()
    for profile in values:
        profile["fields"] = sorted(profile["fields"], key=lambda field: field["name"])
    return _are_close(*values)


def _are_close(first: Any, second: Any) -> bool:
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            _are_close(first[key], second[key]) for key in first
        )
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_are_close, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=_TOLERANCE)
    return bool(first == second)


def _describe_field(field: Field) -> dict[str, Any]:
    return {"name": field.name, "title": field.title, "unit": field.unit}


def _merge_rare_levels(
    counts: IntArray, names: list[str], smallest: int
) -> tuple[IntArray, list[str], MaskArray]:
    """Merge the rare levels into one last level, "other levels".

    In each line, the levels with fewer than ``smallest`` rows, including empty ones,
    are merged with the next rarest levels until they have ``smallest`` rows together. A
    line that then has fewer than two levels is not shown, because one "yes" among many
    "no" could identify a person. A level that is rare in one of the shown lines is
    merged in all of them, because proportions of different groups cannot be compared.

    Returns the counts, int64 (l, levels), the names of the levels, and which lines are
    shown, bool (l,).
    """
    rare = np.zeros(counts.shape, dtype=np.bool_)
    for line, line_counts in zip(rare, counts, strict=True):
        line[find_smallest(line_counts, smallest)] = True
    is_shown = (~rare).sum(axis=1) + rare.any(axis=1) >= 2
    merged = rare[is_shown].any(axis=0)
    if merged.all():
        is_shown[:] = False
    names = [names[level] for level in np.flatnonzero(~merged)]
    if not merged.any():
        return counts, names, is_shown
    others = counts[:, merged].sum(axis=1)
    return (
        np.column_stack([counts[:, ~merged], others]),
        [*names, OTHER_LEVELS],
        is_shown,
    )


def _separation(counts: IntArray, means: FloatArray, variances: FloatArray) -> float:
    """Return a field's spread between lines divided by its spread within them.

    counts: int64 (l,); the number of values in each line.
    means, variances: float64 (l,) or (l, levels).
    """
    between, within = between_and_within_variances(counts, means, variances)
    if between <= (_EQUAL_MEANS * np.abs(means).max(initial=0.0)) ** 2:
        return 0.0
    if within <= 0:
        return _MOST_DIFFERENT
    return float(min((between / within) ** 0.5, _MOST_DIFFERENT))


def own_profile(
    schema: Schema, data: DataSource, labels: IntArray, column: int, smallest: int
) -> Profile:
    """Return the profile of the clusters in the rows of a single party.

    data: a column for each field of the schema, in its units; NaN for missing values.
    labels: int64 (n_rows,); -1 for rows that take no part.
    column: the index of the column group.
    smallest: clusters with fewer rows than this are merged into one line.
    """
    totals = ProfileTotals(
        fields=ProfileFields(schema),
        n_clusters=1 + int(labels.max(initial=0)),
        n_rows=data.n_rows,
        n_members=1,
        smallest=smallest,
    )
    for _ in range(N_SUMS):
        totals = totals.with_sum(own_share(totals, data, labels))
    return profile_of(totals, column, own=True, rounded=False)

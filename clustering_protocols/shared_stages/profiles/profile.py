"""A profile, made of the sums of a column group: exact, or as it is told outside.

Told outside, shares are multiples of 1/20 of their line, quartiles are where such shares
reach them, and means and spreads are multiples of a round number of about a twentieth of
the field's spread within lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.profiles import SHARES, FieldProfile, Profile
from clustering_protocols.numerics.round_numbers import round_down
from clustering_protocols.numerics.survival import Survival, merge_line
from clustering_protocols.records.arrays import FloatArray, IntArray, MaskArray
from clustering_protocols.shared_stages.profiles.totals import (
    N_SUMS,
    ProfileFields,
    ProfileTotals,
    levels_of,
    quantile,
    share_of,
)
from clustering_protocols.terms.schema import Field, Schema

OTHER_LEVELS: Final = "other levels"
_QUARTILES: Final = (0.25, 0.5, 0.75)
_MOST_DIFFERENT: Final = 1000.0
_SAME: Final = 1e-6
_ALIKE: Final = 1e-9  # means that agree to nine digits do not differ


@dataclass(frozen=True, eq=False)
class _Maker:
    """Makes the profile of complete totals."""

    totals: ProfileTotals
    rounded: bool

    @property
    def n_lines(self) -> int:
        return len(self.totals.lines)

    def fields(self) -> Iterator[FieldProfile]:
        fields = self.totals.fields
        for place, field in enumerate(fields.schema.fields):
            if levels_of(field):
                column = int(np.searchsorted(fields.categories, place))
                yield self._of_levels(field, column)
            else:
                yield self._of_numbers(
                    field, int(np.searchsorted(fields.numbers, place))
                )

    def _of_numbers(self, field: Field, column: int) -> FieldProfile:
        totals, lines = self.totals, range(self.n_lines)
        counts = totals.counts[: self.n_lines, column]
        told = totals.has_enough_values[: self.n_lines, column]
        mean = totals.means[: self.n_lines, column]
        spread = totals.spreads[: self.n_lines, column]
        if self.rounded:
            step = _step(counts[told], mean[told], np.square(spread[told]))
            mean, spread = (np.rint(each / step) * step for each in (mean, spread))
            counts = self._rounded_counts(counts)
        seen = counts[told], mean[told], np.square(spread[told])
        return FieldProfile(
            **_describe_field(field),
            is_date=field.type == "date",
            n_rows=tuple(int(counts[i]) if told[i] else None for i in lines),
            mean=tuple(float(mean[i]) if told[i] else None for i in lines),
            spread=tuple(float(spread[i]) if told[i] else None for i in lines),
            quartiles=tuple(
                self._quartiles(i, column) if told[i] else None for i in lines
            ),
            difference=_difference(*seen),
        )

    def _rounded_counts(self, counts: IntArray) -> IntArray:
        rows = self.totals.line_rows[: self.n_lines]
        shares = np.rint(SHARES * counts / rows) / SHARES
        return np.rint(shares * rows).astype(np.int64)

    def _quartiles(
        self, line: int, column: int
    ) -> tuple[float | None, float | None, float | None] | None:
        totals = self.totals
        if totals.histograms is None:
            return None
        counts, middles = totals.histograms[line, column], totals.grid.middles(column)
        if self.rounded:
            shares = np.rint(SHARES * np.cumsum(counts) / counts.sum())
            found = [
                float(middles[np.searchsorted(shares, SHARES * q)]) for q in _QUARTILES
            ]
        else:
            found = [quantile(counts, middles, q) for q in _QUARTILES]
        first, second, third = (None if np.isnan(q) else q for q in found)
        return first, second, third

    def _of_levels(self, field: Field, column: int) -> FieldProfile:
        ends, smallest = self.totals.fields.ends, self.totals.smallest
        all_counts = self.totals.levels[: self.n_lines, ends[column] : ends[column + 1]]
        counts, names = all_counts, list(levels_of(field))
        enough = counts.sum(axis=1) >= smallest
        if self.rounded:
            counts, names, apart = _without_rare(counts, names, smallest)
            enough &= apart
        told: list[bool] = enough.tolist()
        n_rows = counts.sum(axis=1)
        shares = counts / np.maximum(n_rows, 1)[:, None]
        if self.rounded:
            shares = np.rint(SHARES * shares) / SHARES
            n_rows = self._rounded_counts(n_rows)
        kept = np.flatnonzero(told)
        variance = (shares * (1.0 - shares))[kept]
        return FieldProfile(
            **_describe_field(field),
            n_rows=tuple(
                int(n) if t else None for n, t in zip(n_rows, told, strict=True)
            ),
            levels=tuple(names),
            shares=tuple(
                tuple(map(float, s)) if t else None
                for s, t in zip(shares, told, strict=True)
            ),
            difference=_difference(n_rows[kept], shares[kept], variance),
        )


def profile_of(
    totals: ProfileTotals, column: int, *, own: bool, rounded: bool
) -> Profile:
    """Return the profile of a column group whose sums are complete.

    column: the column group.
    own: whether the sums are of one party alone.
    rounded: whether it is to be told outside.
    """
    lines = totals.lines
    found = list(_Maker(totals, rounded).fields()) if len(lines) else []
    return Profile(
        column=column,
        own=own,
        clusters=lines.clusters,
        others=lines.others,
        n_rows=tuple(totals.line_rows[: len(lines)].tolist()),
        rounded=rounded,
        fields=tuple(sorted(found, key=lambda field: -field.difference)),
        survival=tuple(_survival(totals, rounded=rounded)) if len(lines) else (),
        is_description=totals.describes,
    )


def _survival(totals: ProfileTotals, *, rounded: bool) -> Iterator[Survival]:
    fields, n_lines = totals.fields.schema.fields, len(totals.lines)
    for (place, _), counts in zip(totals.fields.times, totals.survival, strict=True):
        most, smallest = fields[place].bounds[1], totals.smallest
        yield Survival(
            **_describe_field(fields[place]),
            event=fields[place].event,
            most=most,
            lines=tuple(
                merge_line(line, most, smallest, rounded=rounded)
                for line in counts[:n_lines]
            ),
        )


def agree(own: Profile, told: Profile) -> bool:
    """Return whether two profiles say the same, to six digits of every number.

    Two machines make profiles of the same sums that differ by less.
    """
    mine, theirs = own.model_dump(), told.model_dump()
    for each in (mine, theirs):
        each["fields"] = sorted(each["fields"], key=lambda field: field["name"])
    return _alike(mine, theirs)


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_SAME)
    return bool(one == other)


def _describe_field(field: Field) -> dict[str, Any]:
    return {"name": field.name, "title": field.title, "unit": field.unit}


def _without_rare(
    counts: IntArray, names: list[str], smallest: int
) -> tuple[IntArray, list[str], MaskArray]:
    """Return counts in which rare levels of a line are together the last one.

    In each line the levels of fewer than ``smallest`` rows, those of none too, are one
    group, filled up by the next rarest until it holds so many. Nothing is told of a line
    in which fewer than two groups are left: one yes among many no is nobody's business.

    Returns counts, int64 (l, groups).
    Returns names, list of str.
    Returns told, bool (l,).
    """
    grouped = np.array([_in_group(line, smallest) for line in counts], dtype=bool)
    grouped = grouped.reshape(counts.shape)
    told = (~grouped).sum(axis=1) + grouped.any(axis=1) >= 2
    kept = np.where(grouped, 0, counts)
    listed = kept[told].any(axis=0)
    names = [names[place] for place in np.flatnonzero(listed)]
    if listed.any() and not grouped[told].any():
        return kept[:, listed], names, told
    others = np.where(grouped, counts, 0).sum(axis=1)
    return np.column_stack([kept[:, listed], others]), [*names, OTHER_LEVELS], told


def _in_group(counts: IntArray, smallest: int) -> MaskArray:
    """Return which levels (m,) of a line are told together."""
    ascending = np.argsort(counts, kind="stable")
    n_grouped = int(np.count_nonzero(counts < smallest))
    while n_grouped and n_grouped < len(counts):
        if counts[ascending[:n_grouped]].sum() >= smallest:
            break
        n_grouped += 1
    found = np.zeros(len(counts), dtype=np.bool_)
    found[ascending[:n_grouped]] = True
    return found


def _step(counts: IntArray, means: FloatArray, variances: FloatArray) -> float:
    """Return of what means and spreads of a number are told multiples.

    The largest 1, 2 or 5 times a power of ten up to a twentieth of its spread; of a
    constant, of its size.
    """
    between, within = _spreads(counts, means, variances)
    spread = float((between + within) ** 0.5) or float(np.abs(means).max(initial=0.0))
    return round_down((spread or 1.0) / SHARES)  # all members find the same step


def _difference(counts: IntArray, means: FloatArray, variances: FloatArray) -> float:
    """Return the spread between lines over that within, of one number or its levels.

    counts: int64 (l,).
    means, variances: float64 (l,) or (l, levels).
    """
    between, within = _spreads(counts, means, variances)
    if between <= (_ALIKE * np.abs(means).max(initial=0.0)) ** 2:
        return 0.0
    if within <= 0:
        return _MOST_DIFFERENT
    return float(min((between / within) ** 0.5, _MOST_DIFFERENT))


def _spreads(
    counts: IntArray, means: FloatArray, variances: FloatArray
) -> tuple[float, float]:
    """Return the variance between lines, and the mean variance within them."""
    if not counts.sum():
        return 0.0, 0.0
    weights = counts / counts.sum()
    means, variances = means.reshape(len(means), -1), variances.reshape(len(means), -1)
    between = float((weights @ np.square(means - weights @ means)).sum())
    return between, float((weights @ variances).sum())


def own_profile(
    schema: Schema, data: DataSource, labels: IntArray, column: int, smallest: int
) -> Profile:
    """Return what the clusters are like over the rows of one party.

    data: as the dictionary describes them, before anything is filled or scaled.
    labels: int64 (n_rows,); -1 for rows that are left out.
    column: the column group.
    smallest: clusters with fewer of these rows are one line together.
    """
    known = ProfileTotals(
        fields=ProfileFields(schema),
        n_clusters=1 + int(labels.max(initial=0)),
        n_rows=data.n_rows,
        n_members=1,
        smallest=smallest,
    )
    for _ in range(N_SUMS):
        known = known.with_sum(share_of(known, data, labels))
    return profile_of(known, column, own=True, rounded=False)

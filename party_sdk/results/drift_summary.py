"""What is said of new rows as a whole: columns and clusters then and now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.statistics.by_leader import Moments
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.schema import Schema
from coterie_pages.formatting import drift_value
from coterie_pages.models import ClusterDrift, NewRowsSummary, VariableDrift
from party_sdk.results.drift import (
    FEWEST_ROWS,
    ColumnMeans,
    Flags,
    find_drifted_means,
    find_drifted_ranges,
    find_shifts,
    share_means,
)
from party_sdk.results.trained_rows import TrainedRows, VariableMoments

_MOST_NAMED: Final = 5
_MOST_LISTED: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredRows:
    """New rows in numbers.

    n_rows: of the table; the rest is of those that can get a label.
    columns: the names of the columns that were clustered.
    variables: the whole table before it was prepared; None where nothing is prepared.
    outside: int64 (m,) or None; rows outside the trained range, of each column.
    """

    n_rows: int
    columns: tuple[str, ...]
    moments: Moments
    variables: VariableMoments | None
    labels: IntArray
    outside: IntArray | None
    rows_outside: int | None
    farthest: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """What has drifted: flags of columns (m,), of ranges (m,), and of clusters (k,)."""

    means: Flags
    ranges: Flags
    clusters: Flags


def summarise(
    trained: TrainedRows,
    new: MeasuredRows,
    plan: ColumnPlan | None,
    dictionary: Schema | None,
) -> NewRowsSummary:
    """Return what is said of new rows beside the trained ones."""
    sizes = np.bincount(new.labels, minlength=len(trained.sizes))
    found = _find_drift(trained, new, sizes)
    variables = _build_variables(trained, new, found, plan, dictionary)
    clusters = tuple(_build_clusters(trained.sizes, sizes, found.clusters))
    reason = _find_reason(trained, new)
    sentences = tuple(_build_sentences(variables, clusters))
    order = sorted(variables, key=_order)
    own, n = trained.own, new.moments.n_rows
    return NewRowsSummary(
        n_rows=new.n_rows,
        n_labelled=n,
        n_trained=None if own is None else own.n_rows,
        drift="unknown" if reason else "drifted" if sentences else "none",
        sentences=(reason,) if reason else sentences,
        outside=None if new.rows_outside is None else new.rows_outside / n,
        range_of="" if trained.ranges is None else trained.ranges[0],
        by_chance=_compute_chance(trained, len(new.columns)),
        farthest=new.farthest,
        clusters=clusters,
        variables=tuple(order[:_MOST_LISTED]),
        more_variables=max(0, len(order) - _MOST_LISTED),
    )


def _order(each: VariableDrift) -> tuple[bool, float]:
    return not each.drifted, -abs(each.shift or 0.0)


def _find_reason(trained: TrainedRows, new: MeasuredRows) -> str:
    """Return why nothing can be said of drift; empty where something can."""
    if trained.own is None:
        return (
            "This home keeps no summary of its trained rows: an earlier release ran the "
            "session."
        )
    for n_rows, whose in ((new.moments.n_rows, "new"), (trained.own.n_rows, "trained")):
        if n_rows < FEWEST_ROWS:
            return f"{n_rows} {whose} rows: {FEWEST_ROWS} are needed to speak of drift."
    return ""


def _compute_chance(trained: TrainedRows, width: int) -> float | None:
    """Return the share of rows outside to expect at most of rows without drift.

    Of exchangeable rows each column has 2 / (n + 1) outside; at most their sum.
    """
    if trained.own is None or not trained.own.minimum.size:
        return None
    return min(1.0, 2 * width / (trained.own.n_rows + 1))


def _find_drift(trained: TrainedRows, new: MeasuredRows, sizes: IntArray) -> _Found:
    width, own = len(new.columns), trained.own
    none = np.zeros(width, dtype=bool)
    if _find_reason(trained, new) or own is None:
        return _Found(
            means=none, ranges=none, clusters=np.zeros(len(sizes), dtype=bool)
        )
    comparisons = 2 * width + len(sizes)
    ranges = none
    if own.minimum.size and new.outside is not None:
        n_rows = (own.n_rows, new.moments.n_rows)
        ranges = find_drifted_ranges(*n_rows, new.outside, comparisons)
    before = np.pad(trained.sizes, (0, len(sizes) - len(trained.sizes)))
    return _Found(
        means=find_drifted_means(_means(own), _means(new.moments), comparisons),
        ranges=ranges,
        clusters=find_drifted_means(
            share_means(before), share_means(sizes), comparisons
        ),
    )


def _means(moments: Moments) -> ColumnMeans:
    return ColumnMeans(moments.n_rows, moments.mean, moments.spread)


# Columns


def _build_variables(
    trained: TrainedRows,
    new: MeasuredRows,
    found: _Found,
    plan: ColumnPlan | None,
    dictionary: Schema | None,
) -> list[VariableDrift]:
    width, own = len(new.columns), trained.own
    shifts = np.full(width, np.nan)
    if own is not None:
        shifts = find_shifts(_means(own), _means(new.moments))
    drifted = found.means | found.ranges
    outside = np.full(width, np.nan)
    if new.outside is not None:
        outside = new.outside / new.moments.n_rows
    means = _Means(trained, new, plan, dictionary)
    return [
        VariableDrift(
            name=name,
            shift=_number(shifts[place]),
            outside=_number(outside[place]),
            drifted=bool(drifted[place]),
            **means.describe(place),
        )
        for place, name in enumerate(new.columns)
    ]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


@dataclass(frozen=True, eq=False)
class _Means:
    """The means of columns then and now, as their table says them."""

    trained: TrainedRows
    new: MeasuredRows
    plan: ColumnPlan | None
    dictionary: Schema | None

    def describe(self, place: int) -> dict[str, Any]:
        """Return what :class:`VariableDrift` says of the means of a column."""
        if self.plan is None:
            return self._describe_field(place) | self._prepared_means(place, 1.0)
        number = self._numbers[self.plan.sources[place]]
        known = {
            "missing_then": self._missing_share(self.trained.variables, number),
            "missing_now": self._missing_share(self.new.variables, number),
        }
        if self.plan.in_units[place]:
            largest = float(self.plan.bounds.high[place])
            return known | {"is_share": True, **self._prepared_means(place, largest)}
        means = {
            "then": self._observed_mean(self.trained.variables, number),
            "now": self._observed_mean(self.new.variables, number),
        }
        return known | self._describe_field(number) | means

    @cached_property
    def _numbers(self) -> dict[str, int]:
        names = () if self.dictionary is None else self.dictionary.names
        return {name: number for number, name in enumerate(names)}

    def _describe_field(self, number: int) -> dict[str, Any]:
        if self.dictionary is None:
            return {}
        field = self.dictionary.fields[number]
        return {"unit": field.unit, "is_date": field.type == "date"}

    def _prepared_means(self, place: int, unit: float) -> dict[str, Any]:
        """Return the means as the session clustered them, in a unit."""
        own, now = self.trained.own, self.new.moments
        then = None if own is None else float(own.mean[place]) / unit
        return {"then": then, "now": float(now.mean[place]) / unit}

    @staticmethod
    def _missing_share(variables: VariableMoments | None, number: int) -> float | None:
        return None if variables is None else float(variables.missing_shares[number])

    @staticmethod
    def _observed_mean(variables: VariableMoments | None, number: int) -> float | None:
        if variables is None or not variables.counts[number]:
            return None
        return float(variables.mean[number])


# Clusters


def _build_clusters(
    before: IntArray, now: IntArray, drifted: Flags
) -> Iterator[ClusterDrift]:
    then = _shares(np.pad(before, (0, len(now) - len(before))))
    shares = _shares(now)
    for cluster, n_rows in enumerate(now.tolist()):
        yield ClusterDrift(
            cluster=cluster,
            n_rows=n_rows,
            then=_number(then[cluster]),
            now=float(np.nan_to_num(shares[cluster])),
            drifted=bool(drifted[cluster]),
        )


def _shares(sizes: IntArray) -> FloatArray:
    total = sizes.sum()
    return sizes / total if total else np.full(len(sizes), np.nan)


# Sentences


def _build_sentences(
    variables: Sequence[VariableDrift],
    clusters: Sequence[ClusterDrift],
) -> Iterator[str]:
    """Yield what has drifted, the largest shift first."""
    drifted = sorted((each for each in variables if each.drifted), key=_order)
    for each in drifted[:_MOST_NAMED]:
        yield _build_sentence(each)
    if len(drifted) > _MOST_NAMED:
        yield f"{len(drifted) - _MOST_NAMED} more columns have drifted."
    for cluster in clusters:
        if cluster.drifted:
            yield (
                f"Cluster {cluster.cluster} holds {cluster.now:.0%} of the new rows, and "
                f"{cluster.then or 0:.0%} of the trained ones."
            )


def _build_sentence(each: VariableDrift) -> str:
    text = f"{each.name!r}: the mean was {drift_value(each, each.then)}, and is "
    text += drift_value(each, each.now)
    if each.shift is not None:
        way = "up" if each.shift > 0 else "down"
        text += f", {abs(each.shift):.2g} standard deviations {way}"
    if each.outside:
        text += f"; {each.outside:.0%} lie outside the trained range"
    return f"{text}."

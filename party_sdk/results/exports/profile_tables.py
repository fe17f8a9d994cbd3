"""A cluster profile as one table: a line for each variable, cluster and level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from clustering_protocols.numerics.outcomes import Outcome, OutcomeTable
from clustering_protocols.numerics.profiles import FieldProfile, Profile, date_of
from coterie_pages.formatting import cluster_title

FIELDS: Final = (
    ("column_group", pa.int64()),
    ("rows_of", pa.string()),
    ("variable", pa.string()),
    ("title", pa.string()),
    ("unit", pa.string()),
    ("cluster", pa.string()),
    ("rows", pa.int64()),
    ("level", pa.string()),
    ("mean", pa.float64()),
    ("standard_deviation", pa.float64()),
    ("quartile_1", pa.float64()),
    ("median", pa.float64()),
    ("quartile_3", pa.float64()),
    ("share", pa.float64()),
    ("interval_low", pa.float64()),
    ("interval_high", pa.float64()),
    ("test", pa.string()),
    ("p", pa.float64()),
    ("difference", pa.float64()),
    ("mean_as_date", pa.string()),
)
"""Names and types of the columns; an interval is of 95 %."""


def profile_table(
    profiles: Sequence[Profile],
    outcomes: Sequence[OutcomeTable],
    names: Sequence[str] = (),
) -> pa.Table:
    """Return profiles, and the intervals of what is described alone, as one table."""
    lines = [
        line
        for profile in profiles
        for line in _lines(profile, _outcomes_of(profile, outcomes), names)
    ]
    return pa.table(
        {
            name: pa.array([line.get(name) for line in lines], kind)
            for name, kind in FIELDS
        }
    )


def _outcomes_of(
    profile: Profile, outcomes: Sequence[OutcomeTable]
) -> dict[str, Outcome]:
    return {
        field.name: field
        for table in outcomes
        if (table.column, table.own) == (profile.column, profile.own)
        for field in table.fields
    }


def _lines(
    profile: Profile, outcomes: dict[str, Outcome], names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    called = [cluster_title(cluster, names) for cluster in profile.clusters]
    if profile.others:
        called.append(f"others ({', '.join(map(str, profile.others))})")
    for field in profile.fields:
        for place, cluster in enumerate(called):
            shared = {
                "column_group": profile.column + 1,
                "rows_of": "own" if profile.own else "all parties",
                "variable": field.name,
                "title": field.title,
                "unit": field.unit,
                "cluster": cluster,
                "rows": field.n_rows[place],
                "difference": field.difference,
                **_test(outcomes.get(field.name)),
            }
            yield from (
                shared | more
                for more in _values(field, place, outcomes.get(field.name))
            )


def _test(outcome: Outcome | None) -> dict[str, Any]:
    return {} if outcome is None else {"test": outcome.test, "p": outcome.p}


def _values(
    field: FieldProfile, place: int, outcome: Outcome | None
) -> Iterator[dict[str, Any]]:
    if field.levels:
        shares = field.shares[place] or (None,) * len(field.levels)
        intervals = (outcome.shares[place] if outcome else None) or ()
        for number, (level, share) in enumerate(zip(field.levels, shares, strict=True)):
            low, high = intervals[number] if number < len(intervals) else (None, None)
            yield {
                "level": level,
                "share": share,
                "interval_low": low,
                "interval_high": high,
            }
        return
    mean = field.mean[place]
    quartiles = (field.quartiles[place] if field.quartiles else None) or (None,) * 3
    interval = (outcome.means[place] if outcome else None) or (None, None)
    yield {
        "mean": mean,
        "standard_deviation": field.spread[place],
        "quartile_1": quartiles[0],
        "median": quartiles[1],
        "quartile_3": quartiles[2],
        "interval_low": interval[0],
        "interval_high": interval[1],
        "mean_as_date": date_of(mean) if field.is_date and mean is not None else None,
    }

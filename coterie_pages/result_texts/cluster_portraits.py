"""What sets each cluster apart, in a few words: the fields that lie farthest off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from clustering_protocols.numerics.profiles import NO_YES, Profile, date_of
from coterie_pages.formatting import number
from coterie_pages.svg.heat import Deviations, deviations

_FAR: Final = 0.5
"""From so many standard deviations on, a mean is worth a word."""
_MOST: Final = 3


def portraits(profiles: Sequence[Profile]) -> Mapping[int, str]:
    """Return of each cluster the fields in which it differs most from all together.

    Of the profiles of all parties; where there is none, of that of the own rows.
    """
    pooled = [each for each in profiles if not each.own] or list(profiles)
    found: dict[int, list[str]] = {}
    for profile in pooled:
        for place, cluster in enumerate(profile.clusters):
            found.setdefault(cluster, []).extend(_farthest(profile, place))
    return {
        cluster: "; ".join(said[:_MOST]) or "near the mean of all in every variable"
        for cluster, said in found.items()
    }


def _farthest(profile: Profile, place: int) -> Iterator[str]:
    """Yield what is said of the fields that lie farthest off, the farthest first."""
    rows = [row for row in _told_once(profile) if row.values[place] is not None]
    rows.sort(key=lambda row: -abs(row.values[place] or 0.0))
    named: set[str] = set()  # of a variable with levels the farthest one alone
    for row in rows:
        far, variable = row.values[place] or 0.0, row.name.rpartition(": ")[0]
        if abs(far) < _FAR or len(named) == _MOST:
            return
        if (variable or row.name) not in named:
            named.add(variable or row.name)
            yield f"{row.name} {'high' if far > 0 else 'low'}{_value(profile, row, place)}"


def _told_once(profile: Profile) -> Iterator[Deviations]:
    """Yield rows of the heat map; of yes and no that of yes alone."""
    binary = {
        f"{field.title or field.name}: {NO_YES[0]}"
        for field in profile.fields
        if field.levels == NO_YES
    }
    return (row for row in deviations(profile) if row.name not in binary)


def _value(profile: Profile, row: Deviations, place: int) -> str:
    """Return the mean or the share in brackets; empty where none is told."""
    for field in profile.fields:
        name = field.title or field.name
        if not field.levels and name == row.name:
            mean = field.mean[place]
            if mean is None:
                return ""
            if field.is_date:
                return f" ({date_of(mean)})"
            return f" ({number(mean)} {field.unit}".rstrip() + ")"
        shares = field.shares[place] if field.levels else None
        for level, part in zip(field.levels, shares or (), strict=False):
            if f"{name}: {level}" == row.name:
                return f" ({part:.0%})"
    return ""

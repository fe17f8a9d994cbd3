"""Section 11: profiles as text, rounded to be told outside."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from .derivations import Refusal

if TYPE_CHECKING:
    from .profile_sums import Totals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_SHARES: Final = 20
_OTHER: Final = "other levels"
_MOST: Final = 1000.0
_PROFILE: Final = {"column", "own", "clusters", "others", "n_rows", "rounded", "fields"}
_FIELD: Final = {
    "name",
    "title",
    "unit",
    "is_date",
    "n_rows",
    "mean",
    "spread",
    "quartiles",
    "levels",
    "shares",
    "difference",
}


def write(totals: Totals, column: int) -> str:
    """Section 11, profiles, text: of complete totals."""
    clusters, others = totals.lines
    found = _describe_fields(totals) if totals.n_lines else []
    profile = {
        "column": column,
        "own": False,
        "clusters": clusters,
        "others": others,
        "n_rows": totals.line_rows[: totals.n_lines].tolist(),
        "rounded": True,
        "fields": sorted(found, key=lambda each: -float(each["difference"])),
    }
    return json.dumps([profile], separators=(",", ":"))


def _describe_fields(totals: Totals) -> list[dict[str, Any]]:
    """Section 11, profiles, text: of each field."""
    found = []
    for place, field in enumerate(totals.fields):
        said: dict[str, Any] = {
            "name": field.name,
            "title": field.title,
            "unit": field.unit,
            "is_date": field.type == "date",
            "mean": [],
            "spread": [],
            "quartiles": [],
            "levels": [],
            "shares": [],
        }
        if field.levels:
            begin = totals.ends[totals.categories.index(place)]
            own = _describe_levels(totals, begin, field.levels)
        else:
            own = _describe_numbers(totals, totals.numbers.index(place))
        found.append(said | own)
    return found


def _round_rows(totals: Totals, counts: Ints) -> Ints:
    """Section 11, profiles, text: rows that have a value, in steps."""
    rows = totals.line_rows[: totals.n_lines]
    shares = np.rint(_SHARES * counts / rows) / _SHARES
    return np.rint(shares * rows).astype(np.int64)


def _describe_numbers(totals: Totals, number: int) -> dict[str, Any]:
    """Section 11, profiles, text, numbers."""
    lines = range(totals.n_lines)
    counts, told, mean, spread = (
        each[: totals.n_lines, number]
        for each in (totals.counts, totals.enough, totals.means, totals.spreads)
    )
    between, within = _apart(counts[told], mean[told], np.square(spread[told]))
    size = math.sqrt(between + within) or float(np.abs(mean[told]).max(initial=0.0))
    step = _round_down((size or 1.0) / _SHARES)
    mean, spread = (np.rint(each / step) * step for each in (mean, spread))
    counts = _round_rows(totals, counts)
    seen = (counts[told], mean[told], np.square(spread[told]))
    return {
        "n_rows": [int(counts[i]) if told[i] else None for i in lines],
        "mean": [float(mean[i]) if told[i] else None for i in lines],
        "spread": [float(spread[i]) if told[i] else None for i in lines],
        "quartiles": [
            _find_quartiles(totals, i, number) if told[i] else None for i in lines
        ],
        "difference": _find_difference(*seen),
    }


def _find_quartiles(
    totals: Totals, line: int, number: int
) -> list[float | None] | None:
    """Section 11, profiles, text, numbers: quartiles on the grid."""
    if totals.histograms is None:
        return None
    counts, middles = totals.histograms[line, number], totals.middles(number)
    shares = np.rint(_SHARES * np.cumsum(counts) / counts.sum())
    found = [float(middles[np.searchsorted(shares, q)]) for q in (5, 10, 15)]
    return [None if math.isnan(each) else each for each in found]


def _describe_levels(totals: Totals, begin: int, names: list[str]) -> dict[str, Any]:
    """Section 11, profiles, text, levels."""
    counts = totals.levels[: totals.n_lines, begin : begin + len(names)]
    rare = np.array([_find_rare(line, totals.smallest) for line in counts])
    rare = rare.reshape(counts.shape)
    apart = (~rare).sum(axis=1) + rare.any(axis=1) >= 2
    told = apart & (counts.sum(axis=1) >= totals.smallest)
    kept = np.where(rare, 0, counts)
    listed = kept[apart].any(axis=0)
    columns, labels = (
        [kept[:, listed]],
        [n for n, there in zip(names, listed, strict=True) if there],
    )
    if not listed.any() or rare[apart].any():
        columns.append(np.where(rare, counts, 0).sum(axis=1)[:, None])
        labels.append(_OTHER)
    groups = np.hstack(columns)
    rows = groups.sum(axis=1)
    shares = np.rint(_SHARES * (groups / np.maximum(rows, 1)[:, None])) / _SHARES
    rows = _round_rows(totals, rows)
    variance = shares * (1.0 - shares)
    return {
        "n_rows": [int(n) if t else None for n, t in zip(rows, told, strict=True)],
        "levels": labels,
        "shares": [
            each.tolist() if t else None for each, t in zip(shares, told, strict=True)
        ],
        "difference": _find_difference(rows[told], shares[told], variance[told]),
    }


def _find_rare(counts: Ints, smallest: int) -> NDArray[np.bool_]:
    """Section 11, profiles, text, levels: those of a line that are told together."""
    ascending = np.argsort(counts, kind="stable")
    n = int(np.count_nonzero(counts < smallest))
    while 0 < n < len(counts) and counts[ascending[:n]].sum() < smallest:
        n += 1
    found = np.zeros(len(counts), bool)
    found[ascending[:n]] = True
    return found


def _round_down(number: float) -> float:
    """Section 11, profiles, text, numbers: 1, 2 or 5 times a power of ten."""
    digits = float(f"{number:.8e}")
    power = math.floor(math.log10(digits))
    steps = [
        float(f"{f}e{p}") for p in (power - 1, power, power + 1) for f in (1, 2, 5)
    ]
    return max(step for step in steps if step <= digits)


def _apart(counts: Ints, means: Floats, variances: Floats) -> tuple[float, float]:
    """Section 11, profiles, text: variance between lines, and within them."""
    if not counts.sum():
        return 0.0, 0.0
    weights = counts / counts.sum()
    means, variances = means.reshape(len(means), -1), variances.reshape(len(means), -1)
    between = float((weights @ np.square(means - weights @ means)).sum())
    return between, float((weights @ variances).sum())


def _find_difference(counts: Ints, means: Floats, variances: Floats) -> float:
    """Section 11, profiles, text: how far a field sets lines apart."""
    between, within = _apart(counts, means, variances)
    if between <= (1e-9 * np.abs(means).max(initial=0.0)) ** 2:
        return 0.0
    return _MOST if within <= 0 else min(math.sqrt(between / within), _MOST)


def read(text: bytes) -> list[dict[str, Any]]:
    """Section 11, profiles, text: profiles that were told."""
    try:
        found = json.loads(text)
    except ValueError:
        raise Refusal("malformed") from None
    good = isinstance(found, list) and all(
        isinstance(each, dict)
        and set(each) == _PROFILE
        and all(set(field) == _FIELD for field in each["fields"])
        for each in found
    )
    if not good:
        raise Refusal("malformed")
    profiles: list[dict[str, Any]] = found
    return profiles


def agree(own: dict[str, Any], told: dict[str, Any]) -> bool:
    """Section 11, profiles, reading: to six digits, fields in any order."""
    by_name = [
        {**each, "fields": sorted(each["fields"], key=lambda field: field["name"])}
        for each in (own, told)
    ]
    return _alike(*by_name)


def _alike(one: Any, other: Any) -> bool:
    """Section 11, profiles, reading: to six digits."""
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(_alike(one[n], other[n]) for n in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        return numbers and math.isclose(one, other, rel_tol=1e-6)
    return bool(one == other)

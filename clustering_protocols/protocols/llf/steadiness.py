"""What every party compares between totals over the same rows.

Rows stay where they are, and so in every honest session

- a cluster has no fewer rows than this party has there;
- the sums of all clusters add up to the same: the rows do not change;
- around the centroids that were told in between, the rows cost no more than they did in
  the clusters before: each goes to the nearest. Σ‖x‖² cancels, and what is left of
  Σ_c Σ_i ‖x_i - v_c‖² is Σ_c n_c ‖v_c‖² - 2 v_c · S_c.

A share that is no sum over rows has to foresee the sums of others to meet all three.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.records.arrays import FloatArray

from .centroids import Encoding
from .features import Scaler

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slack:
    """By how much rounding may set totals over the same rows apart.

    sums: float64 (F,); each row is rounded to a unit.
    squares: σ‖x‖² over all rows, at most.
    """

    sums: FloatArray
    squares: float

    @classmethod
    def of(cls, encoding: Encoding, scale: Scaler, n_rows: int) -> Slack:
        """Return the slack of sums over n_rows."""
        return cls(
            sums=2.0 * n_rows / encoding.sums.unit,
            squares=float(scale.square_limit.sum()),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemberSums:
    """Sums (k, F) and counts (k,) over the rows of some members."""

    members: Sequence[str]
    sums: FloatArray = field(repr=False)
    counts: FloatArray = field(repr=False)


def check_own(counts: FloatArray, own: FloatArray) -> None:
    """Refuse a total (k,) with less of a cluster than this party's share (k,).

    Raises ProtocolFailed.
    """
    if (counts < own).any():
        raise ProtocolFailed(
            "A total counts fewer rows of a cluster than this party has there."
        )


def of_same_members(totals: Iterable[MemberSums], now: MemberSums) -> list[MemberSums]:
    """Return the totals that the same members added up: no others are compared."""
    return [each for each in totals if list(each.members) == list(now.members)]


def check_same_rows(
    before: Iterable[MemberSums], now: MemberSums, slack: Slack
) -> None:
    """Refuse a total of which all clusters together are other rows than before.

    Raises ProtocolFailed.
    """
    rows = now.sums.sum(axis=0)
    for each in before:
        if (np.abs(rows - each.sums.sum(axis=0)) > slack.sums).any():
            raise ProtocolFailed("A total is of other rows than the total before.")


def check_no_farther(
    before: MemberSums, now: MemberSums, V: FloatArray, slack: Slack
) -> None:
    """Refuse a total around V (k, F) by which rows did not go to the nearest centroid.

    Raises ProtocolFailed.
    """
    squares = np.square(V).sum(axis=1)
    moved = now.sums - before.sums
    rise = float((now.counts - before.counts) @ squares - 2.0 * (moved * V).sum())
    largest = float(now.counts.sum() * squares.max(initial=0.0))
    rounded = 2.0 * float(slack.sums @ np.abs(V).sum(axis=0))
    if rise > _ROUNDING * (slack.squares + largest) + rounded:
        raise ProtocolFailed(
            "A total puts rows farther from their centroids than the total before."
        )

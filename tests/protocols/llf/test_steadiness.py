"""What a party compares between totals over the same rows: slack is for rounding alone."""

from typing import Any

import numpy as np
import pytest

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.protocols.llf import LosslessFederated, messages, rows_round
from clustering_protocols.protocols.llf.maths import (
    ROUNDING_MARGIN,
    has_converged,
    split_sums,
)
from clustering_protocols.records.arrays import FloatArray
from tests.protocols.llf.llf_sessions import session


def total(sums: Any, counts: Any) -> messages.Centroids:
    return messages.Centroids(
        number=1,
        centroids=np.array([[0.0, 0.0], [4.0, 0.0]]),
        moved=None,
        members=["a", "b", "c"],
        sums=np.array(sums, float),
        weights=np.array(counts, float),
    )


BEFORE = total([[3.0, 1.0], [17.0, 0.0]], [6, 4])


@pytest.mark.parametrize(
    ("slack", "squares", "most"),
    [
        # each total lies a unit a row off, and the centroids stand four apart
        (np.full(2, 1e-5), 0.0, 1e-5),
        # a billionth of all squares: of 840, and of 10 rows of which none is beyond 16
        (np.zeros(2), 840.0, 1.25e-7),
    ],
)
def test_rows_may_seem_farther_by_the_slack_alone(
    slack: FloatArray, squares: float, most: float
) -> None:
    def midway(off: float) -> messages.Centroids:
        return total([[5.0 + off, 1.0], [15.0 - off, 0.0]], [7, 3])

    rows_round.check_no_farther(BEFORE, midway(0.96 * most), slack, squares)
    with pytest.raises(ProtocolFailed):
        rows_round.check_no_farther(BEFORE, midway(1.04 * most), slack, squares)


def test_the_slack_covers_rows_rounded_up_once_and_down_once() -> None:
    place = rows_round.RowsRound(session().context("r1c1"))
    units = split_sums(place.encoding.unit, 3)[0][0]
    assert np.array_equal(place.slack * units, [2 * 200.0] * 2)


def test_members_allow_the_leader_a_rounding_of_what_moved() -> None:
    params = LosslessFederated(n_clusters=2, tol=1e-5)
    for moved, leader, member in (
        (None, False, False),
        (1e-5, True, True),
        (1e-5 * (1 + 1e-12), False, True),
        (1.000001e-5, False, False),
    ):
        assert has_converged(params, moved) == leader
        assert has_converged(params, moved, ROUNDING_MARGIN) == member

"""What a party compares between totals over the same rows: slack is for rounding alone."""

from typing import Any

import numpy as np
import pytest

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.protocols.llf import LosslessFederated, rows_round
from clustering_protocols.protocols.llf.maths import (
    has_converged,
    may_have_converged,
    split_sums,
)
from tests.protocols.llf.llf_sessions import session


def total(members: list[str], sums: Any, counts: Any) -> rows_round.MemberSums:
    return rows_round.MemberSums(
        members=members, sums=np.array(sums, float), counts=np.array(counts, float)
    )


ALL = ["a", "b", "c"]
V = np.array([[0.0, 0.0], [4.0, 0.0]])
BEFORE = total(ALL, [[3.0, 1.0], [17.0, 0.0]], [6, 4])


@pytest.mark.parametrize(
    ("slack", "most"),
    [
        # each total lies a unit a row off, and the centroids stand four apart
        (rows_round.Slack(sums=np.full(2, 1e-5), squares=0.0), 1e-5),
        # a billionth of all squares: of 840, and of 10 rows of which none is beyond 16
        (rows_round.Slack(sums=np.zeros(2), squares=840.0), 1.25e-7),
    ],
)
def test_rows_may_seem_farther_by_the_slack_alone(
    slack: rows_round.Slack, most: float
) -> None:
    def midway(off: float) -> rows_round.MemberSums:
        return total(ALL, [[5.0 + off, 1.0], [15.0 - off, 0.0]], [7, 3])

    rows_round.check_no_farther(BEFORE, midway(0.96 * most), V, slack)
    with pytest.raises(ProtocolFailed):
        rows_round.check_no_farther(BEFORE, midway(1.04 * most), V, slack)


def test_the_slack_covers_rows_rounded_up_once_and_down_once() -> None:
    place = rows_round.RowsRound(session().context("r1c1"))
    units = split_sums(place.encoding.unit, 3)[0][0]
    assert np.array_equal(place.slack.sums * units, [2 * 200.0] * 2)
    assert place.slack.squares == place.scale.square_limit.sum()


def test_sums_of_rows_stand_in_no_log() -> None:
    shown = repr(total(ALL, [[0.125, 0.125]], [375]))
    assert "'b'" in shown
    assert "125" not in shown
    assert "375" not in shown


def test_members_allow_the_leader_a_rounding_of_what_moved() -> None:
    params = LosslessFederated(n_clusters=2, tol=1e-5)
    assert not may_have_converged(params, None)
    assert has_converged(params, 1e-5)
    assert may_have_converged(params, 1e-5)
    other = 1e-5 * (1 + 1e-12)
    assert not has_converged(params, other)
    assert may_have_converged(params, other)
    assert not may_have_converged(params, 1.000001e-5)

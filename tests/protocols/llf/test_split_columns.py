"""`llf` over split columns, round by round: what a party measures, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.lies import altered

from clustering_protocols.common.errors import CoterieError, ProtocolFailed
from clustering_protocols.protocols.llf import columns_party, messages
from tests.protocols.llf.llf_sessions import columns_session


def test_distances_are_measured_at_most_once_after_max_iter() -> None:
    s = columns_session("cmeans", max_iter=2, tol=0.0)
    s.until(messages.MeasureDistances, 3)
    own = s.recall("r1c2", messages.OwnCentroids)
    s.memories["r1c2"] = s.memories["r1c2"].remember(
        [own.model_copy(update={"number": 3})]
    )
    more = altered(s, "r1c2", lambda _: {"number": 4})
    with pytest.raises(ProtocolFailed, match="more updates than max_iter"):
        s.answer("r1c2", more)
    s.memories["r1c2"] = s.memories["r1c2"].remember([own])
    assert s.to_the_end().outcomes["r1c2"].report["n_updates"] == 2


def test_split_columns_start_where_the_terms_say() -> None:
    start = tuple(map(tuple, np.arange(18.0).reshape(3, 6) / 9 - 1))
    s = columns_session(
        "cmeans", 1, 9.0, init="given", initial_centroids=start, scaling="none"
    )
    s.turn()
    for place, slot in enumerate(s.session.slots):
        V = s.recall(slot, messages.OwnCentroids).centroids
        assert np.array_equal(V, np.array(start)[:, 2 * place : 2 * place + 2])


def test_the_bound_of_distances_is_tight() -> None:
    s = columns_session("cmeans", 1, 9.0, scaling="none")
    farthest = 6 * 18.0**2  # from one corner to the other
    assert (
        farthest
        < columns_party.build_distance_encoding(s.session).bound
        < 1.02 * farthest
    )


@pytest.mark.parametrize("algorithm", ["cmeans", "fuzzy_cmeans"])
@pytest.mark.parametrize("step", [-2, -1, 1])
def test_distances_of_an_update_are_measured_once(algorithm: Any, step: int) -> None:
    s = columns_session(algorithm)
    other = altered(s, "r1c2", lambda task: {"number": task.number + step})
    with pytest.raises(ProtocolFailed, match="out of order"):
        s.answer("r1c2", other)


@pytest.mark.parametrize("algorithm", ["cmeans", "fuzzy_cmeans"])
@pytest.mark.parametrize("field", ["number", "fewer", "cluster", "row"])
def test_a_lie_about_labels_or_memberships_is_noticed(
    algorithm: Any, field: str
) -> None:
    s = columns_session(algorithm)
    name = "labels" if algorithm == "cmeans" else "memberships"

    def change(task: Any) -> dict[str, Any]:
        old = np.array(getattr(task, name))
        if field == "number":
            return {"number": task.number + 1}
        if field == "fewer":
            return {name: old[:-1]}
        if field == "row":
            old[0] = (old[0] + 1) % 3 if name == "labels" else old[0][::-1]
            return {name: old}
        if name == "memberships":
            return {name: np.hstack([old, 0 * old[:, :1]])}
        return {name: np.where(old == 2, 3, old)}

    told = {"r1c2": altered(s, "r1c2", change)}
    with pytest.raises(CoterieError):
        s.to_the_end(told=told)

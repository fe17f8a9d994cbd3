"""Reported faults that the estimators show: wrong clusters at full fidelity, no warning.

After recordlinkage#162, splink#2281, linopy#239, dataframe-api#12 and
cgc#90.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import InvalidData
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.terms.terms import Layout
from coterie import CannotCluster, FederatedCoClustering, FederatedKMeans
from tests.protocols.attacks.honest_sessions import house_in, play


def fitted(model: Any, tables: list[Any]) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(tables)
    return model, [str(each.message) for each in caught]


@pytest.mark.parametrize("stand_in", ["P999", "unknown", "NA", "00000000"])
def test_a_word_for_no_id_links_no_people(stand_in: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    X[:20] += 6
    order = rng.permutation(40)
    ids = [[f"P{row:03}" for row in range(40)] for _ in range(2)]
    ids[0][5] = stand_in
    ids[1][6] = stand_in if stand_in != "P999" else "P888"
    one = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(pid=ids[0])
    two = pd.DataFrame(X[:, 2:], columns=["c", "d"]).assign(pid=ids[1]).iloc[order]
    alignment = {"method": "ecdh", "minimum_share": 0.1}
    how: dict[str, Any] = {"layout": "columns", "id_column": "pid"}
    model = FederatedKMeans(2, random_state=0, params={"alignment": alignment}, **how)
    model, told = fitted(model, [one, two])
    assert any("stands for none" in each for each in told) == (stand_in != "P999")
    for labels in model.labels_:
        assert (np.asarray(labels) >= 0).sum() == 38


@pytest.fixture
def indexed() -> tuple[list[int], list[pd.DataFrame]]:
    """Three groups of rows, and two frames with the same index in another order."""
    rng = np.random.default_rng(0)
    groups = np.arange(60) % 3
    centres = np.array([[0, 0, 0, 0], [6, 0, 6, 6], [0, 7, 6, -6]], float)
    X = centres[groups] + rng.normal(size=(60, 4))
    index = pd.Index([f"P{row:02}" for row in range(60)], name="pid")
    frame = pd.DataFrame(X, columns=list("abcd"), index=index)
    tables = [frame[["a", "b"]], frame[["c", "d"]].sample(frac=1, random_state=1)]
    return groups.tolist(), tables


def test_frames_are_not_joined_by_an_index_that_nobody_names(
    indexed: tuple[list[int], list[pd.DataFrame]],
) -> None:
    model = FederatedKMeans(3, layout="columns", random_state=0)
    with pytest.raises(CannotCluster, match="index") as refused:
        fitted(model, indexed[1])
    assert refused.value.problem in {Problem.INVALID_DATA, Problem.INVALID_PARAMETERS}


@pytest.mark.parametrize("is_column", [False, True])
def test_frames_are_joined_by_the_index_that_is_named(
    indexed: tuple[list[int], list[pd.DataFrame]], *, is_column: bool
) -> None:
    groups, tables = indexed
    if is_column:
        tables = [table.reset_index() for table in tables]
    model = FederatedKMeans(3, layout="columns", random_state=0, id_column="pid")
    model, _ = fitted(model, tables)
    assert adjusted_rand_score(groups, model.labels_[0]) > 0.9


def test_a_session_without_ids_does_not_join_frames(
    tmp_path: Path, indexed: tuple[list[int], list[pd.DataFrame]]
) -> None:
    params = DataCollaboration(n_clusters=3, dimensions="all")
    with house_in(tmp_path) as house:
        outcome = play(house, "s", params, Layout.lattice(1, 2), indexed[1])
    assert isinstance(outcome, InvalidData)
    assert "ids say which is which" in outcome.detail


@pytest.mark.parametrize("factor", [1, 100, 1e-6])
def test_counts_in_another_unit_give_equal_co_clusters(factor: float) -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(3), 20)
    parts = []
    for _ in range(3):
        own = np.arange(12)[None] // 4 == groups[:, None]
        parts.append(rng.binomial(1, np.where(own, 0.6, 0.05)).astype(float) * factor)
    model = FederatedCoClustering(
        3, layout="columns", random_state=0, params={"r_max": float(factor)}
    )
    model, told = fitted(model, parts)
    score = adjusted_rand_score(groups, np.asarray(model.labels_[0]))
    assert told or score > 0.95

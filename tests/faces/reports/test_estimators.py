"""Reported faults that the estimators show: wrong clusters at full fidelity, no warning.

After jasp-desktop#403, recordlinkage#162, splink#2281, linopy#239, dataframe-api#12 and
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
from support.verdicts import BROKEN, RIGHT, Refused, Verdict, check, right

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.terms.terms import Layout
from coterie import CannotCluster, FederatedCoClustering, FederatedKMeans
from tests.protocols.attacks.honest_sessions import house_in, play

POINTS: dict[int, Verdict] = {0: RIGHT, 1: RIGHT}
"""By the number of three sites that write 9.370 for 9370: whether the clusters hold."""
STAND_INS: dict[str, Verdict] = {
    "P999": RIGHT,
    "unknown": RIGHT,
    "NA": RIGHT,
    "00000000": RIGHT,
}
"""By the id that two other people have at two parties: the first is their own."""
INDEX: dict[str, Verdict] = {
    "other order": RIGHT,
    "its name as the id": RIGHT,
    "a column": RIGHT,
    "a session": Refused(Problem.INVALID_DATA, "ids say which is which"),
}
"""By how two frames with the same index are joined: whether rows meet their own."""
UNITS: dict[float, Verdict] = {1: RIGHT, 100: RIGHT, 1e-6: RIGHT}
"""By a factor of the counts, of which ``r_max`` tells: whether co-clusters hold."""


def fitted(model: Any, tables: list[Any]) -> tuple[Any, list[str]]:
    """Return a fitted model, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(tables)
    return model, [str(each.message) for each in caught]


@pytest.mark.parametrize("n_sites", POINTS)
def test_one_site_that_writes_thousands_with_a_point_is_noticed(
    tmp_path: Path, n_sites: int
) -> None:
    rng = np.random.default_rng(0)
    groups = np.arange(90) % 3
    files = []
    for site in range(3):
        centres = np.array([900, 7000, 15_000])[groups]
        cells = (centres * rng.normal(1, 0.07, 90)).round().astype(int).astype(str)
        if site < n_sites:
            cells = np.array([f"{int(c):,}".replace(",", ".") for c in cells])
        fever = (366 + 13 * groups + 2.5 * rng.normal(size=90)).round().astype(int)
        table = pd.DataFrame({"temp": fever, "leuko": cells})
        files.append(tmp_path / f"site-{site}.csv")
        table.to_csv(files[-1], sep=";", index=False)
    model = FederatedKMeans(3, protocol="llf", layout="rows", random_state=0)
    try:
        model, _ = fitted(model, files)
    except CannotCluster as refused:
        check(right("thousands" in str(refused)), POINTS[n_sites])
        return
    worst = min(adjusted_rand_score(groups, labels) for labels in model.labels_)
    check(right(worst > 0.9), POINTS[n_sites])


@pytest.mark.parametrize("stand_in", STAND_INS)
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
    n_linked = {int((np.asarray(labels) >= 0).sum()) for labels in model.labels_}
    check(right(n_linked == {38}), STAND_INS[stand_in])


@pytest.mark.parametrize("case", INDEX)
def test_frames_are_joined_by_their_index_or_refused(tmp_path: Path, case: str) -> None:
    rng = np.random.default_rng(0)
    groups = np.arange(60) % 3
    centres = np.array([[0, 0, 0, 0], [6, 0, 6, 6], [0, 7, 6, -6]], float)
    X = centres[groups] + rng.normal(size=(60, 4))
    index = pd.Index([f"P{row:02}" for row in range(60)], name="pid")
    frame = pd.DataFrame(X, columns=list("abcd"), index=index)
    tables = [frame[["a", "b"]], frame[["c", "d"]].sample(frac=1, random_state=1)]
    if case == "a column":
        tables = [table.reset_index() for table in tables]

    def measure() -> str | CoterieError:
        if case == "a session":
            params = DataCollaboration(n_clusters=3, dimensions="all")
            with house_in(tmp_path) as house:
                outcome = play(house, "s", params, Layout.lattice(1, 2), tables)
            return outcome if isinstance(outcome, CoterieError) else BROKEN
        name = None if case == "other order" else "pid"
        model = FederatedKMeans(3, layout="columns", random_state=0, id_column=name)
        error: CannotCluster | None = None
        try:
            model, told = fitted(model, tables)
        except CannotCluster as caught:
            error = caught
        if error is not None:
            # a refusal is right where nothing names the rows
            assert error.problem in {Problem.INVALID_DATA, Problem.INVALID_PARAMETERS}
            assert "index" in str(error) or "'pid'" in str(error)
            return right(case == "other order")
        return right(adjusted_rand_score(groups, model.labels_[0]) > 0.9 or told)

    check(measure(), INDEX[case])


@pytest.mark.parametrize("factor", UNITS)
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
    check(right(score > 0.95 or told), UNITS[factor])

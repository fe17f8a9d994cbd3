"""Obstacles and faults that others reported, once parties meet in a session.

After recordlinkage#162, splink#2281, linopy#239, dataframe-api#12 and cgc#90.
"""

import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from support.analyst_process import House

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError, InvalidData
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.states import StopReason
from coterie import CannotCluster, FederatedCoClustering, FederatedKMeans, Party, Result
from coterie_pages.views.terms_sheet import sheet_of
from tests.protocols.attacks.honest_sessions import completed, house_in, numbers, play


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with house_in(tmp_path) as lent:
        yield lent


def people(
    n: int, columns: list[str], strangers: str, date: str, seed: int
) -> pd.DataFrame:
    """Return the same people at each party, and a namesake without a birth date."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"Vogt{row:02}", f"Anna{row % 7}", f"19{45 + row}-03-1{row % 9}")
        for row in range(n)
    ]
    rows += [(f"Unbekannt{strangers}{row}", "Max", date) for row in range(3)]
    rows.append(("Namesake", "Eva", date))
    table = pd.DataFrame(rows, columns=["surname", "given", "birth"])
    for name in columns:
        table[name] = rng.normal(10, 3, len(table)).round(2)
    return table


@pytest.mark.parametrize("date", ["", "1900-01-01"])
def test_a_date_for_none_links_no_namesakes(house: House, date: str) -> None:
    keys = ["given + surname + birth | date"]
    params = DataCollaboration(
        n_clusters=2,
        alignment={"method": "ecdh", "match_keys": keys, "minimum_share": 0.1},
        dimensions="all_but_one",
    )
    tables = [
        people(40, ["a", "b"], "X", date, 1),
        people(40, ["c", "d"], "Y", date, 2),
    ]
    results = completed(
        play(
            house,
            "s",
            params,
            Layout.lattice(1, 2),
            tables,
            ids=["surname", "given", "birth"],
        )
    )
    assert (results["r1c1"].labels >= 0).sum() == 40


def run_all(parties: list[Party], tables: list[pd.DataFrame]) -> list[Future[Result]]:
    """Run all parties at the same time, each to its end."""
    ids = ["surname", "given", "birth"]
    with ThreadPoolExecutor(len(parties)) as pool:
        return [
            pool.submit(party.run, table, id_column=ids)
            for party, table in zip(parties, tables, strict=True)
        ]


def test_the_coordinator_reads_which_guard_stopped_a_party(house: House) -> None:
    keys = ["given + surname + birth | date", "surname + birth | date"]
    params = DataCollaboration(
        n_clusters=2,
        alignment={"method": "ecdh", "match_keys": keys},
        dimensions="all_but_one",
    )
    session = house.open("s", params, Layout.lattice(1, 2))
    invitations = session.invite()
    guard = {"ids_per_row": 1}
    parties = [house.accept(session, invitations, s, **guard) for s in invitations]
    tables = [people(40, ["a", "b"], "X", "", 1), people(40, ["c", "d"], "Y", "", 2)]
    errors = [run.exception() for run in run_all(parties, tables)]
    stopped = 0
    for error in errors:
        assert isinstance(error, CoterieError), error
        stopped += error.problem is Problem.GUARD_REFUSED and "ids_per_row" in str(
            error
        )
    assert stopped
    status = session.status()
    held = [slot for slot in status.slots if slot.stopped is StopReason.HELD]
    assert len(held) == stopped
    assert all("held" in str(e) for e in errors if "ids_per_row" in str(e))
    parties = [
        house.accept(session, invitations, s, ids_per_row=2) for s in invitations
    ]
    for run in run_all(parties, tables):
        run.result()
    assert not any(slot.stopped for slot in session.status().slots)


@pytest.mark.parametrize("readers", ["members", "everybody"])
def test_who_learns_what_names_those_who_read_profiles(
    house: House, readers: str
) -> None:
    session = house.open(
        "s",
        LosslessFederated(n_clusters=3),
        Layout.lattice(3),
        dictionary=[numbers(["age", "bmi"], 0, 120)],
        release=Release(profiles=readers),
    )
    sheet = sheet_of(b"", session.terms, {})
    told: dict[str, Any] = {each.who.lower(): each.what for each in sheet.learns}
    assert {"analyst", "coordinator"} <= set(told), told
    for who in ("analyst", "coordinator"):
        assert ("profile" in told[who]) == (readers == "everybody")


# At full fidelity, and without a warning


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
    assert any("for a missing one" in each for each in told) == (stand_in != "P999")
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
    assert "ids identify these" in outcome.detail


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

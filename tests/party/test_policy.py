"""What a party agrees to: other parties' numbers of ids, and what people may lose."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.drawn_terms import drawn
from support.tables import blobs, parties

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.pqmds import Privacy, ProductQuantisation
from clustering_protocols.simulation import Session
from clustering_protocols.terms.schema import numbers
from clustering_protocols.terms.terms import Layout, Terms
from coterie import Policy
from party_sdk.disclosures.history import History
from party_sdk.disclosures.uses import Use

PSI = {"alignment": {"method": "ecdh"}}


def agreement(sizes: list[int], alignment: dict[str, Any]) -> bytes:
    split = parties(blobs(max(sizes), 2 * len(sizes)), [range(n) for n in sizes])
    params = ProductQuantisation.model_validate({"n_clusters": 2, **alignment})
    return Session(params, split.layout, split.data, seed=1, session="s").agreement


@pytest.mark.threat(98)
def test_a_row_group_may_bring_so_many_ids_for_each_row() -> None:
    content = agreement([40, 400], PSI)
    Policy().check_roster(content, "r1c1")
    Policy().check_roster(content, "r1c2")
    content = agreement([40, 30, 401], PSI)
    with pytest.raises(GuardRefused, match="'r1c3' may bring 401 ids for your 40 rows"):
        Policy().check_roster(content, "r1c1")
    with pytest.raises(
        GuardRefused, match=r"401 ids for your 30 rows.*--guard ids_per_row=13\.4"
    ):
        Policy().check_roster(content, "r1c2")
    Policy().check_roster(content, "r1c3")
    Policy(ids_per_row=13.4).check_roster(content, "r1c2")
    keys = {"method": "ecdh", "match_keys": ["name", "name | digits"]}
    content = agreement([35, 35], {"alignment": keys})
    Policy(ids_per_row=2).check_roster(content, "r1c1")
    with pytest.raises(GuardRefused, match="70 values of match keys for your 35 rows"):
        Policy(ids_per_row=1.9).check_roster(content, "r1c1")


def test_row_groups_may_differ_in_size_if_ids_stay_unused() -> None:
    split = parties(blobs(600, 4), [range(20), range(600)])
    params = DataCollaboration(n_clusters=2)
    layout = Layout.lattice(1, 2)
    agreed = Session(params, layout, split.data, seed=1, session="s").agreement
    Policy().check_roster(agreed, "r1c1")
    strict = replace(Policy(), ids_per_row=0.0)
    with pytest.raises(GuardRefused):
        strict.check_roster(agreement([20, 20], PSI), "r1c1")


def terms(params: Any) -> Terms:
    dictionary = (numbers("ab", 0.0, 1.0), numbers("cd", 0.0, 1.0))
    return drawn(params, Layout.lattice(1, 2), dictionary=dictionary)


def noisy(epsilon: float) -> ProductQuantisation:
    privacy = Privacy(mechanism="laplace", epsilon=epsilon)
    return ProductQuantisation(n_clusters=2, privacy=privacy)


NO_NOISE = "ε = inf, because answers carry no noise"


@pytest.mark.parametrize("name", ["epsilon_limit", "epsilon_total"])
@pytest.mark.parametrize(
    ("params", "fits", "limit", "why"),
    [
        (noisy(2.0), 2.0, 1.9, "ε = 2; '{}' is 1.9"),
        (ProductQuantisation(n_clusters=2), None, 1e9, NO_NOISE),
        (DataCollaboration(n_clusters=2), None, 1e9, NO_NOISE),
    ],
    ids=["noise", "no noise", "no noise in dc"],
)
def test_terms_may_cost_each_person_no_more_than_the_limit(
    params: Any, fits: float | None, limit: float, why: str, name: str
) -> None:
    asked = terms(params)
    risks = frozenset(asked.risks)
    Policy(accepted_risks=risks, **{name: fits}).check_terms(asked)
    with pytest.raises(GuardRefused, match=why.format(name)):
        Policy(accepted_risks=risks, **{name: limit}).check_terms(asked)


PEOPLE = np.random.default_rng(0).normal(size=(40, 2))


class Budgets:
    """Releases from one home, each session as after a new start."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def spend(
        self,
        session: str,
        epsilon: float,
        total: float | None = 1.0,
        rows: np.ndarray = PEOPLE,
        names: str = "ab",
    ) -> None:
        history = History(self.home)
        use = Use(session=session, slot="r1c1", epsilon=epsilon)
        marked = history.rows_of(MatrixSource(rows, columns=names))
        history.check(use, marked, Policy(epsilon_total=total))
        history.record(use, marked, Policy(epsilon_total=total))


@pytest.fixture
def budgets(tmp_path: Path) -> Budgets:
    return Budgets(tmp_path)


def test_privacy_losses_add_up_for_each_person(budgets: Budgets) -> None:
    for number in range(10):
        budgets.spend(f"s{number}", 0.1)
    with pytest.raises(GuardRefused, match=r"some of them 1\. 'epsilon_total' is 1"):
        budgets.spend("t", 0.01)
    budgets.spend("t", 1.0, rows=-PEOPLE)
    budgets.spend("u", 0.5, total=None)
    with pytest.raises(GuardRefused, match=r"some of them 1\.5"):
        budgets.spend("v", 0.01, total=1.5)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (PEOPLE[:, ::-1], "ba"),
        (PEOPLE, "xy"),
        (PEOPLE[1:], "ab"),
        (PEOPLE[:, :1], "c"),
        (np.column_stack([PEOPLE, PEOPLE[:, 0] ** 2]), "abc"),
        (np.vstack([PEOPLE[20:], PEOPLE + 9]), "ab"),
    ],
)
def test_a_budget_is_that_of_the_row_that_spent_most(
    budgets: Budgets, rows: np.ndarray, names: str
) -> None:
    budgets.spend("s", 0.6)
    with pytest.raises(GuardRefused, match=r"some of them 0\.6"):
        budgets.spend("t", 0.6, rows=rows, names=names)
    budgets.spend("t", 0.6, rows=PEOPLE + 5)


def test_one_release_is_counted_once_however_often_it_is_sent(budgets: Budgets) -> None:
    for _ in range(3):
        budgets.spend("s", 0.7)
    with pytest.raises(GuardRefused):
        budgets.spend("t", 0.7)


def test_after_a_release_without_noise_no_budget_is_left(budgets: Budgets) -> None:
    budgets.spend("s", math.inf, total=None)
    with pytest.raises(GuardRefused, match="some of them inf"):
        budgets.spend("t", 0.1, total=1e9)

"""What a party agrees to: other parties' numbers of ids, and what people may lose."""

import math
import tomllib
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.drawn_terms import drawn
from support.tables import blobs, parties
from support.terminal import RISK, Terminal, opened

from clustering_protocols.common.errors import GuardRefused, InvalidParameters
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.pqmds import Privacy, ProductQuantisation
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.simulation import Session
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.terms import Identities, Layout, Terms
from party_sdk.disclosures.history import History
from party_sdk.disclosures.uses import Use
from party_sdk.home.policy import Policy
from party_sdk.home.policy_files import parse_guards, policy_file, read_policy

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
    dictionary = (numeric_schema("ab", 0.0, 1.0), numeric_schema("cd", 0.0, 1.0))
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
    [(PEOPLE[1:, ::-1], "xy"), (np.vstack([PEOPLE[20:], PEOPLE + 9]), "ab")],
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


# The policy of a home: what people wrote in it, and what is remembered


WHOLE = """
# what the board has decided
accepted_risks = ["dummy.by-design"]  # on 3 May
protocols = ["dummy", "dc"]
coordinators = ["University"]
analysts = ["https://analyst.example"]
minimum_rows = 20
least_known = 1
ids_per_row = 3
intersections_limit = 2
epsilon_limit = 1.5
epsilon_total = 4
largest_weight = 2
sums_limit = 0.1
"""


def written(home: Path, text: str) -> Policy:
    policy_file(home).write_text(text)
    return read_policy(home)


def test_every_rule_of_a_policy_can_be_written_down(tmp_path: Path) -> None:
    policy = written(tmp_path, WHOLE)
    said = tomllib.loads(WHOLE)
    assert said.keys() == {field.name for field in fields(Policy)}
    for name, value in asdict(policy).items():
        assert value == (
            frozenset(said[name]) if isinstance(value, frozenset) else said[name]
        )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("minimum_rows = 2\nminimum_rows = = 3", "line 2"),
        ("minimum_row = 2", "'minimum_row' is not a policy key; did you mean 'minimum_rows'"),
        ("weather = 2", "known: accepted_risks, protocols"),
        ("minimum_rows = 2.5", "'minimum_rows' must be a whole number, 0 or more"),
        ("minimum_rows = true", "'minimum_rows' must be a whole number"),
        ("sums_limit = 1.1", "'sums_limit' must be a proportion, from 0 to 1"),
        ("epsilon_total = -1", "'epsilon_total' must be a number, 0 or more"),
        ('accepted_risks = "all"', "'accepted_risks' must be a list of texts"),
        ("accepted_risks = [1]", "'accepted_risks' must be a list of texts"),
        ("[[consents]]\nrisk = 'x'", "'consents' is not a policy key; known: accepted_"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_the_line_or_the_key(
    tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(InvalidParameters) as refused:
        written(tmp_path, text)
    assert told in refused.value.detail
    assert refused.value.detail.startswith("policy.toml: ")


def test_packages_of_protocols_are_no_guard() -> None:
    with pytest.raises(InvalidParameters, match=r"set it in policy\.toml"):
        parse_guards({"protocol_packages": ["other"]})


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    policy_file(tmp_path).write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidParameters, match="not text in UTF-8"):
        read_policy(tmp_path)


COORDINATOR = Institution("University", bytes(32))


def weighted(weight: float = 1.0) -> Terms:
    return drawn(
        DataCollaboration(n_clusters=2, dimensions="all_but_one"),
        Layout.lattice(1),
        dictionary=(numeric_schema(["x", "y"], -9, 9),),
        preparation=(Preparation(fields=(Treatment(name="x", weight=weight),)),),
        identities=Identities(coordinator=COORDINATOR.key),
    )


URL = "https://analyst.example"


@pytest.mark.parametrize("listed", ["University", COORDINATOR.key])
def test_a_coordinator_is_listed_by_card_name_or_by_key(listed: str) -> None:
    known = {"University": COORDINATOR.key}
    Policy(coordinators=frozenset({listed})).check_inviter(URL, COORDINATOR.key, known)
    Policy().check_inviter(URL, COORDINATOR.key, {})
    for others in (frozenset({"Clinic"}), frozenset[str]()):
        with pytest.raises(GuardRefused, match="'coordinators'"):
            Policy(coordinators=others).check_inviter(URL, COORDINATOR.key, known)


@pytest.mark.parametrize("listed", [URL, "HTTPS://Analyst.example:443/"])
def test_an_analyst_is_listed_by_its_address(listed: str) -> None:
    policy = Policy(analysts=frozenset({listed}))
    policy.check_inviter(URL, COORDINATOR.key, {})
    for other in ("https://analyst.example:8443", "http://analyst.example"):
        with pytest.raises(GuardRefused, match="'analysts'"):
            policy.check_inviter(other, COORDINATOR.key, {})


def test_a_name_that_nobody_vouches_for_does_not_count() -> None:
    with pytest.raises(GuardRefused, match="once its card is trusted"):
        Policy(coordinators=frozenset({"University"})).check_inviter(
            URL, COORDINATOR.key, {}
        )


def test_a_weight_above_the_largest_is_refused() -> None:
    accepted = frozenset(weighted().risks)
    policy = Policy(accepted_risks=accepted, largest_weight=3)
    policy.check_terms(weighted(3))
    with pytest.raises(
        GuardRefused, match=r"'x' the weight 3\.5.*; 'largest_weight' is 3"
    ):
        policy.check_terms(weighted(3.5))
    policy.check_terms(weighted(0.4))
    with pytest.raises(GuardRefused, match=r"'y' the weight 1, and another field 0\.2"):
        policy.check_terms(weighted(0.2))


def test_options_extend_the_policy_of_a_home(online: Terminal, rows: Path) -> None:
    _, invitation = opened(online)
    home = Path(online.environment["COTERIE_HOME"])
    policy_file(home).write_text(f'accepted_risks = ["{RISK}"]\nminimum_rows = 13\n')
    refused = online("party", "run", invitation, expect=3)
    assert "(house.open-slot)" in refused.stderr
    accepted = f'accepted_risks = ["{RISK}", "house.open-slot"]\n'
    policy_file(home).write_text(f"{accepted}minimum_rows = 13\nleast_known = 0\n")
    online("party", "run", invitation)
    run = ("party", "run", invitation, "--data", rows, "--id-column", "id")
    assert "'minimum_rows' is 13" in online(*run, expect=3).stderr
    assert "12 labels" in online(*run, "--guard", "minimum_rows=12").stdout

    _, other = opened(online)
    online("party", "run", other)
    policy_file(home).write_text('coordinators = ["University"]\n')
    _, third = opened(online)
    assert "'coordinators'" in online("party", "run", third, expect=3).stderr

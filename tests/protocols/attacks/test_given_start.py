"""A coordinator chooses the start so that one person is alone in a cluster."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import Params
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.mixture import Mixture
from clustering_protocols.terms.terms import Layout
from tests.protocols.attacks.honest_sessions import completed, house_in, numbers, play

LAYOUT = Layout.lattice(3)
START = ((-1_000.0, 8.0), (3_000.0, 8.0))  # half way lies between person and others
LLF = LosslessFederated(
    n_clusters=2, init="given", initial_centroids=START, publish="nothing"
)
MIXTURE = Mixture(
    n_clusters=2, init="given", initial_centroids=START, covariance_type="diag"
)


def wards(*, with_person: bool = True) -> list[pd.DataFrame]:
    rng = np.random.default_rng(5)
    tables = [
        pd.DataFrame({"born": rng.integers(0, 900, 40), "crp": rng.gamma(2, 4, 40)})
        for _ in LAYOUT.names
    ]
    if with_person:
        tables[1].loc[7, "born"] = 2_000
    return tables


@pytest.mark.threat(156)
@pytest.mark.parametrize("params", [LLF, MIXTURE], ids=["llf", "mixture"])
def test_a_home_asks_before_it_adds_up_one_person_whom_a_start_isolates(
    tmp_path: Path, params: Params
) -> None:
    schema = numbers(["born", "crp"], -5_000, 5_000, kind="number")
    with house_in(tmp_path) as house:
        outcome = play(house, "one", params, LAYOUT, wards(), dictionary=[schema])
        assert isinstance(outcome, GuardRefused)
        assert "near one of them you have a single row" in str(outcome)
        rules = {"r2c1": {"choices": {"allow_given_start": True}}}
        outcome = play(
            *(house, "two", params, LAYOUT, wards()), dictionary=[schema], rules=rules
        )
        completed(outcome)


def test_a_home_is_not_asked_about_a_start_near_which_it_has_many_rows_or_none(
    tmp_path: Path,
) -> None:
    schema = numbers(["born", "crp"], -5_000, 5_000, kind="number")
    tables = wards(with_person=False)
    with house_in(tmp_path) as house:
        completed(play(house, "one", LLF, LAYOUT, tables, dictionary=[schema]))

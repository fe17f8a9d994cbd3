"""A party whose numbers are in other units than those of the others is told so."""

from __future__ import annotations

import numpy as np
import pytest

from clustering_protocols import simulation
from clustering_protocols.data import MatrixSource
from clustering_protocols.errors import GuardRefused
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms import Layout


def session(
    n_parties: int, column: list[float], **choices: object
) -> simulation.Session:
    """Return a session in which the parties' third column is in these units."""
    rng = np.random.default_rng(0)
    layout = Layout.lattice(n_parties)
    data = {}
    for slot, unit in zip(layout.names, column, strict=True):
        X = rng.normal(70, 10, size=(40, 3))
        X[:, 2] *= unit
        data[slot] = MatrixSource(X, ["age", "pulse", "weight"])
    params = LosslessFederated(n_clusters=2, allow_two_parties=n_parties == 2)
    given = dict.fromkeys(layout.names, choices)
    return simulation.Session(params, layout, data, 1, choices=given)


@pytest.mark.parametrize(
    "units", [[1, 1, 1000], [1000, 1, 1000], [1, 1000], [1, 1, 1, 1, 1000]]
)
def test_grams_among_kilograms_stop_before_rows_are_used(units: list[float]) -> None:
    with pytest.raises(GuardRefused, match="other units"):
        session(len(units), units).to_the_end()


def test_who_knows_better_goes_on() -> None:
    ran = session(3, [1, 1, 1000], allow_other_units=True).to_the_end()
    assert all(len(outcome.labels) == 40 for outcome in ran.outcomes.values())


@pytest.mark.parametrize("units", [[1, 1, 1], [1, 2, 0.5], [1, 1], [0, 1, 1]])
def test_sites_that_differ_as_sites_do_are_let_be(units: list[float]) -> None:
    session(len(units), units).to_the_end()


def test_a_mean_near_zero_is_not_taken_for_another_unit() -> None:
    rng = np.random.default_rng(1)
    layout = Layout.lattice(3)
    data = {s: MatrixSource(rng.normal(0, 1, size=(500, 2))) for s in layout.names}
    params = LosslessFederated(n_clusters=2)
    simulation.Session(params, layout, data, 1).to_the_end()

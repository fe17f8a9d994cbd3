"""The exponent of fuzzy c-means that follows from the size of a table."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from clustering_protocols import simulation
from clustering_protocols.algorithms.fuzzy_cmeans import fuzzy_cmeans
from clustering_protocols.numerics.fuzziness import exponent_by_size
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.terms.terms import Layout


def test_the_exponent_is_that_of_the_equation_between_its_ends() -> None:
    n, d = 500, 12
    by_hand = (
        1
        + (1418 / n + 22.05) * d**-2
        + (12.33 / n + 0.243) * d ** (-0.0406 * np.log(n) - 0.1134)
    )
    assert exponent_by_size(n, d) == pytest.approx(by_hand, rel=1e-12)
    assert exponent_by_size(150, 2) == 2.0
    assert exponent_by_size(10_000, 500) == 1.1


def test_clusters_in_many_columns_stay_apart() -> None:
    X = StandardScaler().fit_transform(load_digits().data[:300])
    starts = pooled_objectives.draw_ten_starts(X, 10)
    assert fuzzy_cmeans(X, starts, 2.0, 300).n_coinciding > 1, "or X shows nothing"
    assert fuzzy_cmeans(X, starts, exponent_by_size(*X.shape), 300).n_coinciding == 0


@pytest.mark.parametrize("cells", [(3, 1), (1, 3)])
def test_a_session_settles_the_exponent_by_its_roster(cells: tuple[int, int]) -> None:
    X = np.random.default_rng(0).normal(size=(90, 12))
    X[:45] += 2
    params = LosslessFederated(
        n_clusters=2, algorithm="fuzzy_cmeans", small_cohorts="allow"
    )
    parts = simulation.split(X, Layout.lattice(*cells), 0)
    found = simulation.evaluate(params, X, parts, 0)
    assert found.simulated.trace.session.params.fuzzifier == exponent_by_size(90, 12)
    assert found.fidelity == 1.0

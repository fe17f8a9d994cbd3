"""Noise for differential privacy: its distribution, its loss, and the sums of budgets."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from support.tables import within

from clustering_protocols import simulation
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import PartyContext
from clustering_protocols.numerics.randomness import KeyedStream, derive_key
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.pqmds import (
    Privacy,
    ProductQuantisation,
    maths,
    release,
)
from clustering_protocols.secrecy import budget
from clustering_protocols.terms.terms import Layout

SENSITIVITY = 4
SURE = 1e-4  # how often a true bound may be missed
X = np.random.default_rng(0).normal(size=(200, 8)) + 6.0 * (
    np.arange(200)[:, np.newaxis] % 2
)
PARTS = simulation.split(X, Layout.lattice(1, 2), seed=1)
SAID = within(-5.0, 11.0, PARTS.data, PARTS.layout)


def stream(label: str) -> KeyedStream:
    return KeyedStream(derive_key(bytes(32), label))


@pytest.mark.parametrize("scale", [0.4, 1.7, 6.0])
def test_noise_has_the_probabilities_that_it_should(scale: float) -> None:
    found = budget.discrete_laplace(stream("probabilities"), scale, 100_000)
    support = np.arange(-400, 401)
    weights = np.exp(-np.abs(support) / scale)
    chances = weights / weights.sum()
    often = support[chances * len(found) > 20]
    counts = np.array([np.count_nonzero(found == x) for x in often])
    expected = chances[np.isin(support, often)] * len(found)
    rest = len(found) - counts.sum(), len(found) - expected.sum()
    test = stats.chisquare([*counts, rest[0]], [*expected, rest[1]])
    assert test.pvalue > SURE


def test_exponential_numbers_reach_far_into_the_tail() -> None:
    found = budget.exponential(stream("tail"), 1_000_000)
    assert stats.kstest(found, "expon").pvalue > SURE
    assert found.min() >= 0
    assert found.max() > 11


def test_a_number_alone_is_as_noisy_as_one_of_many() -> None:
    draw = budget.discrete_laplace
    alone = [draw(stream(f"alone {number}"), 1e6, 1).item() for number in range(200)]
    among = draw(stream("among"), 1e6, 200)
    assert stats.ks_2samp(alone, among).pvalue > SURE


def test_noise_is_at_least_a_twentieth_of_the_sensitivity() -> None:
    assert budget.noise_scale(1000, 1e6) == 50.0


def test_laplace_noise_is_no_larger_than_it_needs_to_be() -> None:
    scale = budget.noise_scale(1024, 0.01)
    assert scale == pytest.approx(102_400.0, rel=1e-6)


def test_a_missing_library_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(GuardRefused, match=r"pip install 'coterie\[dp\]'"):
        budget.noise_scale(SENSITIVITY, 0.02)


def simulate(privacy: Privacy) -> simulation.SimulationResult:
    params = ProductQuantisation(n_clusters=2, privacy=privacy)
    return simulation.run(params, PARTS.layout, PARTS.data, seed=1, dictionary=SAID)


def test_a_session_spends_its_budget_over_subspaces_and_parties() -> None:
    privacy = Privacy(mechanism="laplace", epsilon=50.0)
    run = simulate(privacy)
    seen = [replace(view(privacy), slot=slot) for slot in PARTS.layout.slots]
    assert sum(release.own_share(each, privacy) for each in seen) == 50.0
    report = run.outcomes["r1c1"].report
    assert report["  ε of a person, all parties"] == "50"
    assert report["  of this, spent by this party"] == "25"


def test_much_budget_changes_little_and_little_budget_hides() -> None:
    quiet = simulate(Privacy(mechanism="laplace", epsilon=1000.0))
    loud = simulate(Privacy(mechanism="laplace", epsilon=0.01))
    plain = simulate(Privacy())
    agreement = [
        adjusted_rand(plain.outcomes["r1c1"].labels, run.outcomes["r1c1"].labels)
        for run in (quiet, loud)
    ]
    # of eight seeds the median is 0.97, the worst 0.56; with ε 4000 they are 1.0 and 0.62
    assert agreement[0] > 0.95
    assert agreement[1] < 0.2
    assert "privacy" not in plain.outcomes["r1c1"].report


TWO = Privacy(mechanism="laplace", epsilon=2.0)


def view(privacy: Privacy = TWO, session: str = "s") -> PartyContext:
    """A party's view of a session of 2 + 2 codes."""
    params = ProductQuantisation(n_clusters=2, privacy=privacy)
    agreed = simulation.Session(
        params, PARTS.layout, PARTS.data, seed=1, session=session, dictionary=SAID
    )
    return replace(agreed.context("r1c1"), stage="upload", round=3)


ENCODED = maths.EncodedRows(
    codes=X[:, :2].copy(), sizes=np.array([9, 9]), bounds=np.array([[-5.0, 11.0]] * 2)
)


def test_another_attempt_releases_the_same_noise() -> None:
    first, again = view(), replace(view(), attempt=2)
    released = release.release(first, ENCODED)
    assert np.array_equal(released, release.release(again, ENCODED))
    assert not np.array_equal(released, ENCODED.codes)


def test_another_agreement_draws_other_noise() -> None:
    """At another scale the same noise would cancel: two equations, two unknowns."""
    other = view(TWO.model_copy(update={"epsilon": 4.0}))
    drawn = [
        release.release(replace(each, entropy=bytes(32)), ENCODED) - ENCODED.codes
        for each in (view(), other)
    ]
    assert abs(np.corrcoef(drawn[0].ravel(), drawn[1].ravel())[0, 1]) < 0.2

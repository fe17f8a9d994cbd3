"""Measures of agreement beside scikit-learn and beside every possible matching."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn import metrics as sk

from clustering_protocols.numerics import scores

Labels = list[int]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Labels, Labels]:
    """Draw classes and labels of some rows, of up to four numbers each."""
    size = draw(st.integers(1, 12))

    def side() -> Labels:
        largest = draw(st.integers(0, 3))
        numbers = st.integers(0, largest)
        return draw(st.lists(numbers, min_size=size, max_size=size))

    return side(), side()


def every_matching(truth: Labels, labels: Labels) -> list[tuple[Fraction, Fraction]]:
    """Return accuracy and kappa under each one-to-one renaming of the labels.

    Where there are more labels than classes, some stand for no class; where there are
    fewer, some classes have no label.
    """
    truth, labels = ([sorted(set(s)).index(x) for x in s] for s in (truth, labels))
    n, k = len(truth), 1 + max(*truth, *labels)
    found = []
    for renamed in permutations(range(k)):
        same = sum(t == renamed[x] for t, x in zip(truth, labels, strict=True))
        accuracy = Fraction(same, n)
        chance = sum(
            Fraction(truth.count(renamed[number]) * labels.count(number), n * n)
            for number in range(k)
        )
        kappa = (accuracy - chance) / (1 - chance) if chance < 1 else Fraction(1)
        found.append((accuracy, kappa))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_kappa_and_accuracy_are_maximal_over_all_matchings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(5))
    truth = rng.choice(5, size=40, p=shares).tolist()
    labels = rng.choice(5, size=40, p=rng.dirichlet(np.ones(5))).tolist()
    matchings = every_matching(truth, labels)
    accuracy = float(max(accuracy for accuracy, _ in matchings))
    kappa = float(max(kappa for _, kappa in matchings))
    names = [f"cluster {label}" for label in labels]  # any names will do
    assert scores.clustering_accuracy(truth, names) == pytest.approx(accuracy)
    assert scores.kappa(truth, names) == pytest.approx(kappa)


def test_kappa_and_accuracy_may_need_different_matchings() -> None:
    truth, labels = [1, 0, 1, 1, 0, 1, 2], [2, 1, 0, 0, 0, 0, 0]
    matchings = every_matching(truth, labels)
    most_accurate = max(matchings)
    assert most_accurate == (Fraction(4, 7), Fraction(5, 26))
    assert scores.clustering_accuracy(truth, labels) == pytest.approx(4 / 7)
    assert scores.kappa(truth, labels) == pytest.approx(5 / 19)


@given(pair=pairs())
def test_ari_and_nmi_are_those_of_scikit_learn(pair: tuple[Labels, Labels]) -> None:
    truth, labels = pair
    names = [f"cluster {label}" for label in labels]
    assert scores.adjusted_rand(truth, names) == sk.adjusted_rand_score(*pair)
    shared = sk.mutual_info_score(truth, labels)
    entropies = [sk.mutual_info_score(side, side) for side in pair]
    if min(entropies) > 1e-12:
        expected = shared / np.sqrt(np.prod(entropies))
        found = scores.normalized_mutual_information(truth, names)
        assert found == pytest.approx(expected, abs=1e-9)

"""Random streams are reproducible and have the promised distributions."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from clustering_protocols.numerics.randomness import KeyedStream, length_prefixed
from clustering_protocols.records.arrays import WordArray

KEY = bytes(range(32))


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_key_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        KeyedStream(bytes(size))


@given(
    one=st.lists(st.binary(max_size=12), max_size=4),
    other=st.lists(st.binary(max_size=12), max_size=4),
)
def test_two_lists_of_parts_never_give_the_same_bytes(
    one: list[bytes], other: list[bytes]
) -> None:
    assert (length_prefixed(*one) == length_prefixed(*other)) == (one == other)


@given(sizes=st.lists(st.integers(0, 40), max_size=8))
def test_a_stream_is_the_same_whatever_the_pieces(sizes: list[int]) -> None:
    stream = KeyedStream(KEY)
    pieces = b"".join(stream.take(size) for size in sizes)
    assert pieces == KeyedStream(KEY).take(sum(sizes))


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 2**11, 2**64 - 1])
def test_uniform_and_normal_numbers_stay_inside_for_every_word(word: int) -> None:
    class Fixed(KeyedStream):
        def words(self, size: int) -> WordArray:
            return np.full(size, word, np.uint64)

    assert 0.0 < Fixed(KEY).uniform(1)[0] < 1.0
    assert np.isfinite(Fixed(KEY).normal(1)[0])


def test_normal_numbers_are_normal() -> None:
    drawn = KeyedStream(KEY).normal(200, 250)
    assert stats.kstest(drawn.ravel(), "norm").pvalue > 0.01
    assert np.abs(np.corrcoef(drawn[:, :5].T) - np.eye(5)).max() < 0.25


def test_all_permutations_are_equally_likely() -> None:
    stream = KeyedStream(KEY)
    drawn = Counter(tuple(stream.permutation(4).tolist()) for _ in range(9600))
    assert drawn.keys() == set(itertools.permutations(range(4)))
    assert stats.chisquare(list(drawn.values())).pvalue > 0.01


def test_rotations_have_the_distribution_of_haar() -> None:
    stream = KeyedStream(KEY)
    drawn = np.array([stream.rotation(3) for _ in range(3000)])
    # Each entry of a uniform point on the sphere in three dimensions is uniform, and
    # so is each entry of a matrix whose distribution does not change when it is turned.
    fits = stats.kstest(drawn.reshape(3000, 9), stats.uniform(-1, 2).cdf, axis=0)
    assert fits.pvalue.min() > 0.001
    turned = np.trace(drawn @ np.diag([1.0, -1.0, 1.0]), axis1=1, axis2=2)
    traces = np.trace(drawn, axis1=1, axis2=2)
    assert stats.ks_2samp(turned, traces).pvalue > 0.01
    assert stats.binomtest(int((np.linalg.det(drawn) > 0).sum()), 3000).pvalue > 0.01

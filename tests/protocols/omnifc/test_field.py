"""The field, the code over it, and distances that equal plain integers exactly."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import chisquare
from support.repeats import thorough

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.protocols.omnifc import maths, units
from clustering_protocols.protocols.omnifc.maths import field_distances
from clustering_protocols.secrecy import field
from clustering_protocols.secrecy.prime import P
from tests.protocols.omnifc.shares import (
    answers,
    hidden,
    integer_distances,
    needed_answers,
    shares,
    stream,
)

EXTREMES = [0, 1, 2**30, 2**31 - 1, 2**31, 2**60, P - 2, P - 1]
residues = st.one_of(st.integers(0, P - 1), st.sampled_from(EXTREMES))


def words(*values: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.array(values, dtype=np.uint64)


@given(st.lists(st.tuples(residues, residues), min_size=1, max_size=20), residues)
def test_sums_differences_and_multiples_are_those_of_integers(
    pairs: list[tuple[int, int]], weight: int
) -> None:
    a, b = (words(*side) for side in zip(*pairs, strict=True))
    for operation, expected in (
        (lambda t: field.add(t, b), [(x + y) % P for x, y in pairs]),
        (lambda t: field.subtract(t, b), [(x - y) % P for x, y in pairs]),
        (
            lambda t: maths.add_combination(t, [weight], [b]),
            [(x + weight * y) % P for x, y in pairs],
        ),
    ):
        total = a.copy()
        operation(total)
        field.canonicalise(total)
        assert total.tolist() == expected


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_any_word_settles_to_its_residue(values: list[int]) -> None:
    total = words(*values)
    field.canonicalise(total)
    assert total.tolist() == [value % P for value in values]


@given(st.integers(1, 130), st.integers(1, 12))
def test_long_sums_of_the_largest_products_do_not_overflow(
    terms: int, length: int
) -> None:
    part = np.full(length, P - 1, dtype=np.uint64)
    total = maths.combine([P - 1] * terms, [part] * terms)
    assert total.tolist() == [terms % P] * length  # (p - 1)² = 1


def test_combinations_longer_than_a_block_have_no_seam() -> None:
    size = field.BLOCK + 5
    parts = [field.draw_residues(stream(k), size) for k in range(3)]
    weights = [1, P - 1, 12345]
    total = maths.combine(weights, parts)
    for at in (0, field.BLOCK - 1, field.BLOCK, size - 1):
        terms = (w * int(part[at]) for w, part in zip(weights, parts, strict=True))
        assert total[at] == sum(terms) % P


def test_draws_are_uniform() -> None:
    drawn = field.draw_residues(stream(1), 200_000)
    assert drawn.max() < P
    for shift in (0, 30, 57):  # lowest, middle, highest bits
        counts = np.bincount(((drawn >> np.uint64(shift)) & np.uint64(15)).astype(int))
        assert chisquare(counts).pvalue > 1e-3


@pytest.mark.threat(84)
@pytest.mark.parametrize("segments", range(1, 5))
@pytest.mark.parametrize("noise", range(1, 4))
def test_no_share_point_is_a_data_point(segments: int, noise: int) -> None:
    parties = needed_answers(segments, noise) + 3
    data = maths.data_points(segments + noise)
    shared = maths.share_points(parties)
    assert len({*data, *shared}) == segments + noise + parties


@given(st.data())
def test_decoding_weights_recover_the_sum_over_data_points(data: st.DataObject) -> None:
    segments, noise = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    needed = needed_answers(segments, noise)
    parties = data.draw(st.integers(needed, needed + 3))
    points = data.draw(st.permutations(maths.share_points(parties)))
    used = points[: data.draw(st.integers(needed, parties))]
    polynomial = data.draw(st.lists(residues, min_size=needed, max_size=needed))

    def value(at: int) -> int:
        return sum(c * pow(at, power, P) for power, c in enumerate(polynomial)) % P

    weights = maths.build_decoding_weights(segments, used)
    found = sum(w * value(x) for w, x in zip(weights, used, strict=True)) % P
    assert found == sum(map(value, maths.data_points(segments))) % P
    for row in maths.build_checks(used, needed):
        assert sum(w * value(x) for w, x in zip(row, used, strict=True)) % P == 0


def drawn(n: int, width: int) -> Any:
    return field.draw_residues(stream(width), n * width).reshape(n, width)


@given(
    hnp.arrays(
        np.uint64,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12),
        elements=residues,
    )
)
@example(drawn(300, 3)).via("several tiles")
@example(drawn(257, 8)).via("several tiles")
@example(drawn(17, 70)).via("several passes")
def test_field_distances_are_integer_distances_mod_p(Z: Any) -> None:
    expected = [value % P for value in integer_distances(Z)]
    assert field_distances(Z).tolist() == expected


@st.composite
def coded(draw: st.DrawFn) -> tuple[Any, int, int, int]:
    segments, noise = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    parties = needed_answers(segments, noise) + draw(st.integers(0, 3))
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 9))
    bits = draw(st.integers(0, units.largest_bits(np.ones(d))))
    X = draw(hnp.arrays(np.float64, (n, d), elements=st.floats(0, 1)))
    return maths.quantise(X, bits), segments, noise, parties


def corner(rows: Any, segments: int) -> tuple[Any, int, int, int]:
    rows, noise = np.array(rows, dtype=np.uint64), 1
    return rows, segments, noise, needed_answers(segments, noise)


@given(coded())
@example(corner([[7, 7, 7]], 1))
@example(corner([[7, 7, 7]] * 4, 2)).via("equal rows")
@example(corner(np.arange(8).reshape(4, 2), 3)).via("fewer features than segments")
@example(corner([[0] * 4, [2**29 - 2] * 4], 1)).via("close to p")
@example(corner([[0], [1518500248]], 1)).via("the largest square below p")
@settings(max_examples=thorough(ci=60, nightly=1000))
def test_decoded_distances_equal_integer_arithmetic(
    case: tuple[Any, int, int, int],
) -> None:
    rows, segments, noise, parties = case
    expected = integer_distances(rows)
    plain = answers(shares(rows, segments, noise, parties, stream(2)))
    masked = hidden(plain, segments)
    assert maths.combine([1] * parties, masked).tolist() == expected
    needed = needed_answers(segments, noise)
    points = maths.share_points(parties)
    for used in list(combinations(range(parties), needed))[:20]:
        weights = maths.build_decoding_weights(segments, [points[j] for j in used])
        decoded = maths.combine(weights, [plain[j] for j in used])
        assert decoded.tolist() == expected


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_the_largest_bits_leave_no_distance_to_wrap_around(
    ranges: list[float], random: Any
) -> None:
    R = np.array(ranges)
    bits = units.largest_bits(R)
    X = np.array([[random.random() * r for r in R], np.zeros_like(R), R])
    if bits >= 0:
        assert max(integer_distances(maths.quantise(X, bits))) < P
    if bits < 25:  # one more may wrap around
        steps = sum((int(r * 2.0 ** (bits + 1)) + 2) ** 2 for r in R)
        assert steps >= P


def test_bits_that_do_not_fit_are_refused_with_those_that_do() -> None:
    ranges = np.full(16, 100.0)
    most = units.largest_bits(ranges)
    assert units.bits_for(None, ranges) == most
    assert units.bits_for(3, ranges) == 3
    with pytest.raises(InvalidParameters, match=f"at most {most}"):
        units.bits_for(most + 1, ranges)
    with pytest.raises(InvalidParameters, match="too wide"):
        units.bits_for(None, np.array([1e10]))

"""Masked sums: real numbers in a ring, streams that cancel, tags, and what a sum shows."""

import re
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import kstest
from support.attacks import looks_like_noise

import clustering_protocols
from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import PartyContext
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy import tags
from clustering_protocols.secrecy.fixed_point import (
    _ROUNDINGS,
    EXACT_BITS,
    RING_BITS,
    FixedPoint,
)
from clustering_protocols.secrecy.masks import add_all, add_stream, add_tagged_shares
from clustering_protocols.shared_stages.masked_sums import (
    CheckedSum,
    MaskedSum,
    mask_share,
)
from clustering_protocols.shared_stages.secrets import ColumnSecret
from tests.unit.secrecy.crowds import told_otherwise, views

TOP, BOTTOM = 2**62 - 1, -(2**62)


def masked(
    crowd: dict[str, PartyContext],
    shares: dict[str, WordArray],
    name: str = "a",
) -> dict[str, WordArray]:
    sent = {}
    for slot, view in crowd.items():
        of = MaskedSum.from_context(view, list(crowd), name)
        sent[slot] = shares[slot].copy()
        mask_share(view, sent[slot], of, minimum_members=min(3, len(crowd)))
    return sent


def words_of(integers: Any) -> WordArray:
    return np.asarray(integers, dtype=np.int64).view(np.uint64)


# Known answers


@pytest.mark.threat(73)
def test_a_mask_does_not_depend_on_the_size_of_its_pieces() -> None:
    """Threat test 73: more words than one piece holds, in an array of any shape."""
    shape = (3, (1 << 15) + 17)
    drawn = KeyedStream(bytes(32)).words(shape[0] * shape[1])
    for sign, expected in ((1, drawn), (-1, np.zeros_like(drawn) - drawn)):
        words = np.zeros(shape, dtype=np.uint64)
        add_stream(words, KeyedStream(bytes(32)), sign)
        assert np.array_equal(words.ravel(), expected)


# Sums


@pytest.mark.parametrize("n", [*range(2, 8), 17, 32])
@pytest.mark.threat(74)
def test_the_largest_sums_in_the_ring_are_exact(n: int) -> None:
    """Threat test 74: one share at each end of the ring, the others at the other."""
    crowd = views(n)
    first, *others = crowd
    ends = np.array([TOP, BOTTOM, TOP, BOTTOM, 0, -1])
    far = {slot: words_of(-ends // (n - 1)) for slot in others}
    shares = {first: words_of(ends)} | far
    total = add_all(masked(crowd, shares).values())
    plain = ends.astype(object) + (n - 1) * (-ends // (n - 1)).astype(object)
    assert total.view(np.int64).tolist() == plain.tolist()


# What one upload shows


@pytest.mark.threat(75)
def test_an_upload_of_zeros_is_noise() -> None:
    """Threat test 75: for the leader, one in the middle and the last."""
    crowd = views(3)
    zeros = {slot: np.zeros(100_000, dtype=np.uint64) for slot in crowd}
    for words in masked(crowd, zeros).values():
        looks_like_noise(words)


def test_the_statistics_of_noise_would_find_a_plain_upload() -> None:
    plain = words_of(np.random.default_rng(0).integers(-(2**50), 2**50, 100_000))
    with pytest.raises(AssertionError):
        looks_like_noise(plain)
    repeated = np.tile(KeyedStream(bytes(32)).words(1000), 100)
    with pytest.raises(AssertionError):
        looks_like_noise(repeated)


@pytest.mark.parametrize(
    "other",
    [{"round": 4}, {"attempt": 2}, {"stage": "later"}, {"session": "t"}, {"name": "b"}],
)
@pytest.mark.threat(76)
def test_the_same_data_are_never_masked_alike(other: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    data = words_of(rng.integers(BOTTOM, TOP, 100_000))
    name = other.pop("name", "a")
    here, there = views(3), views(3, **other)
    same = dict.fromkeys(here, data)
    before = masked(here, same)["r2c1"]
    after = masked(there, same, name)["r2c1"]
    assert not (before == after).any()
    assert not np.intersect1d(before, after).size
    x, y = (a.view(np.int64).astype(np.float64) for a in (before, after))
    assert abs(np.corrcoef(x, y)[0, 1]) < 0.01


@pytest.mark.threat(78)
def test_the_sum_of_all_but_one_is_noise() -> None:
    """Threat test 78: without a blind addend, for each of the members."""
    crowd = views(4)
    zeros = {slot: np.zeros(100_000, dtype=np.uint64) for slot in crowd}
    sent = masked(crowd, zeros)
    for missing in crowd:
        looks_like_noise(add_all(w for slot, w in sent.items() if slot != missing))


# Contexts


@pytest.mark.threat(77)
def test_no_two_contexts_draw_the_same_stream() -> None:
    """Threat test 77: transcripts, names and members."""
    view = views(5)["r1c1"]
    slots = view.session.slots
    groups = [slots, slots[:4], slots[1:]]
    sums = [
        MaskedSum(members=tuple(members), name=name, transcript=told)
        for members in groups
        for name in ("a", "b", "ab", "c", "bc", "", "1", "abc", "ac", "0", "11", "aa")
        for told in (
            sha256(bytes([n // 256, n % 256])).hexdigest() for n in range(1500)
        )
    ]
    assert len({of.label for of in sums}) == len(sums) == 54_000
    some = sums[:: len(sums) // 50]
    drawn = {
        stream.take(8)
        for of in some
        for where in (view, told_otherwise(view))
        for _, stream in where.pairwise_streams(slots, "coterie/mask/2", of.label)
    }
    assert len(drawn) == 4 * len(some) * 2


FORBIDDEN = re.compile(
    r"np\.random|numpy\.random|^\s*(import|from) (random|secrets)\b|\brandom\."
    r"|RandomState|PCG64|MT19937|default_rng|\bseed\s*="
)


def lines_that_draw(folder: str) -> Iterator[str]:
    for path in sorted((Path(clustering_protocols.__path__[0]) / folder).rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if FORBIDDEN.search(line):
                yield f"{path.name}:{number}: {line.strip()}"


@pytest.mark.parametrize("folder", ["secrecy", "shared_stages"])
@pytest.mark.threat(77)
def test_secrets_come_only_from_cryptographic_generators(folder: str) -> None:
    """Threat test 77: the static part."""
    assert list(lines_that_draw(folder)) == []


# Fixed point


@pytest.mark.parametrize("total_bits", [RING_BITS, EXACT_BITS])
@pytest.mark.parametrize("bound", [1.0, 0.3, 1e-280, 2.0**40, 1e300, 1000.0])
@pytest.mark.threat(79)
def test_the_encoder_raises_above_its_bound_and_never_wraps(
    bound: float, total_bits: int
) -> None:
    """Threat test 79: the declared slack for roundings is all that goes over it."""
    code = FixedPoint.of(bound, total_bits)
    limit = float(bound * code.unit)
    assert limit <= 2.0**total_bits
    allowed = limit + _ROUNDINGS
    assert allowed < 2.0**63
    above = np.nextafter(allowed, np.inf) if allowed >= 2.0**53 else allowed + 1
    for sign in (1.0, -1.0):
        inside = code.encode_units(np.array([sign * np.floor(allowed)]))
        assert np.sign(inside.view(np.int64)[0]) == sign
        with pytest.raises(GuardRefused, match="1 numbers exceed"):
            code.encode_units(np.array([0.0, sign * above]))
    for wild in (np.inf, -np.inf, np.nan, 2.0**63, 2.0**64, -(2.0**63)):
        with pytest.raises(GuardRefused):
            code.encode_units(np.array([wild]))


def test_a_refusal_names_no_number() -> None:
    with pytest.raises(GuardRefused) as refused:
        FixedPoint.of(1.0).encode(np.array([123.456, 0.5, -789.0]))
    assert "2 numbers" in refused.value.detail
    assert not {"123", "789", "456"} & set(re.findall(r"\d+", str(refused.value)))


@given(
    x=st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=20),
    exponent=st.integers(-200, 200),
)
def test_what_is_encoded_comes_back_to_half_a_unit(
    x: list[float], exponent: int
) -> None:
    numbers = np.array(x) * 2.0**exponent
    code = FixedPoint.of(2.0**exponent)
    back = code.decode(code.encode(numbers))
    # half a unit is 2^-(RING_BITS - 1) of the bound; float64 is coarser near the bound
    half = 2.0 ** (exponent - RING_BITS + 1)
    np.testing.assert_allclose(back, numbers, rtol=2**-52, atol=half)


def test_each_item_may_have_a_bound_of_its_own() -> None:
    code = FixedPoint.of(np.array([1e-3, 1e6]))
    x = np.array([[9e-4, -9e5], [-1e-3, 1e6]])
    np.testing.assert_allclose(code.decode(code.encode(x)), x, rtol=1e-14)
    with pytest.raises(GuardRefused, match="1 numbers"):
        code.encode(np.array([[1e6, 1e6]]))


def test_noise_does_not_fit() -> None:
    noise = KeyedStream(bytes(32)).words(20)
    largest = np.array([100, -100], dtype=np.int64).view(np.uint64)
    exact = FixedPoint(bound=np.array(100.0 - _ROUNDINGS), unit=np.array(1.0))
    assert exact.fits(largest)
    assert not FixedPoint.of(1.0, EXACT_BITS).fits(noise)
    assert not FixedPoint(bound=np.array(100.0), unit=np.array(1.0)).fits(noise)
    assert FixedPoint.of(1.0).fits(FixedPoint.of(1.0).encode(np.array([1.0, -1.0])))


@pytest.mark.parametrize("sign", [1, -1])
def test_rounding_two_million_rows_up_stays_within_the_bound(sign: int) -> None:
    """Half a unit each; anything beyond is no rounding."""
    code = FixedPoint.of(1.0, EXACT_BITS)
    largest = int(code.unit) + 2**21 // 2
    assert code.fits(words_of([sign * largest]))
    assert code.encode_units(np.array([sign * float(largest)])).size == 1
    assert not code.fits(words_of([sign * (largest + 1)]))
    with pytest.raises(GuardRefused):
        code.encode_units(np.array([sign * (largest + 1.0)]))


# Members


@pytest.mark.parametrize(
    ("members", "least", "why"),
    [
        (["r1c1", "r3c1", "r4c1"], 3, "list of members is wrong"),  # without itself
        (["r2c1", "r1c1", "r3c1"], 3, "list of members is wrong"),
        (["r1c1", "r2c1", "r3c1", "r9c1"], 3, "list of members is wrong"),
        (["r1c1", "r2c1", "r2c1", "r3c1"], 3, "list of members is wrong"),
        ([], 3, "list of members is wrong"),
        (["r1c1", "r2c1"], 3, "requires 3"),
        (["r2c1"], 2, "requires 2"),
        (["r1c1", "r2c1", "r3c1"], 4, "requires 4"),
    ],
)
def test_wrong_or_too_few_members_are_refused(
    members: list[str], least: int, why: str
) -> None:
    view, words = views(4)["r2c1"], np.zeros(3, dtype=np.uint64)
    of_sum = MaskedSum.from_context(view, members, "a")
    with pytest.raises(GuardRefused, match=why):
        mask_share(view, words, of_sum, minimum_members=least)
    assert not words.any(), "a refusal leaves the share as it was"


def test_a_total_is_noise_where_one_was_told_something_else() -> None:
    """An analyst that sends parties different centroids reads only noise from the sum."""
    crowd = views(3)
    crowd["r2c1"] = told_otherwise(crowd["r2c1"])
    sent = []
    for view in crowd.values():
        words = np.zeros(100_000, dtype=np.uint64)
        mask_share(view, words, MaskedSum.from_context(view, list(crowd), "a"))
        sent.append(words)
    looks_like_noise(add_all(sent))


P = 2**61 - 1
KEY = bytes(range(32))
SUM = CheckedSum(scope="column")

Crowd = dict[str, PartyContext]


def in_range(words: WordArray) -> bool:
    return bool((np.abs(words.view(np.int64).astype(float)) <= 2**RING_BITS).all())


def of(crowd: Crowd, name: str = "a") -> MaskedSum:
    return MaskedSum.from_context(next(iter(crowd.values())), list(crowd), name)


def total_of(crowd: Crowd, given: dict[str, Any]) -> WordArray:
    return add_tagged_shares(
        SUM.mask(view, words_of(given[slot]), of(crowd)) for slot, view in crowd.items()
    )


def assert_all_read(crowd: Crowd, total: WordArray, expected: Any) -> None:
    for view in crowd.values():
        words = SUM.unmask(view, total, of(crowd), in_range)
        assert np.array_equal(words.view(np.int64), expected)


def is_refused(crowd: Crowd, total: WordArray) -> bool:
    """Return whether every member refuses a total, all with one text."""
    texts = set()
    for view in crowd.values():
        with pytest.raises(ProtocolFailed) as error:
            SUM.unmask(view, total, of(crowd), in_range)
        texts.add(str(error.value))
    return len(texts) == 1


def numbers(seed: int, n: int, size: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        f"r{i + 1}c1": rng.integers(-(2**RING_BITS) // n, 2**RING_BITS // n, size)
        for i in range(n)
    }


# The tag itself, beside integers of any length


@given(st.lists(st.tuples(*[st.integers(-(2**58), 2**58)] * 2), min_size=1))
def test_tags_add_up_as_the_elements_do(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(each) for each in zip(*pairs, strict=True))
    one, other, both = (
        tags.compute_tag(words_of(v), KeyedStream(KEY)) for v in (x, y, x + y)
    )
    assert both == (one + other) % P


# Sums


@pytest.mark.parametrize(("n", "size"), [(3, 1), (4, 100_000), (8, 40)])
def test_every_member_reads_the_sum_and_the_analyst_does_not(n: int, size: int) -> None:
    crowd, given = views(n), numbers(n, n, size)
    total, expected = total_of(crowd, given), sum(given.values())
    assert not (total[:-1].view(np.int64) == expected).any()
    if size == 100_000:
        looks_like_noise(total[:-1])
    assert_all_read(crowd, total, expected)


def test_the_first_member_leads_also_without_the_first_slot() -> None:
    crowd, given = views(4), numbers(1, 4, 9)
    del crowd["r1c1"], given["r1c1"]
    assert_all_read(crowd, total_of(crowd, given), sum(given.values()))


@pytest.mark.parametrize("end", [2**RING_BITS, -(2**RING_BITS)])
def test_the_largest_sum_is_read(end: int) -> None:
    crowd = views(3)
    first, *others = crowd
    total = total_of(crowd, {first: [end, 1]} | {slot: [0, 1] for slot in others})
    assert_all_read(crowd, total, [end, 3])


@pytest.mark.parametrize(
    "added", [1, -1, 2**40, 2**61, 2**62, 2**63, P, -P, 2 * P, 3 * P, 2**64 - P]
)
@pytest.mark.parametrize("place", [0, 1024, 1499])
def test_a_number_that_is_added_to_a_total_is_noticed(added: int, place: int) -> None:
    """The prime too: within their range no two sums are equal modulo it."""
    crowd = views(3)
    total = total_of(crowd, numbers(1, 3, 1500))
    total[[place]] += np.array([added % 2**64], dtype=np.uint64)
    assert is_refused(crowd, total)


@pytest.mark.parametrize("slot", ["r1c1", "r2c1"], ids=["leader", "member"])
def test_what_a_party_sends_is_noise_tag_and_all(slot: str) -> None:
    crowd, zeros = views(3), np.zeros(9, dtype=np.uint64)
    shares = np.concatenate(
        [
            SUM.mask(crowd[slot], zeros, of(crowd, f"sum-{number}"))
            for number in range(2000)
        ]
    )
    looks_like_noise(shares.reshape(-1, 10)[:, :9].reshape(-1))
    drawn = shares.reshape(-1, 10)[:, 9] / P
    assert kstest(drawn, "uniform").pvalue > 1e-6


def test_without_the_groups_secret_nothing_can_be_read() -> None:
    crowd = views(3)
    total = total_of(crowd, numbers(1, 3, 4))
    foreign = Memory().remember([ColumnSecret(secret="ab" * 32)])
    assert is_refused({s: replace(v, memory=foreign) for s, v in crowd.items()}, total)

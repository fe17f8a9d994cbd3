"""Checked sums: what was added to a total, or taken off it, does not pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import kstest
from support.attacks import looks_like_noise

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import PartyContext
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy import field as residues, tags
from clustering_protocols.secrecy.fixed_point import RING_BITS
from clustering_protocols.secrecy.masks import add_tagged
from clustering_protocols.shared_stages.masked_sums import CheckedSum, MaskedSum
from clustering_protocols.shared_stages.secrets import ColumnSecret
from tests.unit.secrecy.crowds import views

P = 2**61 - 1
KEY = bytes(range(32))
SUM = CheckedSum(scope="column")
TOP = 2**RING_BITS

Crowd = dict[str, PartyContext]


def words_of(integers: Any) -> WordArray:
    return np.asarray(integers, dtype=np.int64).view(np.uint64)


def in_range(words: WordArray) -> bool:
    return bool((np.abs(words.view(np.int64).astype(float)) <= TOP).all())


def of(crowd: Crowd, name: str = "a") -> MaskedSum:
    return MaskedSum.from_context(next(iter(crowd.values())), list(crowd), name)


def sent(crowd: Crowd, given: dict[str, Any]) -> WordArray:
    """Return the total of what each party sends."""
    return add_tagged(
        SUM.share(view, words_of(given[slot]), of(crowd))
        for slot, view in crowd.items()
    )


def read_all(crowd: Crowd, total: WordArray) -> list[WordArray]:
    return [SUM.read(view, total, of(crowd), in_range) for view in crowd.values()]


def refused(crowd: Crowd, total: WordArray) -> bool:
    """Return whether every member refuses a total, all with one text."""
    texts = set()
    for view in crowd.values():
        with pytest.raises(ProtocolFailed) as error:
            SUM.read(view, total, of(crowd), in_range)
        texts.add(str(error.value))
    return len(texts) == 1


def numbers(seed: int, n: int, size: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {f"r{i + 1}c1": rng.integers(-TOP // n, TOP // n, size) for i in range(n)}


# The tag itself, beside integers of any length


@pytest.mark.parametrize("size", [1, 2, 1023, 1024, 1025, 5000])
def test_a_tag_is_the_weighted_sum_over_the_integers(size: int) -> None:
    x = np.random.default_rng(size).integers(-(2**60), 2**60, size)
    stream = KeyedStream(KEY)
    a, (b,) = residues.draw(stream, 1024).tolist(), residues.draw(stream, 1).tolist()
    weighted = (int(v) * a[j % 1024] * b ** (j // 1024) for j, v in enumerate(x))
    assert tags.tag(words_of(x), KeyedStream(KEY)) == sum(weighted) % P


@given(st.lists(st.tuples(*[st.integers(-(2**58), 2**58)] * 2), min_size=1))
def test_tags_add_up_as_the_elements_do(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(each) for each in zip(*pairs, strict=True))
    one, other, both = (tags.tag(words_of(v), KeyedStream(KEY)) for v in (x, y, x + y))
    assert both == (one + other) % P


# Sums


@pytest.mark.parametrize(("n", "size"), [(3, 1), (3, 1500), (8, 40)])
def test_every_member_reads_the_sum(n: int, size: int) -> None:
    crowd, given = views(n), numbers(n, n, size)
    total = sent(crowd, given)
    expected = sum(given.values())
    for words in read_all(crowd, total):
        assert np.array_equal(words.view(np.int64), expected)


def test_a_sum_is_hidden_from_the_analyst_by_default() -> None:
    crowd, given = views(3), numbers(3, 3, 50)
    total, expected = sent(crowd, given), sum(given.values())
    assert not (total[:-1].view(np.int64) == expected).any()
    for words in read_all(crowd, total):
        assert np.array_equal(words.view(np.int64), expected)


@pytest.mark.parametrize("end", [TOP, -TOP])
def test_the_largest_sum_is_read(end: int) -> None:
    crowd = views(3)
    first, *others = crowd
    total = sent(crowd, {first: [end, 1]} | {slot: [0, 1] for slot in others})
    for words in read_all(crowd, total):
        assert words.view(np.int64).tolist() == [end, 3]


@pytest.mark.parametrize(
    "added", [1, -1, 2**40, 2**61, 2**62, 2**63, P, -P, 2 * P, 3 * P, 2**64 - P]
)
@pytest.mark.parametrize("place", [0, 1024, 1499])
def test_a_number_that_is_added_to_a_total_is_noticed(added: int, place: int) -> None:
    """The prime too: within their range no two sums are equal modulo it."""
    crowd = views(3)
    total = sent(crowd, numbers(1, 3, 1500))
    total[[place]] += np.array([added % 2**64], dtype=np.uint64)
    assert refused(crowd, total)


def test_two_numbers_that_cancel_are_noticed() -> None:
    crowd = views(3)
    total = sent(crowd, numbers(1, 3, 2000))
    total[[3, 3 + 1024]] += words_of([5, -5])
    assert refused(crowd, total)


@pytest.mark.parametrize("tag", [0, 1, P, 2**64 - 1])
def test_another_tag_is_noticed(tag: int) -> None:
    crowd = views(3)
    total = sent(crowd, numbers(1, 3, 4))
    total[-1] = tag
    assert refused(crowd, total)


def test_a_share_that_is_left_out_or_counted_twice_is_noticed() -> None:
    crowd, given = views(4), numbers(1, 4, 4)
    shares = [
        SUM.share(view, words_of(given[slot]), of(crowd))
        for slot, view in crowd.items()
    ]
    assert refused(crowd, add_tagged(shares[1:]))
    assert refused(crowd, add_tagged([*shares, shares[0]]))


@pytest.mark.parametrize("where", [{"round": 4}, {"attempt": 2}, {"stage": "another"}])
def test_the_total_of_another_sum_is_noticed(where: dict[str, Any]) -> None:
    assert refused(views(3), sent(views(3, **where), numbers(1, 3, 4)))


def test_a_total_of_nothing_is_noticed() -> None:
    """Zeros fit any range; their tag is hidden, so nobody can guess it."""
    assert refused(views(3), np.zeros(5, dtype=np.uint64))


def test_what_a_party_sends_is_noise_tag_and_all() -> None:
    crowd = views(3)
    shares = np.concatenate(
        [
            SUM.share(
                crowd["r2c1"],
                np.zeros(9, dtype=np.uint64),
                of(crowd, f"sum-{number}"),
            )
            for number in range(2000)
        ]
    )
    looks_like_noise(shares.reshape(-1, 10)[:, :9].reshape(-1))
    drawn = shares.reshape(-1, 10)[:, 9] / P
    assert kstest(drawn, "uniform").pvalue > 1e-6


def test_without_the_groups_secret_nothing_can_be_read() -> None:
    crowd = views(3)
    total = sent(crowd, numbers(1, 3, 4))
    foreign = Memory().remember([ColumnSecret(secret="ab" * 32)])
    assert refused({s: replace(v, memory=foreign) for s, v in crowd.items()}, total)


def test_too_few_members_are_refused() -> None:
    crowd = views(2)
    with pytest.raises(GuardRefused):
        SUM.share(crowd["r1c1"], words_of([1]), of(crowd))

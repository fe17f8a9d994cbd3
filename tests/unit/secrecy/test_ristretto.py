"""Masks of several parties: one value in any order, and nothing else to be had."""

import sys

import numpy as np
import pytest

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.secrecy import ristretto
from clustering_protocols.secrecy.ristretto import RistrettoKey, hash_values

HERE, THERE = b"this session", b"another session"
VALUES = [b"ada", b"bob", b"cyd"]


def stream(number: int) -> KeyedStream:
    return KeyedStream(bytes([number]) * 32)


def test_a_value_is_the_same_whoever_masks_first() -> None:
    one, other = RistrettoKey(stream(1)), RistrettoKey(stream(2))
    masked = one.evaluate(hash_values(VALUES, HERE, stream(9)))
    assert masked.shape == (3, ristretto.N_BYTES)
    again = other.evaluate(hash_values(VALUES, HERE, stream(8)))
    assert one.multiply(again).tolist() == other.multiply(masked).tolist()
    elsewhere = one.evaluate(hash_values(VALUES, THERE, stream(9)))
    values = [*masked, *again, *elsewhere]
    assert len({bytes(value) for value in values}) == len(values)


def test_rows_without_a_value_have_points_of_their_own() -> None:
    one, same, other = (
        list(hash_values([None, None], HERE, stream(number))) for number in (5, 5, 6)
    )
    assert one == same
    assert len({*one, *other}) == 4


def test_points_that_are_none_are_not_masked() -> None:
    key = RistrettoKey(stream(1))
    good = key.evaluate(hash_values(VALUES, HERE, stream(9)))
    for width in (31, 33):
        with pytest.raises(GuardRefused, match="not a point"):
            key.multiply(np.ones((1, width), np.uint8))
    for bad in (bytes(32), b"\xff" * 32, b"\x01" + bytes(31)):
        elements = np.vstack([good, np.frombuffer(bad, np.uint8)[None]])
        with pytest.raises(GuardRefused, match="not a point"):
            key.multiply(elements)


def test_a_missing_library_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rbcl", None)
    said = r"library 'rbcl': pip install 'coterie\[psi\]'"
    with pytest.raises(GuardRefused, match=said):
        ristretto.load_sodium()

"""The keyed function of ids: right values, and nothing else to be had."""

import sys

import numpy as np
import pytest

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.secrecy import ristretto
from clustering_protocols.secrecy.ristretto import (
    RistrettoKey,
    blind,
    hash_ids,
    unblind,
)

HERE, THERE = b"this session", b"another session"
IDS = [b"ada", b"bob", b"cyd"]


def stream(number: int) -> KeyedStream:
    return KeyedStream(bytes([number]) * 32)


def asked(key: RistrettoKey, draw: int) -> list[list[int]]:
    blinded = blind(IDS, HERE, stream(draw))
    assert blinded.shape == (3, ristretto.N_BYTES)
    return unblind(key.multiply(blinded), stream(draw)).tolist()


def test_an_oprf_result_does_not_depend_on_the_blinding() -> None:
    key = RistrettoKey(stream(1))
    values = key.evaluate(hash_ids(IDS, HERE))
    assert asked(key, 5) == asked(key, 6) == values.tolist()
    elsewhere = key.evaluate(hash_ids(IDS, THERE))
    assert len({bytes(value) for value in (*values, *elsewhere)}) == 6


def test_blinded_ids_follow_from_the_stream_and_no_two_are_alike() -> None:
    one, same, other = (blind([b"ada"] * 2, HERE, stream(n)) for n in (5, 5, 6))
    assert one.tolist() == same.tolist()
    assert len({row.tobytes() for row in [*one, *other]}) == 4


def test_points_that_are_none_are_not_evaluated() -> None:
    key = RistrettoKey(stream(1))
    good = blind(IDS, HERE, stream(5))
    for width in (31, 33):
        with pytest.raises(GuardRefused, match="no point"):
            key.multiply(np.ones((1, width), np.uint8))
    for bad in (bytes(32), b"\xff" * 32, b"\x01" + bytes(31)):
        elements = np.vstack([good, np.frombuffer(bad, np.uint8)[None]])
        with pytest.raises(GuardRefused, match="no point"):
            key.multiply(elements)


def test_a_missing_library_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rbcl", None)
    said = r"library 'rbcl': pip install 'coterie\[psi\]'"
    with pytest.raises(GuardRefused, match=said):
        ristretto.load_sodium()

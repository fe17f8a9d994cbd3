"""The keyed function of ids: right values, and nothing else to be had."""

import sys

import numpy as np
import pytest

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.secrecy import ristretto
from clustering_protocols.secrecy.ristretto import RistrettoAsker, RistrettoKey

HERE, THERE = b"this session", b"another session"
IDS = [b"ada", b"bob", b"cyd"]


def stream(number: int) -> KeyedStream:
    return KeyedStream(bytes([number]) * 32)


def asked(key: RistrettoKey, context: bytes, draw: int) -> list[bytes]:
    asker = RistrettoAsker(context)
    blinded = asker.blind(IDS, stream(draw))
    assert blinded.shape == (3, ristretto.N_BYTES)
    return list(asker.values(IDS, key.evaluate(blinded), stream(draw)))


def test_an_oprf_result_does_not_depend_on_the_blinding() -> None:
    key = RistrettoKey(stream(1), HERE)
    assert asked(key, HERE, 5) == asked(key, HERE, 6) == key.values(IDS)
    assert len(set(key.values(IDS))) == 3


def test_blinded_ids_follow_from_the_stream_and_no_two_are_alike() -> None:
    asker = RistrettoAsker(HERE)
    one, same, other = (asker.blind([b"ada", b"ada"], stream(n)) for n in (5, 5, 6))
    assert one.tolist() == same.tolist()
    assert len({row.tobytes() for row in [*one, *other]}) == 4


def test_points_that_are_none_are_not_evaluated() -> None:
    key = RistrettoKey(stream(1), HERE)
    good = RistrettoAsker(HERE).blind(IDS, stream(5))
    for width in (31, 33):
        with pytest.raises(GuardRefused, match="no point"):
            key.evaluate(np.ones((1, width), np.uint8))
    for bad in (bytes(32), b"\xff" * 32, b"\x01" + bytes(31)):
        elements = np.vstack([good, np.frombuffer(bad, np.uint8)[None]])
        with pytest.raises(GuardRefused, match="no point"):
            key.evaluate(elements)


def test_a_missing_library_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rbcl", None)
    said = r"library 'rbcl': pip install 'coterie\[psi\]'"
    with pytest.raises(GuardRefused, match=said):
        ristretto.load_sodium()

"""The keyed functions of ids: right values, and nothing else to be had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gmpy2
import numpy as np
import pytest

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.secrecy import blind_rsa, oprf, ristretto
from clustering_protocols.secrecy.blind_rsa import RsaAsker, RsaKey
from clustering_protocols.secrecy.ristretto import RistrettoAsker, RistrettoKey

HERE, THERE = b"this session", b"another session"
IDS = [b"ada", b"bob", b"cyd"]


class Scheme(NamedTuple):
    holder: Callable[[KeyedStream, bytes], Any]
    asker: Callable[[bytes, bytes], Any]
    width: int


SCHEMES = {
    "ecdh": Scheme(RistrettoKey, RistrettoAsker, ristretto.N_BYTES),
    "rsa": Scheme(RsaKey, RsaAsker, blind_rsa.N_BYTES),
}


def stream(number: int) -> KeyedStream:
    return KeyedStream(bytes([number]) * 32)


@pytest.fixture(params=SCHEMES)
def scheme(request: pytest.FixtureRequest) -> Scheme:
    return SCHEMES[request.param]


def asked(scheme: Scheme, key: Any, context: bytes, draw: int) -> list[bytes]:
    asker = scheme.asker(key.public, context)
    blinded = asker.blind(IDS, stream(draw))
    assert blinded.shape == (3, scheme.width)
    return list(asker.values(IDS, key.evaluate(blinded), stream(draw)))


def test_an_oprf_result_does_not_depend_on_the_blinding(
    scheme: Scheme,
) -> None:
    key = scheme.holder(stream(1), HERE)
    assert asked(scheme, key, HERE, 5) == asked(scheme, key, HERE, 6) == key.values(IDS)
    assert len(set(key.values(IDS))) == 3


def test_a_key_follows_from_its_stream(scheme: Scheme) -> None:
    first, again = (scheme.holder(stream(1), HERE) for _ in range(2))
    other = scheme.holder(stream(2), HERE)
    assert first.values(IDS) == again.values(IDS)
    assert not set(first.values(IDS)) & set(other.values(IDS))


def test_another_context_has_other_values(scheme: Scheme) -> None:
    here, there = (scheme.holder(stream(1), place) for place in (HERE, THERE))
    assert not set(here.values(IDS)) & set(there.values(IDS))


def test_blinded_ids_follow_from_the_stream_and_no_two_are_alike(
    scheme: Scheme,
) -> None:
    asker = scheme.asker(scheme.holder(stream(1), HERE).public, HERE)
    one, same, other = (asker.blind([b"ada", b"ada"], stream(n)) for n in (5, 5, 6))
    assert one.tolist() == same.tolist()
    assert len({row.tobytes() for row in [*one, *other]}) == 4


def test_a_scalar_is_uniform_but_for_2_to_the_minus_256() -> None:
    order = 2**252 + 27742317777372353535851937790883648493  # RFC 9496, section 4
    scalar = ristretto._scalar(oprf.library("rbcl"), stream(1))
    drawn = int.from_bytes(stream(1).take(64), "little")
    assert int.from_bytes(scalar, "little") == drawn % order
    assert order < 2 ** (8 * 64 - 256)


def test_points_that_are_none_are_not_evaluated() -> None:
    key = RistrettoKey(stream(1), HERE)
    good = RistrettoAsker(b"", HERE).blind(IDS, stream(5))
    for width in (31, 33):
        with pytest.raises(GuardRefused, match="no point"):
            key.evaluate(np.ones((1, width), np.uint8))
    for bad in (bytes(32), b"\xff" * 32, b"\x01" + bytes(31)):
        elements = np.vstack([good, np.frombuffer(bad, np.uint8)[None]])
        with pytest.raises(GuardRefused, match="no point"):
            key.evaluate(elements)


def test_residues_that_tell_something_are_not_signed() -> None:
    key = RsaKey(stream(1), HERE)
    n = int.from_bytes(key.public[:384], "big")
    for bad in (0, 1, n - 1, n, n + 2):
        element = np.frombuffer(bad.to_bytes(384, "big"), np.uint8)[None]
        with pytest.raises(GuardRefused, match="no residue"):
            key.evaluate(element)


@pytest.mark.parametrize("name", SCHEMES)
def test_an_answer_that_is_none_is_noticed(name: str) -> None:
    scheme = SCHEMES[name]
    key = scheme.holder(stream(1), HERE)
    asker = scheme.asker(key.public, HERE)
    answers = key.evaluate(asker.blind(IDS, stream(5))).copy()
    answers[1] = 255
    with pytest.raises(ProtocolFailed):
        asker.values(IDS, answers, stream(5))


def test_there_is_one_signature_for_each_id() -> None:
    key = RsaKey(stream(1), HERE)
    asker = RsaAsker(key.public, HERE)
    answers = key.evaluate(asker.blind(IDS, stream(5)))
    for other in (answers[:-1], np.vstack([answers, answers[:1]])):
        with pytest.raises(ValueError, match="zip"):
            asker.values(IDS, other, stream(5))


def test_a_signature_under_another_key_is_noticed() -> None:
    key, other = RsaKey(stream(1), HERE), RsaKey(stream(2), HERE)
    asker = RsaAsker(key.public, HERE)
    for name in [str(number).encode() for number in range(8)]:
        blinded = RsaAsker(other.public, HERE).blind([name], stream(5))
        with pytest.raises(ProtocolFailed, match="does not verify"):
            asker.values([name], other.evaluate(blinded), stream(5))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda n: n // 2 | 1,
        lambda n: n - 1,
        lambda n: n - n % 65_537 if (n - n % 65_537) % 2 else n - n % 65_537 - 65_537,
        lambda n: n - n % 251,
    ],
    ids=["too short", "even", "a multiple of the exponent", "a small factor"],
)
def test_a_key_that_is_none_is_refused(spoil: Callable[[int], int]) -> None:
    n = int.from_bytes(RsaKey(stream(1), HERE).public[:384], "big")
    with pytest.raises(ProtocolFailed, match="no RSA key"):
        RsaAsker(spoil(n).to_bytes(384, "big"), HERE)


@pytest.mark.threat(97)
def test_signatures_of_ids_do_not_multiply_into_one_of_another() -> None:
    """Without a full-domain hash 2·2·3·7·13 is signed by signatures of 2, 3, 7, 13."""
    key = RsaKey(stream(1), HERE)
    n = int.from_bytes(key.public[:384], "big")
    factors = [2, 2, 3, 7, 13]

    def raw(residue: int) -> int:
        element = np.frombuffer(residue.to_bytes(384, "big"), np.uint8)[None]
        return int.from_bytes(key.evaluate(element).tobytes(), "big")

    def product(signatures: list[int]) -> int:
        forged = 1
        for signature in signatures:
            forged = forged * signature % n
        return forged

    assert product([raw(factor) for factor in factors]) == raw(1092)

    def signed(number: int) -> int:
        return int.from_bytes(key.values([number.to_bytes(2, "big")])[0], "big")

    assert product([signed(factor) for factor in factors]) != signed(1092)


@pytest.mark.threat(97)
def test_no_hash_of_an_id_has_small_factors_alone() -> None:
    """Of 20,000 ids none; whereas 64-bit hashes have some, so the search can find."""
    key = RsaKey(stream(1), HERE)
    n = gmpy2.mpz(int.from_bytes(key.public[:384], "big"))
    ids = [str(number).encode() for number in range(20_000)]
    hashes = list(blind_rsa._hashes(ids, n, HERE))
    primes = gmpy2.primorial(1 << 16)
    assert not any(is_smooth(hashed, primes) for hashed in hashes)
    assert any(is_smooth(hashed >> (3072 - 64), primes) for hashed in hashes)
    assert (
        min(hashed.bit_length() for hashed in hashes) > 3072 - 24
    )  # of the full range


def is_smooth(number: Any, primes: Any) -> bool:
    """Whether all prime factors of a number stand in a product of primes."""
    if number == 0:
        return True
    found = primes % number
    for _ in range(12):
        found = found * found % number
    return bool(found == 0)


def test_a_missing_library_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for method in SCHEMES:
        oprf.require(method)  # type: ignore[arg-type]  # keys of a table
    for name in ("no_such_library", "no_such_library.and.its.part"):
        monkeypatch.setitem(oprf._LIBRARIES, "ecdh", (name,))
        said = r"library 'no_such_library': pip install 'coterie\[psi\]'"
        with pytest.raises(GuardRefused, match=said):
            oprf.require("ecdh")

"""The certificate of an RSA modulus: what it lets through, what it must not."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from hashlib import shake_256
from itertools import product
from typing import Any

import gmpy2
import pytest
from support.weak_moduli import WeakModulus, prime

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.randomness import KeyedStream, length_prefixed
from clustering_protocols.secrecy import rsa_certificate
from clustering_protocols.secrecy.blind_rsa import RsaAsker, RsaKey
from clustering_protocols.secrecy.rsa_certificate import CHALLENGES, EXPONENT, N_BYTES

HERE, THERE = b"this session", b"another session"
KEY = RsaKey(KeyedStream(bytes(32)), HERE)
PUBLIC = KEY.public


def modulus(public: bytes) -> Any:
    return gmpy2.mpz(int.from_bytes(public[:N_BYTES], "big"))


def weak(seed: int, factors: int) -> bytes:
    """A modulus of so many weak factors, with the best certificate of its maker."""
    made = WeakModulus(seed, both=factors == 2)
    roots = made.roots(rsa_certificate._challenges(made.n, HERE))
    return made.public + b"".join(rsa_certificate.to_bytes(root) for root in roots)


def test_the_certificate_of_a_key_holds() -> None:
    assert len(PUBLIC) == N_BYTES * (1 + CHALLENGES)
    RsaAsker(PUBLIC, HERE)


@pytest.mark.parametrize("factors", [1, 2])
def test_a_modulus_that_hides_nothing_is_refused(factors: int) -> None:
    with pytest.raises(ProtocolFailed, match="false certificate"):
        RsaAsker(weak(3, factors), HERE)


def test_its_maker_takes_the_roots_that_there_are() -> None:
    """Else the refusal would say nothing: the maker of the test must be able to."""
    made = WeakModulus(3)
    squares = [gmpy2.powmod(5 + k, EXPONENT, made.n) for k in range(4)]
    roots = made.roots(squares)
    assert all(
        gmpy2.powmod(root, EXPONENT, made.n) == power
        for root, power in zip(roots, squares, strict=True)
    )


def test_a_certificate_holds_for_one_context_and_one_modulus() -> None:
    other = RsaKey(KeyedStream(bytes([1]) * 32), HERE).public
    with pytest.raises(ProtocolFailed, match="false certificate"):
        RsaAsker(PUBLIC, THERE)
    with pytest.raises(ProtocolFailed, match="false certificate"):
        RsaAsker(PUBLIC[:N_BYTES] + other[N_BYTES:], HERE)


@pytest.mark.parametrize("number", range(CHALLENGES))
def test_every_root_is_looked_at(number: int) -> None:
    at = N_BYTES * (1 + number)
    for root in (0, 1, int(modulus(PUBLIC)) - 1):
        spoilt = bytearray(PUBLIC)
        spoilt[at : at + N_BYTES] = root.to_bytes(N_BYTES, "big")
        with pytest.raises(ProtocolFailed, match="false certificate"):
            RsaAsker(bytes(spoilt), HERE)


@pytest.mark.parametrize("cut", [N_BYTES, N_BYTES * CHALLENGES, len(PUBLIC) - 1])
def test_a_certificate_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(ProtocolFailed, match="without its certificate"):
        RsaAsker(PUBLIC[:cut], HERE)
    with pytest.raises(ProtocolFailed, match="without its certificate"):
        RsaAsker(PUBLIC + PUBLIC[-N_BYTES:], HERE)


def test_soundness_is_below_2_to_the_minus_256() -> None:
    assert gmpy2.is_prime(EXPONENT)
    assert Fraction(1, EXPONENT) ** CHALLENGES < Fraction(1, 2**256)


def test_a_hash_is_uniform_up_to_2_to_the_minus_128() -> None:
    n, width = modulus(PUBLIC), N_BYTES + 16
    content = length_prefixed("label", HERE, rsa_certificate.to_bytes(n)) + b"ada"
    (found,) = rsa_certificate.hashes("label", n, HERE, [b"ada"])
    assert found == int.from_bytes(shake_256(content).digest(width), "big") % n
    assert Fraction(int(n), 256**width) < Fraction(1, 2**128)


@pytest.mark.parametrize("e", [3, 5, 7])
def test_of_a_small_modulus_one_unit_in_e_has_a_root_or_all_have(e: int) -> None:
    """The theorem by counting, with squares and several factors in the modulus."""
    for p, q in product([3, 7, 9, 11, 13, 25, 29, 31, 49], repeat=2):
        n = p * q
        units = [x for x in range(1, n) if math.gcd(x, n) == 1]
        powers = {pow(x, e, n) for x in units}
        if len(units) % e:
            assert len(powers) == len(units)
        else:
            assert len(powers) * e <= len(units)


def test_a_hash_with_a_factor_of_the_modulus_stops_the_asker() -> None:
    """Of factors just above what is divided out, some of many ids would show theirs."""
    factors = smallish_factors(random.Random(1))
    n = gmpy2.mpz(math.prod(factors))
    d = gmpy2.invert(EXPONENT, math.prod(each - 1 for each in factors))
    certificate = rsa_certificate.certify(n, HERE, lambda x: gmpy2.powmod(x, d, n))
    asker = RsaAsker(rsa_certificate.to_bytes(n) + certificate, HERE)
    with pytest.raises(ProtocolFailed, match="product of small factors"):
        asker.blind([str(k).encode() for k in range(5000)], KeyedStream(bytes(32)))


def smallish_factors(draw: random.Random) -> list[Any]:
    """Different primes of 17 bits, and one larger, that make 3,072 bits."""
    while True:
        found = list({prime(17, draw) for _ in range(180)})
        left = rsa_certificate.BITS - math.prod(found).bit_length()
        if 17 < left < 64:
            found.append(prime(left + 1, draw))
        if math.prod(found).bit_length() == rsa_certificate.BITS:
            return found

"""A certificate that x ↦ x^e permutes the residues prime to n, for a prime e.

Where e divides φ(n), the e-th powers are one residue class of e or more, and blinding by
r^e hides nothing of the class: whoever made such a modulus reads blinded ids off. So the
holder of the modulus gives an e-th root of each of a number of challenges, residues
hashed from modulus, context and counter (S. Goldberg, L. Reyzin, O. Sagga, F. Baldimtsi,
"Efficient noninteractive certification of RSA moduli and beyond", ASIACRYPT 2019).

What it proves. Let e be a prime. If e divides φ(n), x ↦ x^e maps at least e units to one,
so that at most one unit in e has a root, and m challenges have roots with a probability
of e^-m at most: 65,537^-16 < 2^-256. Challenges are hashes: a holder tries other moduli
at will, and after 2^128 of them has found one with a probability below 2^-128. If e does
not divide φ(n), r^e is uniform among the units for a uniform unit r, and so is r^e H for
every unit H: what is blinded says nothing. This takes no number of prime factors, and n
need not be free of squares; that matters to the paper, which goes on to all residues
below n. Residues that are no units are refused one by one: see :func:`unit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import shake_256
from typing import Any, Final

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.secrecy.oprf import library

BITS: Final = 3072
N_BYTES: Final = BITS // 8
EXPONENT: Final = 65_537  # a prime: the proof rests on it
CHALLENGES: Final = 16
SIZE: Final = CHALLENGES * N_BYTES
SPARE_BYTES: Final = 16  # more than the modulus has: its residues are uniform
_SMALL: Final = 1 << 16


def certify(n: Any, context: bytes, root: Callable[[Any], Any]) -> bytes:
    """Return the e-th roots (SIZE bytes) of the challenges to n, given who takes roots.

    context: what the modulus is for; the certificate holds nowhere else.
    """
    return b"".join(to_bytes(root(challenge)) for challenge in _challenges(n, context))


def check(n: Any, context: bytes, certificate: bytes) -> None:
    """Refuse a modulus under which blinding may not hide.

    Raises ProtocolFailed if it is of another size, even, or has a small factor, or if
        the certificate is not one of this modulus in this context.
    """
    gmp = library("gmpy2")
    if n.bit_length() != BITS or gmp.gcd(n, gmp.primorial(_SMALL)) != 1:
        raise ProtocolFailed("The leader's key is no RSA key of 3072 bits.")
    if len(certificate) != SIZE:
        raise ProtocolFailed("The leader's key comes without its certificate.")
    roots = [certificate[at : at + N_BYTES] for at in range(0, SIZE, N_BYTES)]
    for challenge, root in zip(_challenges(n, context), roots, strict=True):
        if gmp.powmod(from_bytes(root), EXPONENT, n) != unit(challenge, n):
            raise ProtocolFailed(
                "The leader's key carries a false certificate: blinding under it "
                "may not hide."
            )


def unit(residue: Any, n: Any) -> Any:
    """Return a residue that is prime to n; :class:`ProtocolFailed` otherwise.

    An honest modulus never fails: who finds such a residue has found a factor. In a
    modulus made of smallish factors r^e H would show by which of them H can be divided.
    """
    if library("gmpy2").gcd(residue, n) != 1:
        raise ProtocolFailed("The leader's key is a product of small factors.")
    return residue


def hashes(label: str, n: Any, context: bytes, names: Sequence[bytes]) -> Iterator[Any]:
    """Yield a residue of the whole range for each name.

    Other residues under another label, modulus or context.
    """
    begun = shake_256(length_prefixed(label, context, to_bytes(n)))
    for name in names:
        hashed = begun.copy()
        hashed.update(name)
        yield from_bytes(hashed.digest(N_BYTES + SPARE_BYTES)) % n


def from_bytes(content: bytes) -> Any:
    """Return a big-endian integer of gmpy2."""
    return library("gmpy2").mpz(int.from_bytes(content, "big"))


def to_bytes(residue: Any) -> bytes:
    """Return a residue as N_BYTES bytes, big-endian."""
    return int(residue).to_bytes(N_BYTES, "big")


def _challenges(n: Any, context: bytes) -> Iterator[Any]:
    names = [number.to_bytes(2, "big") for number in range(CHALLENGES)]
    return hashes("coterie/rsa-challenge/1", n, context, names)

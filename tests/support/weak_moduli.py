"""RSA moduli under which blinding hides nothing, and who reads blinded ids by them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, Final

import gmpy2

from clustering_protocols.records.arrays import ByteArray
from clustering_protocols.secrecy.blind_rsa import _hashes

E: Final = 65_537
N_BYTES: Final = 384


def prime(bits: int, draw: random.Random, *, step: int = 2) -> Any:
    """Return a prime of so many bits, 1 above a multiple of ``step``; two top bits set."""
    while True:
        top = (draw.getrandbits(bits) | 3 << (bits - 2)) & ((1 << bits) - 1)
        found = gmpy2.mpz(top // step * step + 1)
        if found.bit_length() == bits and gmpy2.is_prime(found):
            return found


class WeakModulus:
    """n = p q with e dividing p - 1 and, if both are weak, q - 1.

    Its maker tells the class of r^e H(id) among the e-th powers, which is that of H(id).
    """

    def __init__(self, seed: int, *, both: bool = True) -> None:
        draw = random.Random(seed)
        self.p = prime(1536, draw, step=2 * E)
        self.q = prime(1536, draw, step=2 * E if both else 2)
        self.n = self.p * self.q
        self.public = int(self.n).to_bytes(N_BYTES, "big")

    def class_of(self, residue: Any) -> tuple[Any, ...]:
        """Return what no e-th power as a factor changes."""
        return tuple(
            gmpy2.powmod(residue, (each - 1) // E, each)
            for each in (self.p, self.q)
            if (each - 1) % E == 0
        )

    def read(
        self, blinded: ByteArray, guesses: Sequence[bytes], context: bytes
    ) -> list[bytes]:
        """Return the guessed ids whose class one of the blinded ids has."""
        sent = [int.from_bytes(each.tobytes(), "big") for each in blinded]
        seen = {self.class_of(gmpy2.mpz(each)) for each in sent}
        hashed = _hashes(guesses, self.n, context)
        pairs = zip(guesses, hashed, strict=True)
        return [guess for guess, residue in pairs if self.class_of(residue) in seen]

    def roots(self, challenges: Iterable[Any]) -> list[Any]:
        """Return an e-th root of each challenge that has one, and 1 for the others.

        Where e divides p - 1 once, p - 1 = e s, a class of which x^s is 1 has the root
        x^d for d = 1/e mod s.
        """
        return [self._root(challenge) for challenge in challenges]

    def _root(self, residue: Any) -> Any:
        if any(each != 1 for each in self.class_of(residue)):
            return gmpy2.mpz(1)
        of = []
        for each in (self.p, self.q):
            order = (each - 1) // E if (each - 1) % E == 0 else each - 1
            of.append(gmpy2.powmod(residue, gmpy2.invert(E, order), each))
        up = gmpy2.invert(self.p, self.q) * (of[1] - of[0]) % self.q
        return (of[0] + self.p * up) % self.n

"""The function id ↦ H(id)^d mod n: RSA signatures of ids that the signer does not see.

Algorithm 4 of J. Wang, J. Zhang, X. Chen, "A privacy-enhanced multi-stage
dimensionality reduction vertical federated clustering framework", Electronics
14(16):3182, 2025, with a full-domain hash: H spreads ids over all residues, so that no
signature is a product of others (signatures of short hashes, which have small factors,
are: D. Coppersmith, J. S. Coron, F. Grieu, S. Halevi, C. Jutla, D. Naccache, J. P.
Stern, "Cryptanalysis of ISO/IEC 9796-1", 2008).

Every signature is checked before it is used. That an id chosen at random has a root for
every one of many ids also shows that the key is well formed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import shake_256
from typing import Any, Final, NamedTuple

import numpy as np

from clustering_protocols.arrays import ByteArray
from clustering_protocols.errors import GuardRefused, ProtocolFailed
from clustering_protocols.randomness import KeyedStream, length_prefixed
from clustering_protocols.secrecy.oprf import OprfClient, OprfServer, library

BITS: Final = 3072
N_BYTES: Final = BITS // 8
EXPONENT: Final = 65_537
_SPARE_BYTES: Final = 16  # more than the modulus has: its residues are uniform
_SMALL: Final = 1 << 16


class _Private(NamedTuple):
    """n = p q, exponents for either factor, and q^-1 mod p (integers of gmpy2)."""

    n: Any
    p: Any
    q: Any
    dp: Any
    dq: Any
    q_inverse: Any


class RsaKey(OprfServer):
    """The holder of a key of 3072 bits that a stream gives.

    Parameters
    ----------
    context : bytes
        What the function is for; others have others.
    """

    def __init__(self, stream: KeyedStream, context: bytes) -> None:
        self._gmp = library("gmpy2")
        self._private = _generated(stream.take(32))
        self._context = context

    @property
    def public(self) -> bytes:
        """Return the modulus, big-endian."""
        return int(self._private.n).to_bytes(N_BYTES, "big")

    def values(self, ids: Sequence[bytes]) -> list[bytes]:
        """Return the signature of each id."""
        hashes = _hashes(self._gmp, ids, self._private.n, self.public, self._context)
        return [_to_bytes(self._signature(hashed)) for hashed in hashes]

    def evaluate(self, blinded: ByteArray) -> ByteArray:
        """Return the signature of each residue (n, 384).

        :class:`GuardRefused` for 0, 1, -1 and what is not below the modulus.
        """
        residues = [_from_bytes(self._gmp, each.tobytes()) for each in blinded]
        if not all(1 < residue < self._private.n - 1 for residue in residues):
            raise GuardRefused("A blinded id is no residue to be signed.")
        return _rows([_to_bytes(self._signature(residue)) for residue in residues])

    def _signature(self, residue: Any) -> Any:
        """Return residue^d, by either factor; checked, as one slip tells the factors."""
        gmp, key = self._gmp, self._private
        of_p = gmp.powmod_sec(residue % key.p, key.dp, key.p)
        of_q = gmp.powmod_sec(residue % key.q, key.dq, key.q)
        found = of_q + key.q * ((key.q_inverse * (of_p - of_q)) % key.p)
        if gmp.powmod(found, EXPONENT, key.n) != residue:
            raise ProtocolFailed("A signature of this party does not verify.")
        return found


class RsaAsker(OprfClient):
    """One who has ids signed under a modulus, in the same context.

    Raises
    ------
    ProtocolFailed
        If the modulus is of another size, even, or has a small factor.
    """

    def __init__(self, public: bytes, context: bytes) -> None:
        self._gmp = library("gmpy2")
        self._public = public
        self._n = _from_bytes(self._gmp, public)
        self._context = context
        small = self._gmp.gcd(self._n, _small_primes())
        if self._n.bit_length() != BITS or small != 1:
            raise ProtocolFailed("The first party's key is no RSA key of 3072 bits.")

    def blind(self, ids: Sequence[bytes], stream: KeyedStream) -> ByteArray:
        """Return r^e H(id) (n, 384), another r for each."""
        gmp, n = self._gmp, self._n
        return _rows(
            [
                _to_bytes(gmp.powmod(self._factor(stream), EXPONENT, n) * hashed % n)
                for hashed in self._hashes(ids)
            ]
        )

    def values(
        self, ids: Sequence[bytes], answers: ByteArray, stream: KeyedStream
    ) -> list[bytes]:
        """Return answer / r for each id; :class:`ProtocolFailed` for no signature."""
        gmp, n = self._gmp, self._n
        found = []
        for hashed, answer in zip(self._hashes(ids), answers, strict=True):
            signed = _from_bytes(gmp, answer.tobytes())
            signature = signed * gmp.invert(self._factor(stream), n) % n
            if gmp.powmod(signature, EXPONENT, n) != hashed:
                raise ProtocolFailed("A signature of the first party does not verify.")
            found.append(_to_bytes(signature))
        return found

    def _factor(self, stream: KeyedStream) -> Any:
        return _from_bytes(self._gmp, stream.take(N_BYTES + _SPARE_BYTES)) % self._n

    def _hashes(self, ids: Sequence[bytes]) -> Iterator[Any]:
        return _hashes(self._gmp, ids, self._n, self._public, self._context)


@lru_cache(maxsize=8)
def _generated(seed: bytes) -> _Private:
    """Return the key of a seed: a search of a second, the same in every round."""
    gmp, rsa = library("gmpy2"), library("Crypto.PublicKey.RSA")
    found = rsa.generate(BITS, randfunc=KeyedStream(seed).take, e=EXPONENT)
    n, p, q, d = (gmp.mpz(int(each)) for each in (found.n, found.p, found.q, found.d))
    return _Private(n, p, q, d % (p - 1), d % (q - 1), gmp.invert(q, p))


@lru_cache(maxsize=1)
def _small_primes() -> Any:
    """Return the product of all primes below 2^16."""
    return library("gmpy2").primorial(_SMALL)


def _hashes(
    gmp: Any, ids: Sequence[bytes], n: Any, public: bytes, context: bytes
) -> Iterator[Any]:
    """Yield H(id), a residue of the whole range; others under another key or context."""
    begun = shake_256(length_prefixed("coterie/full-domain/1", context, public))
    for name in ids:
        hashed = begun.copy()
        hashed.update(name)
        yield _from_bytes(gmp, hashed.digest(N_BYTES + _SPARE_BYTES)) % n


def _from_bytes(gmp: Any, content: bytes) -> Any:
    return gmp.mpz(int.from_bytes(content, "big"))


def _to_bytes(residue: Any) -> bytes:
    return int(residue).to_bytes(N_BYTES, "big")


def _rows(elements: Sequence[bytes]) -> ByteArray:
    flat = np.frombuffer(b"".join(elements), dtype=np.uint8)
    return flat.reshape(len(elements), N_BYTES)

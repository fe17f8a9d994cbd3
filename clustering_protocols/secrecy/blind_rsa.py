"""The function id ↦ H(id)^d mod n: RSA signatures of ids that the signer does not see.

Algorithm 4 of J. Wang, J. Zhang, X. Chen, "A privacy-enhanced multi-stage
dimensionality reduction vertical federated clustering framework", Electronics
14(16):3182, 2025, with a full-domain hash: H spreads ids over all residues, so that no
signature is a product of others (signatures of short hashes, which have small factors,
are: D. Coppersmith, J. S. Coron, F. Grieu, S. Halevi, C. Jutla, D. Naccache, J. P.
Stern, "Cryptanalysis of ISO/IEC 9796-1", 2008).

A key is certified (:mod:`.rsa_certificate`) before an id is blinded for it: every key,
whoever made it, then hides what is blinded. Every signature is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import ByteArray
from clustering_protocols.secrecy import rsa_certificate
from clustering_protocols.secrecy.oprf import OprfClient, OprfServer, library
from clustering_protocols.secrecy.rsa_certificate import (
    BITS,
    EXPONENT,
    N_BYTES,
    SPARE_BYTES,
    from_bytes,
    to_bytes,
    unit,
)


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

    context: what the function is for; others have others.
    """

    def __init__(self, stream: KeyedStream, context: bytes) -> None:
        self._gmp = library("gmpy2")
        self._private = _generate_key(stream.take(32))
        self._context = context

    @property
    def public(self) -> bytes:
        """Return the modulus, big-endian, and its certificate."""
        n = self._private.n
        certificate = rsa_certificate.certify(n, self._context, self._signature)
        return to_bytes(n) + certificate

    def values(self, ids: Sequence[bytes]) -> list[bytes]:
        """Return the signature of each id."""
        hashes = _hashes(ids, self._private.n, self._context)
        return [to_bytes(self._signature(hashed)) for hashed in hashes]

    def evaluate(self, blinded: ByteArray) -> ByteArray:
        """Return the signature of each residue (n, 384).

        :class:`GuardRefused` for 0, 1, -1 and what is not below the modulus.
        """
        residues = [from_bytes(each.tobytes()) for each in blinded]
        if not all(1 < residue < self._private.n - 1 for residue in residues):
            raise GuardRefused("A blinded id is no residue to be signed.")
        return _rows([to_bytes(self._signature(residue)) for residue in residues])

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

    Raises ProtocolFailed if the modulus is of another size, even, or has a small
        factor, or comes with another certificate than its own.
    """

    def __init__(self, public: bytes, context: bytes) -> None:
        self._gmp = library("gmpy2")
        self._n = from_bytes(public[:N_BYTES])
        self._context = context
        rsa_certificate.check(self._n, context, public[N_BYTES:])

    def blind(self, ids: Sequence[bytes], stream: KeyedStream) -> ByteArray:
        """Return r^e H(id) (n, 384), another r for each.

        :class:`ProtocolFailed` if a hash has a factor in common with the modulus.
        """
        gmp, n = self._gmp, self._n
        hashes = [unit(hashed, n) for hashed in self._hashes(ids)]
        return _rows(
            [
                to_bytes(gmp.powmod(self._factor(stream), EXPONENT, n) * hashed % n)
                for hashed in hashes
            ]
        )

    def values(
        self, ids: Sequence[bytes], answers: ByteArray, stream: KeyedStream
    ) -> list[bytes]:
        """Return answer / r for each id; :class:`ProtocolFailed` for no signature."""
        gmp, n = self._gmp, self._n
        found = []
        for hashed, answer in zip(self._hashes(ids), answers, strict=True):
            signed = from_bytes(answer.tobytes())
            signature = signed * gmp.invert(self._factor(stream), n) % n
            if gmp.powmod(signature, EXPONENT, n) != hashed:
                raise ProtocolFailed("A signature of the leader does not verify.")
            found.append(to_bytes(signature))
        return found

    def _factor(self, stream: KeyedStream) -> Any:
        return unit(from_bytes(stream.take(N_BYTES + SPARE_BYTES)) % self._n, self._n)

    def _hashes(self, ids: Sequence[bytes]) -> Iterator[Any]:
        return _hashes(ids, self._n, self._context)


@lru_cache(maxsize=8)
def _generate_key(seed: bytes) -> _Private:
    """Return the key of a seed: a search of a second, the same in every round."""
    gmp, rsa = library("gmpy2"), library("Crypto.PublicKey.RSA")
    found = rsa.generate(BITS, randfunc=KeyedStream(seed).take, e=EXPONENT)
    n, p, q, d = (gmp.mpz(int(each)) for each in (found.n, found.p, found.q, found.d))
    return _Private(n, p, q, d % (p - 1), d % (q - 1), gmp.invert(q, p))


def _hashes(ids: Sequence[bytes], n: Any, context: bytes) -> Iterator[Any]:
    """Yield H(id), a residue of the whole range; others under another key or context."""
    return rsa_certificate.hashes("coterie/full-domain/1", n, context, ids)


def _rows(elements: Sequence[bytes]) -> ByteArray:
    flat = np.frombuffer(b"".join(elements), dtype=np.uint8)
    return flat.reshape(len(elements), N_BYTES)

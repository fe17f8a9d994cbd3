"""A keyed function of ids, which the key holder evaluates without seeing the ids.

One party, the key holder, has a key k. Another, the asker, blinds its ids with random
factors, has them evaluated by the key holder, and removes the factors again. The asker
learns the values of the function for these ids and for no others, the key holder learns
nothing, and nobody without the key can compute a value. Two parties have an id in
common if they have a value in common.

The function is id ↦ k · H(id) on ristretto255 (RFC 9496), computed by libsodium. H maps
a hash to a point of unknown logarithm. A blinded id r · H(id) is uniformly distributed
over the points, whatever the id. Bytes that do not encode a point are refused, and
there is no point of small order. An asker cannot detect whether all answers use the
same key, but a key holder that changes its key only loses matches.

A joint mask multiplies points by the scalars of several parties, one after the other. A
value that all parties have masked is k_1 · … · k_m · H(value). It does not depend on
the order of the parties, and cannot be computed without all scalars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha512
from importlib import import_module
from typing import Any, Final

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.numerics.blocks import Engine
from clustering_protocols.numerics.randomness import KeyedStream, length_prefixed
from clustering_protocols.numerics.row_blocks import iterate_slices
from clustering_protocols.records.arrays import ByteArray

N_BYTES: Final = 32
_WIDE: Final = (
    64  # bytes that are reduced to a scalar, so that its bias is about 2^-256
)
_BLOCK: Final = 256  # number of points that one thread multiplies at a time


def load_sodium() -> Any:
    """Return the binding of libsodium; raise :class:`GuardRefused` if it is missing."""
    try:
        return import_module("rbcl")
    except ImportError:
        raise GuardRefused(
            "Rows are aligned with the library 'rbcl': pip install 'coterie[psi]'."
        ) from None


class RistrettoKey:
    """The key holder, whose scalar comes from a stream.

    context: the purpose of the function; different contexts give unrelated values.
    """

    def __init__(self, stream: KeyedStream, context: bytes) -> None:
        self._sodium = load_sodium()
        self._key = _scalar(self._sodium, stream)
        self._context = context

    def values(self, ids: Sequence[bytes]) -> list[bytes]:
        """Return k · H(id) for each id."""
        multiply = self._sodium.crypto_scalarmult_ristretto255
        points = _hash_points(self._sodium, ids, self._context)
        return [multiply(self._key, point) for point in points]

    def evaluate(self, blinded: ByteArray) -> ByteArray:
        """Return k · B for each point B, uint8 (n, 32).

        Raises GuardRefused if a row of 32 bytes does not encode a point.
        """
        multiply = self._sodium.crypto_scalarmult_ristretto255
        try:
            return _as_rows(multiply(self._key, point.tobytes()) for point in blinded)
        except (RuntimeError, ValueError):
            raise GuardRefused("A blinded id is no point of the group.") from None


class RistrettoAsker:
    """A party that has its ids evaluated, in the same context as the key holder."""

    def __init__(self, context: bytes) -> None:
        self._sodium = load_sodium()
        self._context = context

    def blind(self, ids: Sequence[bytes], stream: KeyedStream) -> ByteArray:
        """Return r · H(id), uint8 (n, 32); each id has its own factor r from the stream."""
        multiply = self._sodium.crypto_scalarmult_ristretto255
        points = _hash_points(self._sodium, ids, self._context)
        return _as_rows(multiply(_scalar(self._sodium, stream), p) for p in points)

    def values(
        self, ids: Sequence[bytes], answers: ByteArray, stream: KeyedStream
    ) -> list[bytes]:
        """Return r^-1 · answer for each id, given the stream that blinded the ids.

        Raises ProtocolFailed if an answer does not encode a point.
        """
        invert = self._sodium.crypto_core_ristretto255_scalar_invert
        multiply = self._sodium.crypto_scalarmult_ristretto255
        try:
            return [
                multiply(invert(_scalar(self._sodium, stream)), answer.tobytes())
                for answer in answers
            ]
        except (RuntimeError, ValueError):
            raise ProtocolFailed("An answer to a blinded id is not a point.") from None


def _scalar(library: Any, stream: KeyedStream) -> bytes:
    scalar: bytes = library.crypto_core_ristretto255_scalar_reduce(stream.take(_WIDE))
    return scalar


def _hash_points(library: Any, ids: Sequence[bytes], context: bytes) -> Iterator[bytes]:
    prefix = sha512(length_prefixed("coterie/ristretto/1", context))
    return map(
        library.crypto_core_ristretto255_from_hash, hash_with_prefix(prefix, ids)
    )


def hash_with_prefix(prefix: Any, texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the digest of each text, prepended with the prefix.

    prefix: a hash object of hashlib that has already consumed the prefix.
    """
    for text in texts:
        text_hash = prefix.copy()
        text_hash.update(text)
        yield text_hash.digest()


def _as_rows(elements: Iterable[bytes]) -> ByteArray:
    return np.frombuffer(b"".join(elements), dtype=np.uint8).reshape(-1, N_BYTES)


class JointMask:
    """One party's factor of a joint mask, drawn from its stream.

    engine: multiplies blocks of points, several at a time if it has threads.
    """

    def __init__(self, stream: KeyedStream, engine: Engine) -> None:
        self._sodium, self._engine = load_sodium(), engine
        self._key = _scalar(self._sodium, stream)

    def begin(
        self, values: Sequence[bytes | None], purpose: bytes, filler: KeyedStream
    ) -> ByteArray:
        """Return k · H(value) for each value (n, 32), and a random point for None.

        purpose: what the values are; equal values give different points for each
            purpose.
        filler: the stream from which random points are drawn.
        """
        prefix = sha512(length_prefixed("coterie/joint-mask/1", purpose))
        hashes = [
            filler.take(_WIDE)
            if value is None
            else next(hash_with_prefix(prefix, [value]))
            for value in values
        ]
        blocks = (hashes[block] for block in iterate_slices(len(hashes), _BLOCK))
        return _as_rows(self._engine.map(self._begin_block, blocks))

    def mask_again(self, points: ByteArray) -> ByteArray:
        """Return k · P for each point P (n, 32).

        Raises GuardRefused if a row of 32 bytes does not encode a point.
        """
        encoded = list(map(bytes, points))
        blocks = (encoded[block] for block in iterate_slices(len(encoded), _BLOCK))
        try:
            return _as_rows(self._engine.map(self._mask_block, blocks))
        except (RuntimeError, ValueError):
            raise GuardRefused("A masked match key is no point of the group.") from None

    def _begin_block(self, hashes: Sequence[bytes]) -> bytes:
        from_hash = self._sodium.crypto_core_ristretto255_from_hash
        return self._mask_block([from_hash(digest) for digest in hashes])

    def _mask_block(self, points: Sequence[bytes]) -> bytes:
        multiply = partial(self._sodium.crypto_scalarmult_ristretto255, self._key)
        return b"".join(map(multiply, points))

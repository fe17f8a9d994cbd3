"""Values that several parties mask, each with a secret key of its own.

A party multiplies the points of its values, or points that others have masked, by its
secret key. A value that all parties have masked is k_1 · … · k_m · H(value). It does not
depend on the order of the parties, and cannot be computed without all keys. Two parties
have a value in common if they have a masked value in common.

The group is ristretto255 (RFC 9496), computed by libsodium. H maps a hash to a point of
unknown logarithm. Bytes that do not encode a point are refused, and there is no point of
small order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha512
from importlib import import_module
from typing import Any, Final

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
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
    """A secret scalar k, drawn from a stream, by which points are multiplied.

    engine: multiplies blocks of points, several at a time if it has threads.
    """

    def __init__(self, stream: KeyedStream, engine: Engine = ONE_THREAD) -> None:
        self._sodium, self._engine = load_sodium(), engine
        self._key = _scalar(self._sodium, stream)

    def evaluate(self, hashes: Iterable[bytes]) -> ByteArray:
        """Return k · H, uint8 (n, 32), for the point H of each hash of 64 bytes."""
        return self._map(self._evaluate_block, hashes)

    def multiply(self, points: ByteArray) -> ByteArray:
        """Return k · P for each point P, uint8 (n, 32).

        Raises GuardRefused if a row does not encode a point.
        """
        try:
            return self._map(self._multiply_block, map(bytes, points))
        except (RuntimeError, ValueError):
            raise GuardRefused(
                "A received value is not a point of the group."
            ) from None

    def _map(
        self, kernel: Callable[[Sequence[bytes]], bytes], items: Iterable[bytes]
    ) -> ByteArray:
        listed = list(items)
        blocks = (listed[block] for block in iterate_slices(len(listed), _BLOCK))
        return _as_rows(self._engine.map(kernel, blocks))

    def _evaluate_block(self, hashes: Sequence[bytes]) -> bytes:
        from_hash = self._sodium.crypto_core_ristretto255_from_hash
        return self._multiply_block([from_hash(digest) for digest in hashes])

    def _multiply_block(self, points: Sequence[bytes]) -> bytes:
        multiply = partial(self._sodium.crypto_scalarmult_ristretto255, self._key)
        return b"".join(map(multiply, points))


def hash_values(
    values: Iterable[bytes | None], purpose: bytes, filler: KeyedStream
) -> Iterator[bytes]:
    """Yield the hash of each value of a joint mask, and a random hash for None.

    purpose: a text that says what the values are. A value has a different hash for each
        purpose.
    filler: the stream from which random hashes are drawn.
    """
    prefix = sha512(length_prefixed("coterie/joint-mask/1", purpose))
    for value in values:
        if value is None:
            yield filler.take(_WIDE)
        else:
            yield from hash_with_prefix(prefix, [value])


def _scalar(sodium: Any, stream: KeyedStream) -> bytes:
    scalar: bytes = sodium.crypto_core_ristretto255_scalar_reduce(stream.take(_WIDE))
    return scalar


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

"""A keyed function of ids that its key holder evaluates without seeing them.

One party holds a key k. Another hides its ids under random blinding factors, has them
evaluated and takes the factors off again: it learns the function's values at these ids
and at no others, the key holder learns nothing, and nobody without the key can compute
a value. Two parties have an id in common if they have a value in common.

The function is id ↦ k · H(id) on ristretto255 (RFC 9496), by libsodium.
H maps a hash to a point of unknown logarithm; a blinded id is r · H(id), uniform among
the points whatever the id is. What is not the encoding of a point does not evaluate, and
there is no point of small order. An asker cannot see whether all answers are of one key:
a key holder who changes it loses matches and learns nothing for it.

A joint mask puts points under the keys of several parties, one after the other. Each has
a scalar of its own; a value that went through all parties is k_1 · … · k_m · H(value):
the same whichever party came first, and known to nobody who has not all scalars.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha512
from importlib import import_module
from typing import Any, Final, TypeVar

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.numerics.blocks import Engine
from clustering_protocols.numerics.randomness import KeyedStream, length_prefixed
from clustering_protocols.records.arrays import ByteArray

N_BYTES: Final = 32
_WIDE: Final = 64  # bytes reduced to a scalar, so that it is uniform but for 2^-256


def sodium() -> Any:
    """Return the binding of libsodium; :class:`GuardRefused` where it is missing."""
    try:
        return import_module("rbcl")
    except ImportError:
        raise GuardRefused(
            "Rows are aligned with the library 'rbcl': pip install 'coterie[psi]'."
        ) from None


class RistrettoKey:
    """The holder of a scalar that a stream gives.

    context: what the function is for; others have others.
    """

    def __init__(self, stream: KeyedStream, context: bytes) -> None:
        self._sodium = sodium()
        self._key = _scalar(self._sodium, stream)
        self._context = context

    def values(self, ids: Sequence[bytes]) -> list[bytes]:
        """Return k · H(id) for each id."""
        multiply = self._sodium.crypto_scalarmult_ristretto255
        points = _points(self._sodium, ids, self._context)
        return [multiply(self._key, point) for point in points]

    def evaluate(self, blinded: ByteArray) -> ByteArray:
        """Return k · B for each point B, uint8 (n, 32).

        Raises GuardRefused if one is no point.
        """
        multiply = self._sodium.crypto_scalarmult_ristretto255
        try:
            return _rows([multiply(self._key, each.tobytes()) for each in blinded])
        except (RuntimeError, ValueError):
            raise GuardRefused("A blinded id is no point of the group.") from None


class RistrettoAsker:
    """One who has ids evaluated, in the same context."""

    def __init__(self, context: bytes) -> None:
        self._sodium = sodium()
        self._context = context

    def blind(self, ids: Sequence[bytes], stream: KeyedStream) -> ByteArray:
        """Return r · H(id), uint8 (n, 32), another r of the stream for each."""
        multiply = self._sodium.crypto_scalarmult_ristretto255
        points = _points(self._sodium, ids, self._context)
        return _rows([multiply(_scalar(self._sodium, stream), p) for p in points])

    def values(
        self, ids: Sequence[bytes], answers: ByteArray, stream: KeyedStream
    ) -> list[bytes]:
        """Return r^-1 · answer for each id, given the stream that blinded them.

        Raises ProtocolFailed if an answer is no point.
        """
        invert = self._sodium.crypto_core_ristretto255_scalar_invert
        multiply = self._sodium.crypto_scalarmult_ristretto255
        try:
            return [
                multiply(invert(_scalar(self._sodium, stream)), answer.tobytes())
                for answer in answers
            ]
        except (RuntimeError, ValueError):
            raise ProtocolFailed("An answer to a blinded id is no point.") from None


def _scalar(library: Any, stream: KeyedStream) -> bytes:
    scalar: bytes = library.crypto_core_ristretto255_scalar_reduce(stream.take(_WIDE))
    return scalar


def _points(library: Any, ids: Sequence[bytes], context: bytes) -> Iterator[bytes]:
    """Yield H(id), where no other context has the same points."""
    begun = sha512(length_prefixed("coterie/ristretto/1", context))
    for name in ids:
        hashed = begun.copy()
        hashed.update(name)
        yield library.crypto_core_ristretto255_from_hash(hashed.digest())


def _rows(elements: Sequence[bytes]) -> ByteArray:
    flat = np.frombuffer(b"".join(elements), dtype=np.uint8)
    return flat.reshape(len(elements), N_BYTES)


T = TypeVar("T")

_BLOCK: Final = 256


class JointMask:
    """One party's key, which its stream gives.

    engine: runs over blocks of points; libsodium works on several at once.
    """

    def __init__(self, stream: KeyedStream, engine: Engine) -> None:
        self._sodium, self._engine = sodium(), engine
        reduce = self._sodium.crypto_core_ristretto255_scalar_reduce
        self._key: bytes = reduce(stream.take(_WIDE))

    def begin(
        self, values: Sequence[bytes | None], purpose: bytes, filler: KeyedStream
    ) -> ByteArray:
        """Return k · H(value) of each value (n, 32), and a random point for none.

        purpose: what the values are; those of another have other points.
        """
        fill = [filler.take(_WIDE) if value is None else b"" for value in values]
        hashed = sha512(length_prefixed("coterie/joint-mask/1", purpose))
        wide: list[bytes] = []
        for value, random in zip(values, fill, strict=True):
            if value is None:
                wide.append(random)
                continue
            one = hashed.copy()
            one.update(value)
            wide.append(one.digest())
        return self._join(self._engine.map(self._begin_block, _blocks(wide)), len(wide))

    def go_on(self, points: ByteArray) -> ByteArray:
        """Return k · P for each point P (n, 32).

        Raises GuardRefused if one is no point.
        """
        found = self._engine.map(self._mask_block, _blocks(list(map(bytes, points))))
        try:
            return self._join(found, len(points))
        except (RuntimeError, ValueError):
            raise GuardRefused("A masked match key is no point of the group.") from None

    def _begin_block(self, wide: Sequence[bytes]) -> bytes:
        point = self._sodium.crypto_core_ristretto255_from_hash
        multiply = partial(self._sodium.crypto_scalarmult_ristretto255, self._key)
        return b"".join([multiply(point(each)) for each in wide])

    def _mask_block(self, points: Sequence[bytes]) -> bytes:
        multiply = partial(self._sodium.crypto_scalarmult_ristretto255, self._key)
        return b"".join([multiply(each) for each in points])

    @staticmethod
    def _join(blocks: Iterator[bytes], n_points: int) -> ByteArray:
        flat = np.frombuffer(b"".join(blocks), dtype=np.uint8)
        return flat.reshape(n_points, N_BYTES)


def _blocks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for begin in range(0, len(items), _BLOCK):
        yield items[begin : begin + _BLOCK]

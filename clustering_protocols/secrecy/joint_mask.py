"""Points of ristretto255 under the keys of several parties, one after the other.

Each party has a scalar of its own. A value that went through all parties is
k_1 · … · k_m · H(value): the same whichever party came first, and known to nobody who
has not all scalars. To mask a guessed value takes every party's help.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha512
from typing import Final, TypeVar

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.blocks import Engine
from clustering_protocols.numerics.randomness import KeyedStream, length_prefixed
from clustering_protocols.records.arrays import ByteArray
from clustering_protocols.secrecy.ristretto import N_BYTES, sodium

T = TypeVar("T")

_WIDE: Final = 64
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

"""Random numbers from explicit keys and seeds, without any global state.

A :class:`KeyedStream` is ChaCha20 under a key derived by HKDF-SHA256. Every private
draw of a party (keys, secrets, anchors, rotations, row orders) comes from such a
stream. A session can therefore be repeated bit for bit from 32 bytes of entropy, and no
private draw depends on a generator that is not cryptographic. Only the analyst uses
numpy's seeded generators.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray

KEY_BYTES: Final = 32
_CHUNK_BYTES: Final = 1 << 18  # fits into the cache of one core
_ZEROS: Final = memoryview(bytes(_CHUNK_BYTES))
_NONCE: Final = bytes(16)  # safe, because each key is used for a single stream


def length_prefixed(*parts: bytes | str | int) -> bytes:
    """Join parts in such a way that two different lists never give the same bytes.

    Text is encoded as UTF-8 and a number as 8 bytes, big-endian. Each part is preceded
    by its length.
    """
    joined = bytearray()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        if isinstance(content, int):
            content = content.to_bytes(8, "big")
        joined += len(content).to_bytes(8, "big") + content
    return bytes(joined)


def derive_key(secret: bytes, *info: bytes | str | int, salt: bytes = b"") -> bytes:
    """Derive a 32-byte key for one labelled purpose from a secret (HKDF-SHA256)."""
    hkdf = HKDF(SHA256(), KEY_BYTES, salt=salt or None, info=length_prefixed(*info))
    return hkdf.derive(secret)


class KeyedStream:
    """A random number generator that is determined by a 32-byte key.

    Equal keys give equal numbers in equal order. A key must be used for one purpose
    only.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a stream takes {KEY_BYTES} bytes of key, not {len(key)}")
        cipher = Cipher(algorithms.ChaCha20(key, _NONCE), mode=None)
        self._encryptor = cipher.encryptor()

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes of the stream."""
        return self._encryptor.update(bytes(size))

    def words(self, size: int) -> WordArray:
        """Return ``size`` uniform 64-bit words."""
        words: WordArray = np.empty(size, dtype="<u8")
        self.fill(words)
        return words

    def fill(self, words: WordArray) -> None:
        """Overwrite a contiguous array (size,) with uniform 64-bit words."""
        flat = words.view(np.uint8).data
        for begin in range(0, len(flat), _CHUNK_BYTES):
            piece = flat[begin : begin + _CHUNK_BYTES]
            self._encryptor.update_into(_ZEROS[: len(piece)], piece)

    def uniform(self, *shape: int) -> FloatArray:
        """Return uniform numbers in the open interval (0, 1), with 52 random bits each.

        With 53 bits, adding one half would round the largest number up to 1.
        """
        words = self.words(int(np.prod(shape)))
        high = (words >> np.uint64(12)).astype(np.float64)
        return (high + 0.5).reshape(shape) * 2.0**-52

    def normal(self, *shape: int) -> FloatArray:
        """Return standard normal numbers, drawn by inverse transform sampling."""
        from scipy.special import ndtri  # imported late: the services never need it

        normal: FloatArray = ndtri(self.uniform(*shape))
        return normal

    def permutation(self, size: int) -> IntArray:
        """Return a random permutation of 0, …, size - 1, by sorting 64-bit keys."""
        return np.argsort(self.words(size), kind="stable").astype(np.int64)

    def rotation(self, size: int) -> FloatArray:
        """Return a Haar-random orthogonal matrix of shape (size, size).

        It is Q of the QR decomposition of a normal matrix, with the signs of R's
        diagonal moved into Q. Without that, the distribution is not uniform (Mezzadri,
        arXiv:math-ph/0609050).
        """
        return _q_with_signs(self.normal(size, size))

    def orthogonal_columns(self, n_rows: int, n_columns: int) -> FloatArray:
        """Return random orthonormal columns (n_rows, n_columns) that each sum to 0.

        They are drawn uniformly by a QR decomposition of centred normal columns, with
        signs as in :meth:`rotation`. ``n_rows`` must exceed ``n_columns``.
        """
        normal = self.normal(n_rows, n_columns)
        return _q_with_signs(normal - normal.mean(axis=0))


def _q_with_signs(matrix: FloatArray) -> FloatArray:
    Q, R = np.linalg.qr(matrix)
    signs = np.where(np.diagonal(R) < 0, -1.0, 1.0)
    return np.ascontiguousarray(Q * signs)


def public_stream(seed: int, *labels: str | int) -> KeyedStream:
    """Return a stream for one labelled purpose, from which all draw equal numbers.

    It must not be used for secrets, because its key is derived from public numbers.
    Unlike numpy's generators, it is the same in every language.

    seed: 0 ≤ seed < 2^64, from the terms.
    """
    secret = seed.to_bytes(8, "big")
    return KeyedStream(derive_key(secret, "coterie/public-stream/1", *labels))


def seeded_generator(seed: int, *labels: str | int) -> np.random.Generator:
    """Return the analyst's generator for one labelled purpose of a public seed.

    It must not be used for secrets, nor by parties, which draw from
    :func:`public_stream`. The numbers depend on the labels and not on the order of
    calls, so a repeated step draws the same numbers on another machine.
    """
    digest = hashlib.sha256(length_prefixed("coterie/generator/1", seed, *labels))
    return np.random.default_rng(int.from_bytes(digest.digest(), "big"))

"""The two streams that masks could be drawn from, for shares of several sizes.

    python -m benchmarks.mask_streams

ChaCha20, which masks are drawn from, beside AES-256-CTR, each with a new key: bytes of a
share, microseconds of both, and their ratio. The sizes: one word, an update of 250 words
a cluster for ten clusters, distances of 200,000 rows to ten clusters.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from statistics import median
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES, ChaCha20
from cryptography.hazmat.primitives.ciphers.modes import CTR

from benchmarks.timing import seconds

SIZES: Final = (8, 20_000, 16_000_000)
RUNS: Final = 15
_ZEROS: Final = bytes(16)


def chacha20(key: bytes) -> CipherContext:
    """Return the stream as masks are drawn now."""
    return Cipher(ChaCha20(key, _ZEROS), mode=None).encryptor()


def aes_256_ctr(key: bytes) -> CipherContext:
    """Return the stream that browsers have."""
    return Cipher(AES(key), CTR(_ZEROS)).encryptor()


def drawing(stream: Callable[[bytes], CipherContext], size: int) -> float:
    """Return the median time of drawing so many bytes under a new key."""
    key, zeros = os.urandom(32), bytes(size)
    return median(seconds(lambda: stream(key).update(zeros)) for _ in range(RUNS))


def main() -> None:
    """Print a line for each size."""
    for size in SIZES:
        now, other = (drawing(each, size) for each in (chacha20, aes_256_ctr))
        print(
            f"{size:>10,} bytes: ChaCha20 {now * 1e6:.1f} µs, "
            f"AES-256-CTR {other * 1e6:.1f} µs, ratio {now / other:.2f}"
        )


if __name__ == "__main__":
    main()

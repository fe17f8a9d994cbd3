"""Tags of sums, which show whether a total is the sum of the members' shares.

A member's tag is t = Σ_j ρ_j x_j mod p, p = 2^61 - 1, over its signed ring elements x,
where ρ follows from a secret of the group. This is a universal hash that is used once
(Wegman & Carter, "New hash functions and their use in authentication and set equality",
1981). Tags add up as the elements do, so the tag of a total is the sum of the tags. If
somebody changes the total without knowing ρ, the change remains undetected with a
probability of (1 + m/1024) / p for m elements.

Ring elements are residues modulo 2^64, but tags are residues modulo p, so a tag proves
a total only if the total is also within its range. Two different totals within ±2^59
differ by less than p; with a range of 62 bits, p itself could be added unnoticed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy import field
from clustering_protocols.secrecy.prime import P

_BLOCK: Final = 1024
"""Residues drawn for a sum: ρ_j = a_(j mod 1024) · b^(j div 1024)."""


def compute_tag(words: WordArray, stream: KeyedStream) -> int:
    """Return the tag of ring elements (m,), read as signed.

    The elements lie between -2^60 and 2^60. No other sum may use the group's stream.
    """
    weights, base = (
        field.draw_residues(stream, _BLOCK),
        int(field.draw_residues(stream, 1)[0]),
    )
    blocks = np.empty(-(-words.size // _BLOCK), dtype=np.uint64)
    field.weighted_blocks(words.reshape(-1).view(np.int64), weights, blocks)
    residue = 0
    for block in blocks[::-1].tolist():  # Horner's rule
        residue = (residue * base + block) % P
    return residue


def shift_residue(residue: int, stream: KeyedStream, sign: int = 1) -> int:
    """Add the next residue of a stream to a residue, or subtract it if sign is -1."""
    while (shift := int.from_bytes(stream.take(8), "little") & P) == P:
        pass
    return (residue + sign * shift) % P

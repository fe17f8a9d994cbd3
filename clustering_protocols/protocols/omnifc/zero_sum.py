"""Masks mod p that add up to zero over all parties.

μ_a = Σ_{b > a} PRG(k_ab) - Σ_{b < a} PRG(k_ab): each pair's stream is added by one and
subtracted by the other. Anyone who sees all answers but knows no pair's key sees uniform
residues with the right sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.common.limits import MINIMUM_MEMBERS
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy import field
from clustering_protocols.shared_stages import masked_sums

from .coding import add_combination, blocks
from .params import OmniContext

Streams = Sequence[tuple[int, KeyedStream]]
"""One stream per other party, with its sign."""


def pairwise_streams(context: OmniContext) -> Streams:
    """Return the streams of this attempt: +1 where the other party comes later, else -1.

    Raises GuardRefused if there are fewer than three parties: each could subtract
        itself.
    """
    slots = context.session.slots
    if len(slots) < MINIMUM_MEMBERS:
        raise GuardRefused(f"Masks hide nothing among {len(slots)} parties.")
    return list(masked_sums.pairwise_streams(context, slots, "coterie/field-mask/2"))


def hide(values: WordArray, weight: int, streams: Streams) -> None:
    """Replace values (settled) by weight · values + mask mod p, in place."""
    for _, block in blocks(values):
        own = block.copy()
        block[:] = np.uint64(0)
        add_combination(block, [weight], [own])
        for sign, stream in streams:
            mask = field.draw(stream, len(block))
            (field.add if sign > 0 else field.subtract)(block, mask)
        field.settle(block)

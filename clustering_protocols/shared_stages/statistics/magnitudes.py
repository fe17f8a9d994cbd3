"""A limit on a party's numbers, below which sums of their squares stay finite.

A record's own check lets every finite number pass; a distance to 1e300 is infinite.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from clustering_protocols.common.errors import InvalidArray
from clustering_protocols.numerics.blocks import Engine
from clustering_protocols.numerics.row_blocks import RowBlock, RowBlocks
from clustering_protocols.records.arrays import FloatArray

LARGEST: Final = 1e100


def check_magnitudes(subject: str, *arrays: FloatArray) -> None:
    """Refuse numbers that cannot be squared and added up.

    Raises InvalidArray.
    """
    _check_sizes(subject, map(_largest_magnitude, arrays))


def check_block_magnitudes(subject: str, rows: RowBlocks, engine: Engine) -> None:
    """Refuse numbers as :func:`check` does, in rows that come in blocks.

    Raises InvalidArray.
    """
    _check_sizes(subject, engine.map(_largest_magnitude_of_block, rows.blocks()))


def _check_sizes(subject: str, sizes: Iterable[float]) -> None:
    # not `any(... > LARGEST)`: that is false for NaN
    if not all(size <= LARGEST for size in sizes):
        raise InvalidArray(f"{subject} holds numbers larger than {LARGEST:g}.")


def _largest_magnitude_of_block(block: RowBlock) -> float:
    return _largest_magnitude(block.load())


def _largest_magnitude(array: FloatArray) -> float:
    """Return the largest absolute value, without allocating an array of them."""
    return max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))

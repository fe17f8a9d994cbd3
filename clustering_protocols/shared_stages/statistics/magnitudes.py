"""A limit on a party's numbers that keeps sums of their squares finite.

Records accept all finite numbers, but a squared distance to 1e300 is infinite.
"""

from __future__ import annotations

from collections.abc import Iterable

from clustering_protocols.common.errors import InvalidArray
from clustering_protocols.common.limits import LARGEST_NUMBER
from clustering_protocols.numerics.blocks import Engine
from clustering_protocols.numerics.row_blocks import RowBlock, RowBlocks
from clustering_protocols.records.arrays import FloatArray


def check_magnitudes(subject: str, *arrays: FloatArray) -> None:
    """Raise InvalidArray if numbers are NaN or too large to be squared and added up."""
    _check_sizes(subject, map(_largest_magnitude, arrays))


def check_block_magnitudes(subject: str, rows: RowBlocks, engine: Engine) -> None:
    """Raise InvalidArray as :func:`check_magnitudes` does, for rows stored in blocks."""
    _check_sizes(subject, engine.map(_largest_magnitude_of_block, rows.blocks()))


def _check_sizes(subject: str, sizes: Iterable[float]) -> None:
    # `any(size > LARGEST_NUMBER)` would let NaN pass.
    if not all(size <= LARGEST_NUMBER for size in sizes):
        raise InvalidArray(f"{subject} has numbers larger than {LARGEST_NUMBER:g}.")


def _largest_magnitude_of_block(block: RowBlock) -> float:
    return _largest_magnitude(block.load())


def _largest_magnitude(array: FloatArray) -> float:
    """Return the largest absolute value without allocating an array."""
    return max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))

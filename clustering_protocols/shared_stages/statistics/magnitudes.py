"""How large the numbers of a party may be: beyond that, squares are no numbers any more.

A record's own check lets every finite number pass; of 1e300 a distance is infinite.
"""

from __future__ import annotations

from typing import Final

from clustering_protocols.common.errors import InvalidArray
from clustering_protocols.numerics.blocks import Engine
from clustering_protocols.numerics.row_blocks import RowBlock, RowBlocks
from clustering_protocols.records.arrays import FloatArray

LARGEST: Final = 1e100


def check(whose: str, *arrays: FloatArray) -> None:
    """Refuse numbers that cannot be squared and added up.

    Raises InvalidArray.
    """
    if not all(_largest(array) <= LARGEST for array in arrays):  # nan is refused too
        raise _build_refusal(whose)


def check_blocks(whose: str, rows: RowBlocks, engine: Engine) -> None:
    """Refuse the same in rows that come in blocks.

    Raises InvalidArray.
    """
    # not `any(... > LARGEST)`: that is false of what is not a number
    if not all(found <= LARGEST for found in engine.map(_of_block, rows.blocks())):
        raise _build_refusal(whose)


def _of_block(block: RowBlock) -> float:
    return _largest(block.load())


def _largest(array: FloatArray) -> float:
    """Return the largest absolute value, without an array of all of them."""
    return max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))


def _build_refusal(whose: str) -> InvalidArray:
    return InvalidArray(f"{whose} holds numbers larger than {LARGEST:g}.")

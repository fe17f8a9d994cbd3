"""How large the numbers of a party may be: beyond that, squares are no numbers any more.

A record's own check lets every finite number pass; of 1e300 a distance is infinite.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.arrays import FloatArray
from clustering_protocols.errors import InvalidArray

LARGEST: Final = 1e100


def check(whose: str, *arrays: FloatArray) -> None:
    """Refuse numbers that cannot be squared and added up.

    Raises
    ------
    InvalidArray
    """
    # not `any(... > LARGEST)`: that is false of what is not a number
    if not all(np.abs(array).max(initial=0.0) <= LARGEST for array in arrays):
        raise InvalidArray(f"{whose} holds numbers larger than {LARGEST:g}.")

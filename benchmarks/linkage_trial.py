"""Which rows of two tables would be linked by match keys, and how many rightly.

Both tables are at hand here, as in a test: hashes take the place of the tokens that a
session's parties mask together, and the function of a session links the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.alignment.linkage import (
    Tokens,
    as_bytes,
    link_rows,
)
from clustering_protocols.shared_stages.alignment.match_keys import (
    KeyValues,
    compute_key_values,
)
from clustering_protocols.shared_stages.alignment.params import Alignment


class LinkageTrial(NamedTuple):
    """How many people two tables have in common, and how well their rows were linked.

    recall: the share of the common people who were linked rightly.
    precision: the share of the links that are right.
    """

    common: int
    recall: float
    precision: float


def try_match_keys(
    keys: Sequence[str],
    ids: tuple[Sequence[str], Sequence[str]],
    people: tuple[IntArray, IntArray],
) -> LinkageTrial:
    """Return how well keys link two tables, given which person each row belongs to.

    ids: of each table the cells of the keys' columns, as a session reads them.
    people: of each table the number of the person of each row.
    """
    steps = Alignment().normalisation
    first, second = (compute_key_values(each, keys, steps) for each in ids)
    found = link_rows(_hash("first", first), _hash("second", second))
    rows = np.flatnonzero(found >= 0)
    right = (people[0][rows] == people[1][found[rows]]).sum()
    common = len(np.intersect1d(*people))
    return LinkageTrial(common, right / common, right / len(rows))


def _hash(table: str, found: Sequence[KeyValues]) -> Tokens:
    """Return a token for each key and row; one of its own for a row without a value."""
    made = b"".join(
        sha256(
            f"{key.key}\0{value}".encode()
            if value is not None
            else f"{table} {key.key} {row}".encode()
        ).digest()
        for key in found
        for row, value in enumerate(key.values)
    )
    shape = (len(found), len(found[0].values), 32)
    return as_bytes(table, np.frombuffer(made, np.uint8).reshape(shape))

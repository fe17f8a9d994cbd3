"""Which rows of two tables match keys would link, and how many of them rightly.

Here both tables are at hand, as at a test: hashes stand for what the parties of a session
mask together, and rows are linked by the same function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.alignment.linkage import Tokens, as_texts, link
from clustering_protocols.shared_stages.alignment.match_keys import (
    KeyValues,
    key_values,
)
from clustering_protocols.shared_stages.alignment.params import Alignment


@dataclass(frozen=True, slots=True)
class LinkageTrial:
    """How many rows were linked, how many rightly, and how many of the common people.

    linked, right, common: numbers of rows.
    """

    linked: int
    right: int
    common: int

    @property
    def recall(self) -> float:
        """Return the share of the common people who were linked rightly."""
        return self.right / self.common if self.common else 1.0

    @property
    def precision(self) -> float:
        """Return the share of the links that are right."""
        return self.right / self.linked if self.linked else 1.0


def try_match_keys(
    keys: Sequence[str],
    ids: tuple[Sequence[str], Sequence[str]],
    people: tuple[IntArray, IntArray],
    normalisation: Sequence[str] = Alignment().normalisation,
) -> LinkageTrial:
    """Return how well keys link two tables of which the truth is known.

    ids: of each table the cells of the keys' columns, as a session reads them.
    people: who each row is.
    """
    first, second = (key_values(each, keys, normalisation) for each in ids)
    found = link(_hash("first", first), _hash("second", second))
    rows = np.flatnonzero(found >= 0)
    right = people[0][rows] == people[1][found[rows]]
    common = np.intersect1d(*people)
    return LinkageTrial(len(rows), int(right.sum()), len(common))


def _hash(table: str, found: Sequence[KeyValues]) -> Tokens:
    """Return a token for each key and row; another one for each row without a value."""
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
    return as_texts(table, np.frombuffer(made, np.uint8).reshape(shape))

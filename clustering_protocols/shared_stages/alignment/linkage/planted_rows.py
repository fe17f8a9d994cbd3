"""Planted rows: people who do not exist, whom every party of a row group has.

An analyst links rows by tokens, and the parties cannot compare what their rows say:
cells of one person differ. So each party adds rows that all of the row group draw alike,
with values that are random to the analyst. It has to link them to each other as it links
people, without knowing which they are. Like people, they are written otherwise at some
parties: then only keys of other columns agree. An analyst that joins rows of different
people, or leaves common ones out, does so to planted rows too. The parties see it: each
where its own stand, and all of them in what they compare of the common rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import PartyContext, SessionContext
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import ByteArray, IntArray, MaskArray
from clustering_protocols.shared_stages.alignment.match_keys.match_key import (
    columns_of,
    read_match_key,
)
from clustering_protocols.shared_stages.row_selection import shares_any_rows
from clustering_protocols.shared_stages.secrets import group_stream, leads
from clustering_protocols.terms.terms import Layout

N_PLANTED: Final = 128
"""How many rows each party adds to its list."""
OTHERWISE: Final = 0.15
"""How often a party writes a column of such a person otherwise than the first party."""
SHOWS: Final = 0.7
"""How often a part of a key shows that: some steps make one of several spellings."""
_N_BYTES: Final = 32


def n_planted(layout: Layout) -> int:
    """Return how many rows are planted: none where parties have other people.

    There the parties have no rows in common that they could compare.
    """
    return N_PLANTED if shares_any_rows(layout) else 0


def n_listed(session: SessionContext, slot: str) -> int:
    """Return how many rows the list of a party has: its own, and the planted ones."""
    return session.member(slot).n_rows + n_planted(session.layout)


def planted_values(context: PartyContext, keys: Sequence[str]) -> ByteArray:
    """Return the values (k, p, 32) of the planted rows at this party, key by key."""
    shape = (len(keys), n_planted(context.session.layout), _N_BYTES)
    shared = _take(group_stream(context, "row", "planted-rows"), shape)
    if leads(context, "row"):
        return shared
    stream = context.lasting_stream("planted-rows")
    differing = draw_differing(stream, keys)
    return np.where(differing[..., None], _take(stream, shape), shared)


def draw_differing(stream: KeyedStream, keys: Sequence[str]) -> MaskArray:
    """Return which values (k, p) are not those of the first party; of no row all are."""
    columns, read = columns_of(keys), [read_match_key(key) for key in keys]
    parts = tuple(dict.fromkeys(part for key in read for part in key))
    otherwise = stream.uniform(len(columns), N_PLANTED) < OTHERWISE
    shows = stream.uniform(len(parts), N_PLANTED) < SHOWS
    of_column = np.array([[name in part.columns for name in columns] for part in parts])
    differs = shows & (of_column @ otherwise)
    of_part = np.array([[part in key for part in parts] for key in read])
    differing: MaskArray = of_part @ differs
    return differing & ~differing.all(axis=0)


def take_planted_out(
    rows: IntArray, n_rows: int, n_list: int
) -> tuple[IntArray, list[str]]:
    """Return the rows of people, and what all of the row group know of each place alike.

    rows: numbers in a list of ``n_rows`` rows and the planted ones, ``n_list`` in all, in
        the common order.

    Raises ProtocolFailed if a planted row is missing.
    """
    planted = rows >= n_rows
    if not np.array_equal(np.sort(rows[planted]), np.arange(n_rows, n_list)):
        raise ProtocolFailed(
            "The analyst joins rows of different people, or leaves common ones out: rows "
            "that all parties planted are not among them."
        )
    numbers = np.where(planted, rows - n_rows, -1)
    return rows[~planted], [f"planted:{number}" for number in numbers.tolist()]


def _take(stream: KeyedStream, shape: tuple[int, int, int]) -> ByteArray:
    drawn = np.frombuffer(stream.take(int(np.prod(shape))), dtype=np.uint8)
    return drawn.reshape(shape)

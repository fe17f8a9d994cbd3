"""Own rows that no match key linked, by line, with the keys of which they have no value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.alignment.match_keys.key_values import (
    key_values,
)
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from party_sdk.tables.table import Table

_MOST_TOLD: Final = 10


class UnlinkedRow(NamedTuple):
    """A row that is linked to nobody.

    line: where it stands in the table; its number, where there are no lines.
    lacks: the numbers, from 1, of the keys of which it has no value, or a shared one.
    """

    line: int
    lacks: tuple[int, ...]


def unlinked_rows(
    params: Params, data: DataSource, labels: IntArray
) -> list[UnlinkedRow]:
    """Return the rows without a label, where rows are linked by match keys."""
    if (
        not isinstance(params, AlignedParams)
        or not params.linked_by
        or data.ids is None
    ):
        return []
    said = params.alignment
    found = key_values(data.ids, said.match_keys, said.normalisation)
    rows = np.flatnonzero(labels < 0).tolist()
    lines = data.places.of(rows) if isinstance(data, Table) else [r + 1 for r in rows]
    return [
        UnlinkedRow(
            line,
            tuple(n for n, key in enumerate(found, 1) if key.values[row] is None),
        )
        for row, line in zip(rows, lines, strict=True)
    ]


def write_unlinked(rows: Sequence[UnlinkedRow]) -> bytes:
    """Return all of them as a table (CSV): their lines, and the keys that they lack."""
    lines = [f"{row.line},{' '.join(map(str, row.lacks))}" for row in rows]
    return "\n".join(["line,keys without a value", *lines, ""]).encode()


def tell_unlinked(rows: Sequence[UnlinkedRow]) -> list[str]:
    """Return what an operator reads: those that lack most keys first, ten at most."""
    if not rows:
        return []
    ordered = sorted(rows, key=lambda row: (-len(row.lacks), row.line))
    told = [
        f"  line {row.line}: no value, or a shared one, of key "
        f"{', '.join(map(str, row.lacks))}"
        for row in ordered[:_MOST_TOLD]
        if row.lacks
    ]
    n_whole = sum(not row.lacks for row in rows)
    more = "" if len(rows) <= _MOST_TOLD else "; --json lists all"
    return [
        f"unlinked rows: {len(rows)}, of which {n_whole} have a value of every key{more}",
        *told,
    ]

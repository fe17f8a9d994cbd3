"""Keyed marks of the rows of a table, by which a home knows them again.

A row is known by its id and by its cells as they were read, before any preparation. A
table without ids of which other columns are read is known by what its columns have in
common with those of an earlier one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final

import numpy as np

from clustering_protocols import codec
from clustering_protocols.arrays import IntArray, WordArray
from clustering_protocols.data import DataSource
from clustering_protocols.randomness import length_prefixed
from party_sdk._files import waiting
from party_sdk.column_sketches import sketches_of
from party_sdk.sealing import SecretFiles

KEY_FILE: Final = "rows.key"
PROFILED: Final = "profiled.arrays"
"""What 0.2.0 kept: its key goes on, so that its marks are found again."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowMarks:
    """Marks of the rows of one table, in their order.

    Attributes
    ----------
    ids : uint64 array of shape (n,), optional
        Of each row's id; None of a table without ids.
    cells : uint64 array of shape (n,)
        Of each row's cells, whatever the order of the columns.
    table : uint64 array of shape (n,)
        The same in the order of the columns: 0.2.0 took them so.
    sketches : mapping of str to uint64 array of shape (2, m)
        Of each column, by a mark of its name; see :mod:`party_sdk.column_sketches`.
    """

    ids: WordArray | None = field(repr=False)
    cells: WordArray = field(repr=False)
    table: WordArray = field(repr=False)
    sketches: Mapping[str, WordArray] = field(repr=False)

    @property
    def rows(self) -> WordArray:
        """Return one mark of each row (n,): of its id, or of its cells without ids."""
        return self.cells if self.ids is None else self.ids


def row_key(home: Path) -> bytes:
    """Return the 32 bytes under which a home marks rows; drawn at the first use."""
    files, path = SecretFiles(home), home / KEY_FILE
    if path.exists():
        return files.read(path)
    with waiting(path.with_name("rows.lock")):
        if not path.exists():
            files.write(path, _first_key(files, home / PROFILED))
    return files.read(path)


def _first_key(files: SecretFiles, profiled: Path) -> bytes:
    if not profiled.exists():
        return secrets.token_bytes(32)
    return bytes.fromhex(codec.decode(files.read(profiled))[0]["key"])


def marks_of(key: bytes, data: DataSource) -> RowMarks:
    """Return the marks of a table's rows, in their order.

    Parameters
    ----------
    key : bytes
        Of :func:`row_key`.
    data : DataSource
        As it was read; NaN is no value.
    """
    names = list(data.columns)
    order = np.argsort(names)
    is_sorted = bool((order == np.arange(len(names))).all())
    table = _of_rows(key, data, names, None)
    in_order = [names[place] for place in order]
    cells = table if is_sorted else _of_rows(key, data, in_order, order)
    return RowMarks(
        ids=_of_ids(key, data.ids),
        cells=cells,
        table=table,
        sketches=sketches_of(key, data),
    )


def _of_ids(key: bytes, ids: Sequence[str] | None) -> WordArray | None:
    if ids is None:
        return None
    named = sha256(key + b"ids").digest()
    return np.array([_mark(named, each.encode()) for each in ids], dtype=np.uint64)


def _of_rows(
    key: bytes, data: DataSource, names: Sequence[str], order: IntArray | None
) -> WordArray:
    """Return a number for each row (n,), equal for equal rows of the same columns."""
    named = sha256(key + length_prefixed(*names)).digest()
    found, begin = np.empty(data.n_rows, dtype=np.uint64), 0
    for batch in data.batches():
        taken = batch if order is None else batch[:, order]
        # one form of no value: readers write it with different bits
        rows = np.ascontiguousarray(np.where(np.isnan(taken), np.nan, taken))
        for number, row in enumerate(rows, begin):
            found[number] = _mark(named, row.data)
        begin += len(rows)
    return found


def _mark(key: bytes, content: bytes | memoryview) -> int:
    return int.from_bytes(blake2b(content, key=key, digest_size=8).digest(), "little")

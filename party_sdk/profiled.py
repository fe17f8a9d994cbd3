"""Which rows were in profiles before, so that no profile shows what another hid.

Whoever takes the profile of nearly the same rows off an earlier one reads the few that
differ, exactly. So a home keeps a mark of every row that went into a profile, and of its
id where it has one, in ``profiled.arrays``. It refuses another profile of which few own
rows, or ids, are new or gone: other columns of the same people are other rows, but not
other ids. What changes at other parties, and what other clusters of the same rows are
like, it cannot see: a risk sentence says so.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final

import numpy as np

from clustering_protocols import codec
from clustering_protocols.arrays import WordArray
from clustering_protocols.data import DataSource
from clustering_protocols.errors import GuardRefused
from clustering_protocols.randomness import length_prefixed
from clustering_protocols.terms import Terms
from party_sdk._files import waiting
from party_sdk.sealing import SecretFiles

_FILE: Final = "profiled.arrays"

_Marks = dict[str, WordArray]
"""Of one table: ``table``, a mark of each row; ``ids``, one of each id. Both sorted."""


class ProfiledRows:
    """Marks of the rows that one home has added to profiles."""

    def __init__(self, home: Path) -> None:
        self._files, self._path = SecretFiles(home), home / _FILE

    def check(self, terms: Terms, slot: str, data: DataSource) -> None:
        """Refuse a profile of rows of which few are new, or gone, since another.

        Parameters
        ----------
        data : DataSource
            What arrives of the party's table.

        Raises
        ------
        GuardRefused
        """
        if terms.release is None or not _is_added(terms, slot):
            return
        key, tables = self._read()
        if not tables:
            return
        smallest, marks = terms.release.min_cluster_rows, _marks(key, data)
        if any(0 < n < smallest for each in tables for n in _n_changed(each, marks)):
            raise GuardRefused(
                "A profile was added up of nearly the same rows before: whoever takes "
                f"one off the other reads the few that differ. At least {smallest} rows "
                "have to be new or gone, or none."
            )

    def keep(self, terms: Terms, slot: str, data: DataSource) -> None:
        """Keep marks of rows, before the first of them is added up."""
        if terms.release is None or not _is_added(terms, slot):
            return
        with waiting(self._path.with_name("profiled.lock")):
            key, tables = self._read()
            marks = _marks(key, data)
            if any(_are_equal(before, marks) for before in tables):
                return
            arrays = {
                f"{kind}.{n}": found
                for n, each in enumerate([*tables, marks])
                for kind, found in each.items()
            }
            self._files.write(self._path, codec.encode({"key": key.hex()}, arrays))

    def _read(self) -> tuple[bytes, list[_Marks]]:
        if not self._path.exists():
            return secrets.token_bytes(32), []
        header, arrays = codec.decode(self._files.read(self._path))
        tables: dict[str, _Marks] = {}
        for name, found in arrays.items():
            kind, number = name.split(".")
            tables.setdefault(number, {})[kind] = np.array(found)
        return bytes.fromhex(header["key"]), list(tables.values())


def _is_added(terms: Terms, slot: str) -> bool:
    """Return whether others read sums over this party's rows."""
    return terms.layout.adds_up(terms.layout.slot(slot).column)


def _marks(key: bytes, data: DataSource) -> _Marks:
    """Return the marks of a table's rows and, where it has any, of its ids."""
    found = {"table": _of_rows(key, data)}
    if data.ids is not None:
        named = sha256(key + b"ids").digest()
        ids = [_mark(named, each.encode()) for each in data.ids]
        found["ids"] = np.sort(np.array(ids, dtype=np.uint64))
    return found


def _of_rows(key: bytes, data: DataSource) -> WordArray:
    """Return a number for each row (n,), equal for equal rows of the same columns."""
    named = sha256(key + length_prefixed(*data.columns)).digest()
    found = np.empty(data.n_rows, dtype=np.uint64)
    begin = 0
    for batch in data.batches():
        # one form of no value: readers write it with different bits
        rows = np.ascontiguousarray(np.where(np.isnan(batch), np.nan, batch))
        for number, row in enumerate(rows, begin):
            found[number] = _mark(named, row.data)
        begin += len(rows)
    return np.sort(found)


def _mark(key: bytes, content: bytes | memoryview) -> int:
    return int.from_bytes(blake2b(content, key=key, digest_size=8).digest(), "little")


def _are_equal(one: _Marks, other: _Marks) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[kind], other[kind]) for kind in one
    )


def _n_changed(before: _Marks, now: _Marks) -> Iterator[int]:
    """Yield how many rows, and ids, are new or gone, whichever is more."""
    for kind in before.keys() & now.keys():
        yield _n_different(before[kind], now[kind])


def _n_different(before: WordArray, now: WordArray) -> int:
    """Return how many marks are new or gone, whichever is more."""
    marks, place = np.unique(np.concatenate([before, now]), return_inverse=True)
    sign = np.repeat([-1, 1], [len(before), len(now)])
    difference = np.bincount(place, sign, minlength=len(marks))
    return int(max(difference.clip(min=0).sum(), -difference.clip(max=0).sum()))

"""Which rows were in profiles before, so that no profile shows what another hid.

Whoever takes the profile of nearly the same rows off an earlier one reads the few that
differ, exactly. So a home keeps a mark of every row that went into a profile, in
``profiled.arrays``, and refuses another one of which few own rows are new or gone. What
changes at other parties it cannot see: a risk sentence says so.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final

import numpy as np

from clustering_protocols import codec
from clustering_protocols.arrays import WordArray
from clustering_protocols.data import DataSource
from clustering_protocols.errors import GuardRefused
from clustering_protocols.limits import MINIMUM_MEMBERS
from clustering_protocols.randomness import length_prefixed
from clustering_protocols.terms import Terms
from party_sdk._files import waiting
from party_sdk.sealing import SecretFiles

_FILE: Final = "profiled.arrays"


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
        if terms.release is None or not _adds_up(terms, slot):
            return
        key, tables = self._read()
        if not tables:
            return
        smallest, marks = terms.release.min_cluster_rows, _marks(key, data)
        if any(0 < _n_changed(before, marks) < smallest for before in tables):
            raise GuardRefused(
                "A profile was added up of nearly the same rows before: whoever takes "
                f"one off the other reads the few that differ. At least {smallest} rows "
                "have to be new or gone, or none."
            )

    def keep(self, terms: Terms, slot: str, data: DataSource) -> None:
        """Keep marks of rows, before the first of them is added up."""
        if terms.release is None or not _adds_up(terms, slot):
            return
        with waiting(self._path.with_name("profiled.lock")):
            key, tables = self._read()
            marks = _marks(key, data)
            if any(np.array_equal(before, marks) for before in tables):
                return
            arrays = {f"table.{n}": each for n, each in enumerate([*tables, marks])}
            self._files.write(self._path, codec.encode({"key": key.hex()}, arrays))

    def _read(self) -> tuple[bytes, list[WordArray]]:
        if not self._path.exists():
            return secrets.token_bytes(32), []
        header, arrays = codec.decode(self._files.read(self._path))
        tables = [np.array(arrays[f"table.{n}"]) for n in range(len(arrays))]
        return bytes.fromhex(header["key"]), tables


def _adds_up(terms: Terms, slot: str) -> bool:
    """Return whether others read sums over this party's rows."""
    layout = terms.layout
    return len(layout.column_group(layout.slot(slot).column)) >= MINIMUM_MEMBERS


def _marks(key: bytes, data: DataSource) -> WordArray:
    """Return a number for each row (n,), equal for equal rows of the same columns."""
    named = sha256(key + length_prefixed(*data.columns)).digest()
    found = np.empty(data.n_rows, dtype=np.uint64)
    begin = 0
    for batch in data.batches():
        # one form of no value: readers write it with different bits
        rows = np.ascontiguousarray(np.where(np.isnan(batch), np.nan, batch))
        for number, row in enumerate(rows, begin):
            mark = blake2b(row.data, key=named, digest_size=8).digest()
            found[number] = int.from_bytes(mark, "little")
        begin += len(rows)
    return np.sort(found)


def _n_changed(before: WordArray, now: WordArray) -> int:
    """Return how many rows are new or gone, whichever is more."""
    marks, place = np.unique(np.concatenate([before, now]), return_inverse=True)
    sign = np.repeat([-1, 1], [len(before), len(now)])
    difference = np.bincount(place, sign, minlength=len(marks))
    return int(max(difference.clip(min=0).sum(), -difference.clip(max=0).sum()))

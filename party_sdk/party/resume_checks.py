"""What must be unchanged when a party resumes: its data and its choices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any, Final

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import length_prefixed

_OBJECT: Final = "an object"


def data_digest(data: DataSource) -> str:
    """Return a SHA-256 over columns, ids and rows, in their order."""
    digest = sha256(length_prefixed(*data.columns))
    digest.update(length_prefixed(*(data.ids or ())))
    for batch in data.batches():
        # one form of no value: readers write it with different bits
        rows = np.where(np.isnan(batch), np.nan, batch)
        digest.update(np.ascontiguousarray(rows).reshape(-1).data)
    return digest.hexdigest()


def check_same_rows(kept: str | None, digest: str) -> None:
    """Refuse other data than a party joined with.

    kept: the digest of these; None where it has not joined.
    """
    if kept not in {None, digest}:
        raise GuardRefused(
            "This party joined with other data: rows, ids, columns or their order have "
            "changed since. Name the table as at first, --id-column and --columns too."
        )


def fingerprint(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of choices: values, and of objects that there was one."""
    return {name: _mark(value) for name, value in choices.items()}


def same_choices(
    kept: Mapping[str, Any], given: Mapping[str, Any], limits: Collection[str] = ()
) -> dict[str, Any]:
    """Return the choices of a party that continues: those that it began with.

    Values need not be given again; an object (a fitted transformer) must be. ``limits``
    are the names of those that say no more than whether an answer may leave: who was
    stopped by one may lift it.

    Raises GuardRefused if another value is given, or an object is missing.
    """
    again = {**kept, **fingerprint(given)}
    changed = {name for name, mark in again.items() if kept.get(name) != mark}
    changed.difference_update(limits)
    absent = {n for n, mark in kept.items() if mark == _OBJECT and n not in given}
    if changed | absent:
        named = ", ".join(sorted(changed | absent))
        raise GuardRefused(f"This party chose otherwise when it joined: {named}.")
    return {**kept, **given}


def _mark(value: Any) -> Any:
    plain = value is None or isinstance(value, bool | int | float | str)
    return value if plain else _OBJECT

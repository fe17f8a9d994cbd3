"""Checks that a process has the key and the blob store that belong to its database.

With another key nobody could verify the signatures, and with another store the arrays
of the sessions would be missing. Therefore the database records the key, and a random
name that is also written into the store as its mark. The mark moves with the arrays.
Any store without a mark is accepted until the database records that it was marked.
"""

from __future__ import annotations

import secrets
from typing import Final

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.blobs import FileBlobStore
from analyst_service.database import Database
from analyst_service.models import Installation
from analyst_service.retention import find_live_digests

_ROW_ID: Final = 1
_OF_ANOTHER: Final = "it has the mark of another database"


class InstallationMismatch(Exception):
    """Raised if a process was started with the key or blob store of another database."""


class KeyMismatch(InstallationMismatch):
    """Raised if the analyst's public key (hex) is not the one that the database records."""

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__("the key of another database")
        self.expected, self.actual = expected, actual


class StoreMismatch(InstallationMismatch):
    """Raised if the blob store has a wrong mark or none, or lacks arrays of sessions."""


def check_installation(database: Database, key: str, store: FileBlobStore) -> None:
    """Check the key and store of a process. On the first start, record them instead.

    If several processes start at once, those of the first one are recorded and the
    others are checked against them.

    key: the public key (hex).

    Raises InstallationMismatch if the database has recorded another key or another store.
    """
    with database.read() as transaction:
        row = transaction.get(Installation, _ROW_ID)
    if row is None:
        database.transact(_record_installation, key, store)
    if row is None or not row.is_marked:
        database.transact(_mark_store, key, store)
        return
    _require_match(row, key, store)


def has_recorded_installation(database: Database) -> bool:
    """Return whether a database records a key and a store of arrays."""
    with database.read() as transaction:
        return transaction.get(Installation, _ROW_ID) is not None


def adopt_key(database: Database, key: str) -> None:
    """Replace the key that :func:`check_installation` recorded at the first start."""
    change = sa.update(Installation).values(key=key)
    database.transact(lambda transaction: transaction.execute(change))


def adopt_store(database: Database, key: str, store: FileBlobStore) -> None:
    """Record this store as the database's, and give it a new mark that no other store has.

    Raises StoreMismatch if this store lacks arrays that sessions refer to.
    """

    def mark_as_own_store(transaction: Transaction) -> None:
        if not store.has_all(find_live_digests(transaction)):
            raise StoreMismatch("it lacks arrays that sessions of the database name")
        row = transaction.get(Installation, _ROW_ID, with_for_update=True)
        new = transaction.merge(_new_row(key if row is None else row.key))
        store.write_mark(new.store)
        new.is_marked = True

    database.transact(mark_as_own_store)


def _new_row(key: str) -> Installation:
    name = secrets.token_hex(16)
    return Installation(id=_ROW_ID, key=key, store=name, is_marked=False)


def _record_installation(
    transaction: Transaction, key: str, store: FileBlobStore
) -> None:
    """Create the row before the mark is written, so that no mark refers to a lost row."""
    if transaction.get(Installation, _ROW_ID) is not None:
        return
    if store.read_mark() is not None:
        raise StoreMismatch(_OF_ANOTHER)
    transaction.add(_new_row(key))


def _mark_store(transaction: Transaction, key: str, store: FileBlobStore) -> None:
    """Mark the store while the row is locked, so that only one store gets the mark."""
    row = transaction.get_one(Installation, _ROW_ID, with_for_update=True)
    if row.key == key and not row.is_marked and store.read_mark() is None:
        store.write_mark(row.store)
    _require_match(row, key, store)
    row.is_marked = True


def _require_match(row: Installation, key: str, store: FileBlobStore) -> None:
    if row.key != key:
        raise KeyMismatch(row.key, key)
    mark = store.read_mark()
    if mark != row.store:
        raise StoreMismatch("it has no mark" if mark is None else _OF_ANOTHER)

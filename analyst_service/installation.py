"""Checks that a database has its own analyst's key and its own store of arrays.

With another key nobody could check the signatures; with another store the sessions'
arrays would be missing. So the database records the key, and a random name that is
written into the store as a mark and moves with the arrays. Until the database has
recorded that the mark is written, any unmarked store is accepted.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.blobs import FileBlobStore
from analyst_service.database import Database
from analyst_service.models import Installation
from analyst_service.retention import live_digests

_ROW_ID: Final = 1
_OF_ANOTHER: Final = "it has the mark of another database"


class ForeignPart(Exception):
    """A process was started with a key or a store that belongs to another database."""


class ForeignKey(ForeignPart):
    """The analyst's key is not the database's; public keys are in hex."""

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__("the key of another database")
        self.expected, self.actual = expected, actual


class ForeignStore(ForeignPart):
    """The store has another mark or none, or lacks arrays of sessions."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Parts:
    """The public key (hex) and the store that a process was started with."""

    key: str
    store: FileBlobStore


def check_parts(database: Database, parts: Parts) -> None:
    """Check a process's key and store; on the first start the database adopts them.

    If several processes start at once, the first one is recorded and the others are
    checked against it.

    Raises ForeignPart if the database has another key or another store.
    """
    with database.read() as transaction:
        row = transaction.get(Installation, _ROW_ID)
    if row is None:
        database.transact(lambda transaction: _record(transaction, parts))
    if row is None or not row.is_marked:
        database.transact(lambda transaction: _mark_store(transaction, parts))
        return
    _check(row, parts)


def adopt_key(database: Database, key: str) -> None:
    """Replace the key that :func:`check_parts` recorded on the first start."""
    change = sa.update(Installation).values(key=key)
    database.transact(lambda transaction: transaction.execute(change))


def adopt_store(database: Database, parts: Parts) -> None:
    """Replace the database's store: this one gets a new mark, which no other store has.

    Raises ForeignStore if this store lacks arrays that sessions name.
    """

    def adopt(transaction: Transaction) -> None:
        if not parts.store.has_all(live_digests(transaction)):
            raise ForeignStore("it lacks arrays that sessions of the database name")
        row = transaction.get(Installation, _ROW_ID, with_for_update=True)
        new = transaction.merge(_new_row(parts.key if row is None else row.key))
        parts.store.set_mark(new.store)
        new.is_marked = True

    database.transact(adopt)


def _new_row(key: str) -> Installation:
    name = secrets.token_hex(16)
    return Installation(id=_ROW_ID, key=key, store=name, is_marked=False)


def _record(transaction: Transaction, parts: Parts) -> None:
    """Write the row before the mark, so that no mark names a row that was lost."""
    if transaction.get(Installation, _ROW_ID) is not None:
        return
    if parts.store.mark() is not None:
        raise ForeignStore(_OF_ANOTHER)
    transaction.add(_new_row(parts.key))


def _mark_store(transaction: Transaction, parts: Parts) -> None:
    """Mark the store; the row is locked, so that only one store gets the mark."""
    row = transaction.get_one(Installation, _ROW_ID, with_for_update=True)
    if row.key == parts.key and not row.is_marked and parts.store.mark() is None:
        parts.store.set_mark(row.store)
    _check(row, parts)
    row.is_marked = True


def _check(row: Installation, parts: Parts) -> None:
    if row.key != parts.key:
        raise ForeignKey(row.key, parts.key)
    mark = parts.store.mark()
    if mark != row.store:
        raise ForeignStore("it has no mark" if mark is None else _OF_ANOTHER)

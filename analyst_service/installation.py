"""What belongs to a database: one key of an analyst, and one store of arrays.

A process with another of either would sign what nobody can check, or miss the arrays of
sessions. So the database names both. It draws a name for the store and has it written
there as a mark, which moves with the arrays. Until the database knows that the mark is
there, the store may still be any.
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

_ONLY: Final = 1
_OF_ANOTHER: Final = "it has the mark of another database"


class ForeignPart(Exception):
    """What a process was given is not what belongs to its database."""


class ForeignKey(ForeignPart):
    """The analyst's key is another one; the public halves are in hex."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__("another key")
        self.expected, self.found = expected, found


class ForeignStore(ForeignPart):
    """The store has another mark, has none any more, or lacks arrays of sessions."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found


@dataclass(frozen=True, slots=True)
class Parts:
    """What a process was given: the public key (hex) and its store."""

    key: str
    store: FileBlobStore


def check_parts(database: Database, parts: Parts) -> None:
    """Check what a process was given; on the first start it becomes the database's own.

    Of processes that start at once, one finds nothing here and the others what it wrote.

    Raises ForeignPart if the database has another key or another store.
    """
    with database.read() as transaction:
        row = transaction.get(Installation, _ONLY)
    if row is None:
        database.transact(lambda transaction: _adopt(transaction, parts))
    if row is None or not row.is_marked:
        database.transact(lambda transaction: _mark(transaction, parts))
        return
    _check(row, parts)


def adopt_key(database: Database, key: str) -> None:
    """Make another key the database's own, after :func:`check_parts` wrote the first."""
    change = sa.update(Installation).values(key=key)
    database.transact(lambda transaction: transaction.execute(change))


def adopt_store(database: Database, parts: Parts) -> None:
    """Make a store the database's own: it gets a new mark, and no other store fits now.

    Raises ForeignStore if it lacks arrays that sessions name.
    """

    def adopt(transaction: Transaction) -> None:
        _check_arrays(transaction, parts.store)
        row = transaction.get(Installation, _ONLY, with_for_update=True)
        new = transaction.merge(_new(parts.key if row is None else row.key))
        parts.store.set_mark(new.store)
        new.is_marked = True

    database.transact(adopt)


def _new(key: str) -> Installation:
    name = secrets.token_hex(16)
    return Installation(id=_ONLY, key=key, store=name, is_marked=False)


def _adopt(transaction: Transaction, parts: Parts) -> None:
    """Write what belongs here, before any mark: so no mark is of a name that is lost."""
    if transaction.get(Installation, _ONLY) is not None:
        return
    if parts.store.mark() is not None:
        raise ForeignStore(_OF_ANOTHER)
    transaction.add(_new(parts.key))  # anyone who comes second finds the first one's


def _mark(transaction: Transaction, parts: Parts) -> None:
    """Mark the store. The row is locked, so that one store alone gets the mark."""
    row = transaction.get_one(Installation, _ONLY, with_for_update=True)
    if row.key == parts.key and not row.is_marked and parts.store.mark() is None:
        parts.store.set_mark(row.store)
    _check(row, parts)
    row.is_marked = True


def _check(row: Installation, parts: Parts) -> None:
    if row.key != parts.key:
        raise ForeignKey(row.key, parts.key)
    found = parts.store.mark()
    if found != row.store:
        raise ForeignStore("it has no mark" if found is None else _OF_ANOTHER)


def _check_arrays(transaction: Transaction, store: FileBlobStore) -> None:
    if not store.have(live_digests(transaction)):
        raise ForeignStore("it lacks arrays that sessions of the database name")

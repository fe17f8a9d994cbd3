"""``home.db``: the SQLite database of everything in a home except the editable policy.

The database is in WAL mode. Durable transactions are synced to disk, and erased content
is overwritten with zeros. All writes go through ``with store.transaction():``.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import Any, Final
from urllib.parse import quote

from clustering_protocols.common.errors import CoterieError, InvalidParameters, NotReady
from party_sdk.home.disk_room import disk_full_error, report_full_disk
from party_sdk.home.files import create_private_folder, try_lock, write_private

FILE: Final = "home.db"
VERSION: Final = 1
_STORED: Final = "Keys and answers are stored there."
_WAIT_SECONDS: Final = 30.0  # longest wait for a transaction of another process

_SCHEMA: Final = """
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,  -- the lock file of the process
    note TEXT NOT NULL
);
CREATE TABLE secrets (  -- the institution with its key, and the key of row marks
    name TEXT PRIMARY KEY,
    content BLOB NOT NULL
);
CREATE TABLE trusted_institutions (
    name TEXT PRIMARY KEY,
    key TEXT NOT NULL
);
CREATE TABLE analysts (  -- at which sessions were opened
    url TEXT PRIMARY KEY,
    key TEXT NOT NULL
);
CREATE TABLE sessions (  -- that were opened from here: their secrets
    id TEXT PRIMARY KEY,
    content TEXT NOT NULL
);
CREATE TABLE desk_links (  -- digests of links that open the desk
    digest TEXT NOT NULL,
    until TEXT NOT NULL
);
CREATE TABLE parties (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    slot TEXT NOT NULL,
    is_forgotten INTEGER NOT NULL DEFAULT 0,
    identity TEXT,  -- JSON; NULL before the terms were accepted
    consent TEXT,  -- JSON; NULL before the terms were accepted
    stop_announced INTEGER NOT NULL DEFAULT 0,  -- to the analyst
    cluster_names TEXT NOT NULL DEFAULT '{}'
);
CREATE UNIQUE INDEX current_parties ON parties (session, slot) WHERE NOT is_forgotten;
CREATE TABLE documents (  -- agreement, result, report, moments
    party INTEGER NOT NULL REFERENCES parties ON DELETE CASCADE,
    name TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (party, name)
);
CREATE TABLE answers (  -- the last one of each party
    party INTEGER PRIMARY KEY REFERENCES parties ON DELETE CASCADE,
    round INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    task_digest TEXT NOT NULL,
    contribution_digest TEXT NOT NULL,
    contribution BLOB NOT NULL,
    journal BLOB NOT NULL
);
CREATE TABLE memory (  -- before and after the last answer
    party INTEGER NOT NULL REFERENCES parties ON DELETE CASCADE,
    moment TEXT NOT NULL,
    kind TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (party, moment, kind)
);
CREATE TABLE ledger (
    party INTEGER NOT NULL REFERENCES parties ON DELETE CASCADE,
    number INTEGER NOT NULL,
    event TEXT NOT NULL,
    round INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (party, number)
) WITHOUT ROWID;
CREATE INDEX ledger_places ON ledger (party, round, attempt);
CREATE TABLE mappings (
    party INTEGER NOT NULL REFERENCES parties ON DELETE CASCADE,
    version INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (party, version)
);
CREATE TABLE disclosures (  -- uses of rows, marks of rows, tables that were seen
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    content BLOB NOT NULL,
    UNIQUE (kind, name) ON CONFLICT REPLACE
);
CREATE TABLE orders (  -- of the desk, as JSON
    party INTEGER PRIMARY KEY REFERENCES parties ON DELETE CASCADE,
    content TEXT NOT NULL,
    status TEXT NOT NULL,
    question TEXT,
    version INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE decisions (
    party INTEGER NOT NULL REFERENCES parties ON DELETE CASCADE,
    content TEXT NOT NULL
);
CREATE TABLE outputs (  -- files that were written for a session
    party INTEGER NOT NULL REFERENCES parties ON DELETE CASCADE,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (party, path)
);
"""


class HomeStore:
    """The database of one home, as opened by this process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.path = home / FILE
        self._mutex = RLock()
        self._depth, self._durable, self._synchronous = 0, True, ""
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Open a write transaction, or join the one that this store already has open.

        durable: whether the commit waits until the changes have reached the disk. If
            not, a power failure before the next durable commit may lose the changes,
            but a crash cannot.

        Raises StorageFull if the disk is full, NotReady if the database is damaged or
        busy for too long, and InvalidParameters if it cannot be written.
        """
        with self._mutex, self._translate_errors():
            if self._depth:
                if durable and not self._durable:
                    raise RuntimeError("The outer transaction is not durable.")
                yield self._open()
                return
            if not self.path.exists():
                self._create()
            database = self._open()
            if self._synchronous != (level := "FULL" if durable else "NORMAL"):
                database.execute(f"PRAGMA synchronous = {level}")
                self._synchronous = level
            database.execute("BEGIN IMMEDIATE")
            self._depth, self._durable = 1, durable
            try:
                yield database
                database.execute("COMMIT")
            finally:
                self._depth = 0
                if database.in_transaction:
                    database.execute("ROLLBACK")

    def fetch_rows(self, statement: str, *values: Any) -> list[Any]:
        """Run a query and return its rows; an empty list if the home does not exist yet."""
        with self._mutex, self._translate_errors():
            return self._open().execute(statement, values).fetchall()

    def fetch_row(self, statement: str, *values: Any) -> Any:
        """Run a query and return its first row, or None if there is none."""
        return next(iter(self.fetch_rows(statement, *values)), None)

    def erase_log(self) -> None:
        """Truncate the write-ahead log, so that it no longer contains erased content.

        The method waits for readers in other processes. Backups are not affected.
        """
        with self._mutex, self._translate_errors():
            self._open().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def publish(self, name: str, content: bytes) -> Path:
        """Write a private file next to the database, and return its absolute path."""
        path = create_private_folder(self.home) / name
        write_private(path, content)
        return path.absolute()

    def find_damage(self) -> str:
        """Return a description of damage to the database file; empty if it is intact."""
        try:
            [verdict] = self.fetch_rows("PRAGMA integrity_check(1)")[0]
        except CoterieError as error:
            return error.detail
        return "" if verdict == "ok" else f"{self.path} is damaged: {verdict}"

    @contextmanager
    def lease(self, name: str, note: str = "") -> Iterator[None]:
        """Hold the exclusive lease of a name, which is released even after a crash.

        The holder keeps a lock on a file of its own. Other processes, even in other
        containers, can thus tell that the holder is alive.

        Raises NotReady if another process holds the lease, and InvalidParameters if
        files of the home cannot be locked.
        """
        create_private_folder(self.home)
        token = secrets.token_hex(8)
        file = self._lock_file(token)
        try:
            with os.fdopen(_create_private(file), "wb") as lock_file:
                if not try_lock(lock_file):  # others would consider the lease free
                    raise InvalidParameters(
                        f"Files in {self.home} cannot be locked: name a --home on a disk of "
                        "this machine."
                    )
                with self.transaction(durable=False) as database:
                    if self.lease_holder(name) is not None:
                        raise NotReady(f"Another process is at work on {name}.")
                    lease = name, token, note
                    database.execute(
                        "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", lease
                    )
                try:
                    yield
                finally:
                    with self.transaction(durable=False) as database:
                        released = "DELETE FROM leases WHERE holder = ?"
                        database.execute(released, (token,))
        finally:
            file.unlink(missing_ok=True)

    def lease_holder(self, name: str) -> str | None:
        """Return the note of the process that holds a lease, or None if nobody holds it."""
        row = self.fetch_row("SELECT holder, note FROM leases WHERE name = ?", name)
        if row is None:
            return None
        file = self._lock_file(row[0])
        try:
            with file.open("rb+") as lock_file:
                if not try_lock(lock_file):
                    return str(row[1])
        except FileNotFoundError:
            return None
        file.unlink(missing_ok=True)  # left behind by a killed holder
        return None

    def close(self) -> None:
        """Close the connection. The next use of the store opens a new one."""
        with self._mutex:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        self.close()

    def _lock_file(self, token: str) -> Path:
        return self.home / f".{token}.lock"

    def _open(self) -> sqlite3.Connection:
        """Return the connection; if there is no file, to an empty database in memory."""
        try:
            inode = self.path.stat().st_ino
        except FileNotFoundError:
            inode = None
        if self._connection is None or inode != self._inode:
            self.close()
            self._connection, self._inode = self._connect(inode), inode
            self._synchronous = ""
        return self._connection

    def _connect(self, inode: int | None) -> sqlite3.Connection:
        if inode is None:
            database = _connect(":memory:")
            database.executescript(_SCHEMA)
            return database
        database = _connect(f"file:{quote(str(self.path.absolute()))}?mode=rw")
        [version] = database.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            database.close()
            raise NotReady(
                f"{self.path} has format version {version}, and this release of coterie "
                f"reads {VERSION}: install the release that wrote it, or a newer one."
            )
        return database

    def _create(self) -> None:
        create_private_folder(self.home)
        draft = self.path.with_name(f".{FILE}.{secrets.token_hex(8)}")
        with report_full_disk(self.home, _STORED):
            os.close(_create_private(draft))
        try:
            with closing(_connect(f"file:{quote(str(draft.absolute()))}")) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.executescript(
                    f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;"
                )
            try:
                self.path.hardlink_to(draft)
            except FileExistsError:
                return
        finally:
            for leftover in self.home.glob(f"{draft.name}*"):
                leftover.unlink()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._to_coterie_error(error) from None

    def _to_coterie_error(self, error: sqlite3.DatabaseError) -> CoterieError:
        name = error.sqlite_errorname
        if name in {"SQLITE_FULL", "SQLITE_IOERR_WRITE"}:
            return disk_full_error(self.home, _STORED)
        if name.startswith("SQLITE_BUSY"):
            return NotReady(
                f"Another process has been writing in {self.path} for too long."
            )
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return NotReady(f"{self.path} is damaged: restore a copy of the home.")
        return InvalidParameters(
            f"The home {self.home} cannot be read or written: {error}."
        )


def _create_private(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _connect(address: str) -> sqlite3.Connection:
    database = sqlite3.connect(
        address,
        timeout=_WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    database.row_factory = sqlite3.Row
    database.execute("PRAGMA secure_delete = ON")
    database.execute("PRAGMA temp_store = MEMORY")  # no secrets in temporary files
    database.execute("PRAGMA foreign_keys = ON")
    return database


@lru_cache(maxsize=16)
def _store_at(home: Path) -> HomeStore:
    return HomeStore(home)


def store_of(home: Path) -> HomeStore:
    """Return the store of a home. Each process opens only one per home."""
    return _store_at(home.absolute())

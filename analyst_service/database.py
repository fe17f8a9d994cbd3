"""Connections and transactions, on SQLite and PostgreSQL alike.

SQLAlchemy's sessions are called *units* here (a unit of work), because a session is
something else in this project.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session as Transaction

if TYPE_CHECKING:
    from alembic.config import Config

_WRITES = "coterie_writes"
_TAKEN_AT, _USED_AT = "coterie_taken_at", "coterie_used_at"
_BUSY_MILLISECONDS = 30_000
_CONNECT_SECONDS = 5
_IDLE_SECONDS = 1.0  # after that a connection is asked whether it lives
_REPEATS = 5
# the framework runs up to forty requests in threads, driver and keeper beside them
_POOL: Mapping[str, Any] = {"pool_size": 10, "max_overflow": 32, "pool_timeout": 10}
_CONFLICTS = frozenset({"40001", "40P01"})  # serialization failure, deadlock
# the table in which alembic keeps where a database stands
_REVISIONS = sa.table("alembic_version", sa.column("version_num", sa.String))
T = TypeVar("T")


class Database:
    """One database; hands out read and write transactions."""

    def __init__(self, url: str) -> None:
        self.engine = sa.create_engine(url, **_POOL, **_at(url))
        self._reading = self.engine
        self._turn: AbstractContextManager[object] = nullcontext()
        if self.engine.dialect.name == "sqlite":
            _set_up_sqlite(self.engine)
            # one writes at a time; SQLite itself lets who waits try again and again
            self._turn = threading.Lock()
        else:
            _ask_whether_connections_live(self.engine)
            # each query sees what was committed when it began, in a transaction or
            # none: to begin and end one is two ways to the server and back
            self._reading = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._writing = self.engine.execution_options(**{_WRITES: True})

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a transaction that nothing is written in: for queries."""
        with Transaction(
            self._reading, expire_on_commit=False, autoflush=False
        ) as transaction:
            yield transaction

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction that is committed, unless an exception leaves it.

        On SQLite it takes the write lock when it begins: a transaction that reads first
        and writes later would fail as soon as two of them meet.
        """
        with (
            self._turn,
            Transaction(self._writing, expire_on_commit=False) as transaction,
            transaction.begin(),
        ):
            yield transaction

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Return what work returns, once its transaction is committed.

        Work is repeated after a conflict with another transaction, so it must change
        nothing but what it may change again.
        """
        for _ in range(_REPEATS):
            try:
                with self.write() as transaction:
                    return work(transaction)
            except DBAPIError as error:
                if not _is_conflict(error):
                    raise
        with self.write() as transaction:
            return work(transaction)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    # Migrations

    def migrate(self, revision: str = "head") -> None:
        """Bring the schema to a revision; by default the one that this release needs."""
        from alembic import command  # a service that serves never loads it

        command.upgrade(_alembic(self.engine), revision)

    def is_current(self) -> bool:
        """Return whether the schema is the one that this release needs."""
        return self.revision() == head()

    def knows(self, revision: str) -> bool:
        """Return whether a revision is this release's, or that of one before it."""
        return revision in _revisions()

    def revision(self) -> str | None:
        """Return the revision of the schema; None where there is none."""
        with self.engine.connect() as connection:
            if not sa.inspect(connection).has_table(_REVISIONS.name):
                return None
            return connection.scalar(sa.select(_REVISIONS.c.version_num))


def _at(url: str) -> dict[str, Any]:
    """Return how to connect: to a server, which is not waited for while it is away."""
    if sa.make_url(url).get_backend_name() == "sqlite":
        return {}
    connecting = {"connect_timeout": _CONNECT_SECONDS}
    return {"connect_args": connecting}


def _is_conflict(error: DBAPIError) -> bool:
    """Return whether the same again may succeed: others were faster, or in the way."""
    state = getattr(error.orig, "sqlstate", None)
    return isinstance(error, IntegrityError) or state in _CONFLICTS


def _alembic(engine: sa.Engine) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_migrations()))
    config.attributes["engine"] = engine
    return config


def head() -> str:
    """Return the revision of this release."""
    return max(_revisions())


def _revisions() -> set[str]:
    """Return all that this release knows: files begin with them, and are in order."""
    files = (_migrations() / "versions").glob("[0-9]*.py")
    return {path.name.partition("_")[0] for path in files}


def _migrations() -> Path:
    """Return the folder of migrations: inside the wheel, or beside the checkout."""
    package = Path(__file__).parent
    inside = package / "alembic"
    return inside if inside.is_dir() else package.parent / "alembic"


def _ask_whether_connections_live(engine: sa.Engine) -> None:
    """Ask those that nobody has used for a second, or since before anything failed.

    The pool could ask each time, which is one more way to the server and back for each
    transaction. So one that ends within a second of its use may fail the first request
    that gets it; the next ones get none of its like.
    """
    failed_at = -math.inf

    @sa.event.listens_for(engine, "handle_error")
    def _fail(context: Any) -> None:
        nonlocal failed_at
        del context
        failed_at = time.monotonic()

    @sa.event.listens_for(engine, "checkin")
    def _checkin(connection: Any, record: Any) -> None:
        del connection
        lives = record.info.get(_TAKEN_AT, -math.inf) > failed_at
        record.info[_USED_AT] = time.monotonic() if lives else -math.inf

    @sa.event.listens_for(engine, "checkout")
    def _checkout(connection: Any, record: Any, proxy: Any) -> None:
        del proxy
        now = record.info[_TAKEN_AT] = time.monotonic()
        used_at = record.info.get(_USED_AT, now)  # a new one lives
        if used_at > max(now - _IDLE_SECONDS, failed_at):
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            raise sa.exc.InvalidatePoolError from None


def _set_up_sqlite(engine: sa.Engine) -> None:
    @sa.event.listens_for(engine, "connect")
    def _connect(connection: Any, record: Any) -> None:
        del record
        connection.isolation_level = None  # we say BEGIN ourselves
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",  # a commit survives a loss of power
            "foreign_keys=ON",
            f"busy_timeout={_BUSY_MILLISECONDS}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

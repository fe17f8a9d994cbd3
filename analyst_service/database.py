"""Connections and transactions, for both SQLite and PostgreSQL.

SQLAlchemy's sessions are called *transactions* here, and their variables ``db``,
because a session is something else in this project.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session

from coterie.build import find_migrations, find_schema

if TYPE_CHECKING:
    from alembic.config import Config

# Clocks: the rest of the service gets the time of day from one of these.


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        ...

    def synchronise(self) -> None:
        """Read the time again from its source, which may take a while."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)

    def synchronise(self) -> None:
        """Do nothing, because every reading is new."""


class ServerClock:
    """The clock of a database server, which all analysts of the database share.

    :meth:`synchronise` asks the server for the time. Until the next call the elapsed
    time is measured by this machine's monotonic clock, which nobody can set.

    ask: returns the server's time in UTC; its exceptions are propagated.
    """

    def __init__(self, ask: Callable[[], datetime]) -> None:
        self._ask = ask
        self._answer: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return the current time in UTC."""
        if self._answer is None:
            self.synchronise()
            return self.now()
        server_time, at = self._answer
        return server_time + timedelta(seconds=time.monotonic() - at)

    def synchronise(self) -> None:
        """Ask the server for the time."""
        begin = time.monotonic()
        server_time = self._ask()
        # assume that the server read its clock in the middle of the round trip
        self._answer = server_time, (begin + time.monotonic()) / 2


# The schema: its revision, which Alembic stores in a table, and migrations.

_REVISIONS = sa.table("alembic_version", sa.column("version_num", sa.String))


def build_alembic_config(bind: sa.Engine | sa.Connection) -> Config:
    """Return a configuration that makes Alembic's commands use our connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(find_migrations()))
    config.attributes["on"] = bind
    return config


def migrate_schema(bind: sa.Engine | sa.Connection, revision: str = "head") -> None:
    """Upgrade the schema to a revision, within the transaction of a given connection."""
    from alembic import command  # only commands load it, never a running service

    command.upgrade(build_alembic_config(bind), revision)


@contextmanager
def begin_schema_change(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Begin a transaction that may alter tables, and commit it at the end.

    Only one process at a time is in such a transaction; on PostgreSQL others wait.
    SQLite alters a table by copying and dropping it, so foreign keys are only checked
    before the commit. The pragma that turns the other checks off has no effect in a
    transaction, so the driver's connection executes it first. Raises BrokenForeignKeys
    if a foreign key refers to a missing row before the commit.
    """
    if engine.dialect.name != "sqlite":
        with engine.begin() as connection:
            connection.execute(_LOCK_SCHEMA, {"key": _SCHEMA_CHANGE})
            yield connection
        return
    with engine.execution_options(**{_WRITES: True}).connect() as connection:
        driver = connection.connection.driver_connection
        if driver is None:
            raise AssertionError("an open connection has a driver")
        driver.execute("PRAGMA foreign_keys=OFF")
        try:
            with connection.begin():
                yield connection
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
                if broken:
                    raise BrokenForeignKeys(
                        f"{len(broken)} rows refer to missing rows."
                    )
        finally:
            driver.execute("PRAGMA foreign_keys=ON")


class BrokenForeignKeys(Exception):
    """Raised if a migration leaves foreign keys that refer to missing rows."""


_WRITES = "coterie_writes"
_TAKEN_AT, _USED_AT = "coterie_taken_at", "coterie_used_at"
_BUSY_MILLISECONDS = 30_000
_CONNECT_SECONDS = 5
_IDLE_SECONDS = 1.0  # connections that were idle for longer are tested before use
_REPEATS = 5
_MOST_CONNECTIONS = 20
_POOLED_CONNECTIONS = 10  # further connections are closed when they are returned
_FREE_SECONDS = 30  # timeout for a free connection, in the pool or on the server
_FULL = ("too many clients", "too many connections", "connection slots are reserved")
_ASK_AGAIN_SECONDS = 0.1
_CONFLICTS = frozenset({"40001", "40P01"})  # serialization failure, deadlock
_SERVER_TIME = sa.select(sa.func.clock_timestamp(type_=sa.DateTime(timezone=True)))
_SCHEMA_CHANGE = 0x636F_7465_7269_66  # advisory lock, held while the schema is changed
_LOCK_SCHEMA = sa.text("SELECT pg_advisory_xact_lock(:key)")
P = ParamSpec("P")
T = TypeVar("T")


class Transaction(Session):
    """A database transaction, with the clock that provides its timestamps."""

    def __init__(
        self, engine: sa.Engine | sa.Connection, clock: Clock, *, autoflush: bool
    ) -> None:
        super().__init__(engine, expire_on_commit=False, autoflush=autoflush)
        self.clock = clock

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return self.clock.now()


class Database:
    """A database, which provides read and write transactions.

    connections: the maximum number of open connections; threads wait for a free one.
    clock: by default the clock shared by all users of the database: the server's for
        PostgreSQL, and this machine's for SQLite, whose file only one machine uses.
    """

    def __init__(
        self,
        url: str,
        connections: int = _MOST_CONNECTIONS,
        clock: Clock | None = None,
    ) -> None:
        is_file = sa.make_url(url).get_backend_name() == "sqlite"
        pooled = min(connections, _POOLED_CONNECTIONS)
        self.engine = sa.create_engine(
            url,
            pool_size=pooled,
            max_overflow=connections - pooled,
            pool_timeout=_FREE_SECONDS,
            hide_parameters=True,  # keeps rows out of error messages
            **({} if is_file else _SERVER_OPTIONS),
        )
        self._reading = self.engine
        self._write_lock: AbstractContextManager[object] = nullcontext()
        if is_file:
            _set_up_sqlite(self.engine)
            # Threads wait for this lock, because SQLite would poll for its own.
            self._write_lock = threading.Lock()
        else:
            _test_idle_connections(self.engine)
            # Queries would see the same data within a transaction, but BEGIN and COMMIT
            # would cost two more round trips.
            self._reading = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._writing = self.engine.execution_options(**{_WRITES: True})
        own = SystemClock() if is_file else ServerClock(self._server_time)
        self.clock: Clock = clock or own

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Begin a transaction for queries only."""
        with Transaction(self._reading, self.clock, autoflush=False) as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Begin a transaction that is committed unless an exception is raised in it.

        On SQLite the transaction takes the write lock when it begins. If two
        transactions took the lock only after they had read rows, one of them would
        fail.
        """
        writing = Transaction(self._writing, self.clock, autoflush=True)
        with self._write_lock, writing as db, db.begin():
            yield db

    def query(
        self, work: Callable[Concatenate[Transaction, P], T], *a: P.args, **k: P.kwargs
    ) -> T:
        """Call ``work`` with a transaction for queries, and return its result."""
        with self.read() as db:
            return work(db, *a, **k)

    def transact(
        self, work: Callable[Concatenate[Transaction, P], T], *a: P.args, **k: P.kwargs
    ) -> T:
        """Call ``work`` in a write transaction, commit, and return its result.

        After a conflict with another transaction ``work`` is called again, so any
        effects outside of the database must be repeatable.
        """
        for _ in range(_REPEATS):
            try:
                with self.write() as db:
                    return work(db, *a, **k)
            except DBAPIError as error:
                if not _is_conflict(error):
                    raise
        with self.write() as db:
            return work(db, *a, **k)

    def _server_time(self) -> datetime:
        with self._reading.connect() as connection:
            server_time = connection.scalars(_SERVER_TIME).one()
        return server_time.astimezone(UTC)

    def truncate_write_ahead_log(self) -> None:
        """Erase deleted rows from SQLite's write-ahead log, unless a reader is using it."""
        if self.engine.dialect.name != "sqlite":
            return
        with self._write_lock, closing(self.engine.raw_connection()) as connection:
            cursor = connection.cursor()
            cursor.execute("PRAGMA busy_timeout=0")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            cursor.execute(f"PRAGMA busy_timeout={_BUSY_MILLISECONDS}")

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    # Migrations

    def migrate(self) -> None:
        """Upgrade the schema to that of this release."""
        migrate_schema(self.engine)

    def has_current_schema(self) -> bool:
        """Return whether the database has the schema that this release needs."""
        return self.schema_revision() == find_schema()

    def knows_revision(self, revision: str) -> bool:
        """Return whether a schema revision belongs to this release or an earlier one."""
        files = (find_migrations() / "versions").glob("[0-9]*.py")
        return revision in {path.name.partition("_")[0] for path in files}

    def schema_revision(self) -> str | None:
        """Return the revision of the database's schema, or None if it has no schema."""
        with self.engine.connect() as connection:
            if not sa.inspect(connection).has_table(_REVISIONS.name):
                return None
            return connection.scalar(sa.select(_REVISIONS.c.version_num))


def lock_digests(db: Transaction, digests: Iterable[str]) -> None:
    """Lock the digests of blobs until the transaction ends.

    Blobs are content-addressed, so an upload may contain the very bytes that a sweep is
    about to remove. Uploads and sweeps lock the digest first, an upload before it
    commits a row with the digest, so that each sees the other's changes. SQLite needs
    no lock, because it runs only one write transaction at a time.
    """
    if db.connection().dialect.name != "postgresql":
        return
    keys = sorted({int(digest[:16], 16) - (1 << 63) for digest in digests})
    db.execute(_CLAIM, {"keys": keys})


# The keys are sorted, so that all transactions lock in the same order without deadlock.
_CLAIM = sa.text(
    "SELECT pg_advisory_xact_lock(key) FROM unnest(CAST(:keys AS bigint[])) AS each(key)"
)


def _is_conflict(error: DBAPIError) -> bool:
    """Return whether another transaction interfered, so that a retry may succeed."""
    state = getattr(error.orig, "sqlstate", None)
    return isinstance(error, IntegrityError) or state in _CONFLICTS


def _test_idle_connections(engine: sa.Engine) -> None:
    """Test connections before use if they were idle for a second, or after any error.

    SQLAlchemy's ``pool_pre_ping`` tests before every use, which costs another round
    trip per transaction. Here a connection that breaks within a second of its last use
    may fail one request, but after that error all others are tested.
    """
    failed_at = -math.inf

    @sa.event.listens_for(engine, "handle_error")
    def _record_failure(_context: Any) -> None:
        nonlocal failed_at
        failed_at = time.monotonic()

    @sa.event.listens_for(engine, "checkin")
    def _record_last_use(_connection: Any, record: Any) -> None:
        is_alive = record.info.get(_TAKEN_AT, -math.inf) > failed_at
        record.info[_USED_AT] = time.monotonic() if is_alive else -math.inf

    @sa.event.listens_for(engine, "checkout")
    def _ping_if_idle(connection: Any, record: Any, _proxy: Any) -> None:
        now = record.info[_TAKEN_AT] = time.monotonic()
        used_at = record.info.get(_USED_AT, now)  # new connections need no test
        if used_at > max(now - _IDLE_SECONDS, failed_at):
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            raise sa.exc.InvalidatePoolError from None


class _RetryingPool(sa.QueuePool):
    """A pool that retries while the server refuses further connections.

    The server's limit (``max_connections``) is shared by all analysts and tools, which
    return their connections within moments. Such a refusal has no SQLSTATE, so it is
    recognised by the text of the error.
    """

    def _do_get(self) -> sa.pool.ConnectionPoolEntry:
        deadline = time.monotonic() + _FREE_SECONDS
        while True:
            try:
                return super()._do_get()
            except Exception as error:
                is_full = any(words in str(error) for words in _FULL)
                if not is_full or time.monotonic() > deadline:
                    raise
            time.sleep(_ASK_AGAIN_SECONDS)


_SERVER_OPTIONS: Mapping[str, Any] = {
    "connect_args": {"connect_timeout": _CONNECT_SECONDS},
    "poolclass": _RetryingPool,
}


def _set_up_sqlite(engine: sa.Engine) -> None:
    @sa.event.listens_for(engine, "connect")
    def _set_pragmas(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # `_send_begin` sends BEGIN
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",  # commits survive a power failure
            "foreign_keys=ON",
            "secure_delete=ON",  # overwrites deleted rows
            f"busy_timeout={_BUSY_MILLISECONDS}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def _send_begin(connection: sa.Connection) -> None:
        # Read transactions send no BEGIN, so that each query sees all previous commits.
        if connection.get_execution_options().get(_WRITES):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

"""Connections and transactions, on SQLite and PostgreSQL alike.

SQLAlchemy's sessions are called *transactions* here, and ``db`` where they are used,
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

# Clocks: nothing else in the service reads the time.


class Clock(Protocol):
    """A source of the time."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        ...

    def skew(self) -> timedelta:
        """Return how far this machine's clock is ahead of this clock."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)

    def skew(self) -> timedelta:
        """Return zero: this is the machine's own clock."""
        return timedelta(0)


class ServerClock:
    """The clock of a database server, which several analysts share.

    :meth:`skew` asks the server. After that this machine's monotonic clock, which nobody
    can set, measures the time since the answer.

    ask: returns the server's time, in UTC; its exceptions are passed on.
    own: the clock of the machine, whose skew is measured.
    """

    def __init__(self, ask: Callable[[], datetime], own: Clock | None = None) -> None:
        self._ask = ask
        self._own = own or SystemClock()
        self._answer: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return the time, in UTC."""
        server_time, at = self._answer or self._synchronise()
        return server_time + timedelta(seconds=time.monotonic() - at)

    def skew(self) -> timedelta:
        """Ask the server, and return how far this machine's clock is ahead of it."""
        self._synchronise()
        return self._own.now() - self.now()

    def _synchronise(self) -> tuple[datetime, float]:
        begin = time.monotonic()
        server_time = self._ask()
        # the server read its clock during the round trip: assume in the middle of it
        self._answer = server_time, (begin + time.monotonic()) / 2
        return self._answer


# The schema of a database: its revision, which Alembic stores in a table, and migrations.

_REVISIONS = sa.table("alembic_version", sa.column("version_num", sa.String))


def alembic_config(bind: sa.Engine | sa.Connection) -> Config:
    """Return the configuration with which Alembic's commands use our connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(find_migrations()))
    config.attributes["on"] = bind
    return config


def migrate(bind: sa.Engine | sa.Connection, revision: str = "head") -> None:
    """Bring the schema to a revision, within the transaction of a connection."""
    from alembic import command  # only commands load it, never a running service

    command.upgrade(alembic_config(bind), revision)


@contextmanager
def changing_schema(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction that may alter tables; it is committed at the end.

    To alter a table SQLite copies and drops it, so foreign keys are off meanwhile and
    checked before the commit. The pragma works only outside of a transaction, so it is
    executed by the driver's own connection.
    """
    if engine.dialect.name != "sqlite":
        with engine.begin() as connection:
            yield connection
        return
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        if driver is None:
            raise AssertionError("an open connection has a driver")
        driver.execute("PRAGMA foreign_keys=OFF")
        try:
            with connection.begin():
                yield connection
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
                if broken:
                    raise BrokenLinks(f"{len(broken)} rows point to no row.")
        finally:
            driver.execute("PRAGMA foreign_keys=ON")


class BrokenLinks(Exception):
    """A migration left foreign keys that point to no row."""


_WRITES = "coterie_writes"
_TAKEN_AT, _USED_AT = "coterie_taken_at", "coterie_used_at"
_BUSY_MILLISECONDS = 30_000
_CONNECT_SECONDS = 5
_IDLE_SECONDS = 1.0  # a connection that was idle for longer is tested before use
_REPEATS = 5
_MOST_CONNECTIONS = 20
_POOLED_CONNECTIONS = 10  # stay open; further ones are closed when they are returned
_FREE_SECONDS = 30  # to wait for a free connection of the pool or of the server
_FULL = ("too many clients", "too many connections", "connection slots are reserved")
_ASK_AGAIN_SECONDS = 0.1
_CONFLICTS = frozenset({"40001", "40P01"})  # serialization failure, deadlock
_SERVER_TIME = sa.select(sa.func.clock_timestamp(type_=sa.DateTime(timezone=True)))
_FILLING = 0x636F_7465_7269_66  # advisory lock while an empty database is filled
_FILL = sa.text("SELECT pg_advisory_xact_lock(:key)")
P = ParamSpec("P")
T = TypeVar("T")


class Transaction(Session):
    """A transaction, and the clock that dates what it writes."""

    def __init__(self, engine: sa.Engine, clock: Clock, *, autoflush: bool) -> None:
        super().__init__(engine, expire_on_commit=False, autoflush=autoflush)
        self.clock = clock

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return self.clock.now()


class Database:
    """One database; hands out read and write transactions.

    connections: the most that are open at once; a thread that needs another one waits.
    clock: by default the one that all users of the database share: PostgreSQL's, or this
        host's for a SQLite file, which belongs to one host.
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
            hide_parameters=True,  # no row in an error
            **({} if is_file else _SERVER_OPTIONS),
        )
        self._reading = self.engine
        self._write_lock: AbstractContextManager[object] = nullcontext()
        if is_file:
            _set_up_sqlite(self.engine)
            # one thread writes at a time, because SQLite itself would wait by polling
            self._write_lock = threading.Lock()
        else:
            _test_idle_connections(self.engine)
            # each query sees what was committed before it began, with or without a
            # transaction; BEGIN and COMMIT would be two more round trips
            self._reading = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._writing = self.engine.execution_options(**{_WRITES: True})
        own = SystemClock() if is_file else ServerClock(self._server_time)
        self.clock: Clock = clock or own

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a transaction for queries only."""
        with Transaction(self._reading, self.clock, autoflush=False) as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction that is committed unless an exception leaves it.

        On SQLite it takes the write lock at once: of two transactions that read first
        and write later, one would fail.
        """
        writing = Transaction(self._writing, self.clock, autoflush=True)
        with self._write_lock, writing as db, db.begin():
            yield db

    def query(
        self, work: Callable[Concatenate[Transaction, P], T], *a: P.args, **k: P.kwargs
    ) -> T:
        """Call work with a transaction for queries, and return its result."""
        with self.read() as db:
            return work(db, *a, **k)

    def transact(
        self, work: Callable[Concatenate[Transaction, P], T], *a: P.args, **k: P.kwargs
    ) -> T:
        """Call work in a transaction, and return its result after the commit.

        It is called again after a conflict with another transaction, so any effect
        outside of the database must be repeatable.
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

    def truncate_log(self) -> None:
        """Empty SQLite's WAL, which still holds deleted rows, unless a reader needs it."""
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

    def migrate(self, revision: str = "head") -> None:
        """Bring the schema to a revision; by default the one that this release needs."""
        migrate(self.engine, revision)

    @contextmanager
    def begin_filling(self) -> Iterator[sa.Connection]:
        """Open the one transaction in which an empty database gets schema and rows.

        Other processes that want to fill the database wait until the transaction ends.
        """
        with self._write_lock, changing_schema(self._writing) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(_FILL, {"key": _FILLING})
            yield connection

    def is_current(self) -> bool:
        """Return whether the schema is the one that this release needs."""
        return self.revision() == find_schema()

    def knows(self, revision: str) -> bool:
        """Return whether a revision belongs to this release or an earlier one."""
        files = (find_migrations() / "versions").glob("[0-9]*.py")
        return revision in {path.name.partition("_")[0] for path in files}

    def revision(self) -> str | None:
        """Return the revision of the schema; None for an empty database."""
        with self.engine.connect() as connection:
            if not sa.inspect(connection).has_table(_REVISIONS.name):
                return None
            return connection.scalar(sa.select(_REVISIONS.c.version_num))


def claim(db: Transaction, digests: Iterable[str]) -> None:
    """Lock digests of blobs until the transaction ends.

    Blobs are content-addressed, so an upload may bring the very bytes that the sweep is
    removing. Upload and sweep lock the digest first (the upload before it commits a row
    with the digest), so that each sees the other's changes. On SQLite write
    transactions exclude each other already.
    """
    if db.connection().dialect.name != "postgresql":
        return
    keys = sorted({int(digest[:16], 16) - (1 << 63) for digest in digests})
    db.execute(_CLAIM, {"keys": keys})


# sorted above: everybody locks in the same order, so that claims cannot deadlock
_CLAIM = sa.text(
    "SELECT pg_advisory_xact_lock(key) FROM unnest(CAST(:keys AS bigint[])) AS each(key)"
)


def _is_conflict(error: DBAPIError) -> bool:
    """Return whether a repeat may succeed, because another transaction interfered."""
    state = getattr(error.orig, "sqlstate", None)
    return isinstance(error, IntegrityError) or state in _CONFLICTS


def _test_idle_connections(engine: sa.Engine) -> None:
    """Test connections before use after a second of idleness, or after any error.

    SQLAlchemy's ``pool_pre_ping`` tests at every use, which costs one more round trip
    per transaction. Here a connection that breaks within a second of its use may fail
    one request; after that error all others are tested.
    """
    failed_at = -math.inf

    @sa.event.listens_for(engine, "handle_error")
    def _fail(_context: Any) -> None:
        nonlocal failed_at
        failed_at = time.monotonic()

    @sa.event.listens_for(engine, "checkin")
    def _checkin(_connection: Any, record: Any) -> None:
        is_alive = record.info.get(_TAKEN_AT, -math.inf) > failed_at
        record.info[_USED_AT] = time.monotonic() if is_alive else -math.inf

    @sa.event.listens_for(engine, "checkout")
    def _checkout(connection: Any, record: Any, _proxy: Any) -> None:
        now = record.info[_TAKEN_AT] = time.monotonic()
        used_at = record.info.get(_USED_AT, now)  # a new connection is alive
        if used_at > max(now - _IDLE_SECONDS, failed_at):
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            raise sa.exc.InvalidatePoolError from None


class _SharingPool(sa.QueuePool):
    """A pool that waits while the server has as many clients as it accepts.

    All analysts and tools share that limit (``max_connections``), and each returns its
    connections within moments. A refused connection has no SQLSTATE, so the text of the
    error decides.
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
    "poolclass": _SharingPool,
}


def _set_up_sqlite(engine: sa.Engine) -> None:
    @sa.event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # `_begin` sends BEGIN
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",  # a commit survives a loss of power
            "foreign_keys=ON",
            "secure_delete=ON",  # deleted rows are overwritten
            f"busy_timeout={_BUSY_MILLISECONDS}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        # each query sees what was committed before it began, as on PostgreSQL
        if connection.get_execution_options().get(_WRITES):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

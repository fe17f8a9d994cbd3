"""Connections and transactions, on SQLite and PostgreSQL alike.

SQLAlchemy's sessions are called *transactions* here, and ``db`` where they are used,
because a session is something else in this project.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

import sqlalchemy as sa

from coterie.build import find_migrations, find_schema

if TYPE_CHECKING:
    from alembic.config import Config


import math
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session

# Time as an argument: the one place that reads the clock.


class Clock(Protocol):
    """Whatever tells the time."""

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
        """Return zero: it is the machine's own."""
        return timedelta(0)


class ServerClock:
    """The clock of a database server, which several analysts share.

    The server is asked by :meth:`skew`. From its last answer on, the monotonic clock of
    this machine counts, which nobody sets.

    ask: returns the server's time, in UTC; its errors are the caller's.
    own: the clock of the machine, whose skew is measured.
    """

    def __init__(self, ask: Callable[[], datetime], own: Clock | None = None) -> None:
        self._ask = ask
        self._own = own or SystemClock()
        self._answer: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return the time, in UTC."""
        time_there, at = self._answer or self._synchronise()
        return time_there + timedelta(seconds=time.monotonic() - at)

    def skew(self) -> timedelta:
        """Ask the server, and return how far this machine's clock is ahead of it."""
        self._synchronise()
        return self._own.now() - self.now()

    def _synchronise(self) -> tuple[datetime, float]:
        asked = time.monotonic()
        time_there = self._ask()
        # the answer was given between question and arrival
        self._answer = time_there, (asked + time.monotonic()) / 2
        return self._answer


# The schema of a database: its revision, and the way to another one.

# the table in which alembic keeps where a database stands
_REVISIONS = sa.table("alembic_version", sa.column("version_num", sa.String))


def alembic_config(on: sa.Engine | sa.Connection) -> Config:
    """Return what Alembic's commands take, to work on an engine or a connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(find_migrations()))
    config.attributes["on"] = on
    return config


def migrate(on: sa.Engine | sa.Connection, revision: str = "head") -> None:
    """Bring the schema to a revision, within the transaction of a connection."""
    from alembic import command  # a service that serves never loads it

    command.upgrade(alembic_config(on), revision)


def revision_of(connection: sa.Connection) -> str | None:
    """Return the revision of the schema that a connection sees; None without one."""
    if not sa.inspect(connection).has_table(_REVISIONS.name):
        return None
    return connection.scalar(sa.select(_REVISIONS.c.version_num))


@contextmanager
def changing_schema(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction that may alter tables; it is committed at the end.

    SQLite drops and copies a table to which others point. Its foreign keys rest
    meanwhile, and are checked before the commit. It listens outside of transactions
    alone, so the driver is asked.
    """
    if engine.dialect.name != "sqlite":
        with engine.begin() as connection:
            yield connection
        return
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        if driver is None:
            raise AssertionError("a connection that was just opened")
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
    """Rows point to rows that are not there."""


def head() -> str:
    """Return the revision that this release needs."""
    return find_schema()


def known_revisions() -> set[str]:
    """Return all that this release knows: files begin with them, and are in order."""
    files = (find_migrations() / "versions").glob("[0-9]*.py")
    return {path.name.partition("_")[0] for path in files}


_WRITES = "coterie_writes"
_TAKEN_AT, _USED_AT = "coterie_taken_at", "coterie_used_at"
_BUSY_MILLISECONDS = 30_000
_CONNECT_SECONDS = 5
_IDLE_SECONDS = 1.0  # after that a connection is asked whether it lives
_REPEATS = 5
_MOST_CONNECTIONS = 20
_KEPT_CONNECTIONS = 10  # of these; others are closed once they are given back
_FREE_SECONDS = 30  # how long a connection is waited for, of the pool or of the server
_FULL = ("too many clients", "too many connections", "connection slots are reserved")
_ASK_AGAIN_SECONDS = 0.1
_CONFLICTS = frozenset({"40001", "40P01"})  # serialization failure, deadlock
_SERVER_TIME = sa.select(sa.func.clock_timestamp(type_=sa.DateTime(timezone=True)))
_FILLING = 0x636F_7465_7269_66  # one number that all lock who fill a database
_FILL = sa.text("SELECT pg_advisory_xact_lock(:key)")
P = ParamSpec("P")
T = TypeVar("T")


class Transaction(Session):
    """A transaction, with the clock that dates what it writes."""

    def __init__(self, engine: sa.Engine, clock: Clock, *, autoflush: bool) -> None:
        super().__init__(engine, expire_on_commit=False, autoflush=autoflush)
        self.clock = clock

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return self.clock.now()


class Database:
    """One database; hands out read and write transactions.

    connections: the most that are open at once; who needs one more waits.
    clock: by default that of all who share the database: PostgreSQL's, or this host's,
        for a file of SQLite is of one host.
    """

    def __init__(
        self,
        url: str,
        connections: int = _MOST_CONNECTIONS,
        clock: Clock | None = None,
    ) -> None:
        kept = min(connections, _KEPT_CONNECTIONS)
        self.engine = sa.create_engine(
            url,
            pool_size=kept,
            max_overflow=connections - kept,
            pool_timeout=_FREE_SECONDS,
            hide_parameters=True,  # no row in an error
            **_at(url),
        )
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
        is_file = self.engine.dialect.name == "sqlite"
        own = SystemClock() if is_file else ServerClock(self._server_time)
        self.clock: Clock = clock or own

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a transaction that nothing is written in: for queries."""
        with Transaction(self._reading, self.clock, autoflush=False) as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction that is committed, unless an exception leaves it.

        On SQLite it takes the write lock when it begins: a transaction that reads first
        and writes later would fail as soon as two of them meet.
        """
        writing = Transaction(self._writing, self.clock, autoflush=True)
        with self._turn, writing as db, db.begin():
            yield db

    def query(
        self, work: Callable[Concatenate[Transaction, P], T], *a: P.args, **k: P.kwargs
    ) -> T:
        """Return what work reads, given a transaction and the other arguments."""
        with self.read() as db:
            return work(db, *a, **k)

    def transact(
        self, work: Callable[Concatenate[Transaction, P], T], *a: P.args, **k: P.kwargs
    ) -> T:
        """Return what work returns, once its transaction is committed.

        Work gets the transaction and the other arguments. It is repeated after a
        conflict with another transaction, so it must change nothing but what it may
        change again.
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
            time_there = connection.scalars(_SERVER_TIME).one()
        return time_there.astimezone(UTC)

    def truncate_log(self) -> None:
        """Empty SQLite's log, which holds removed rows still; not while somebody reads."""
        if self.engine.dialect.name != "sqlite":
            return
        with self._turn, closing(self.engine.raw_connection()) as connection:
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

        Others who want to fill it wait for its end. See
        :mod:`analyst_service.database` for what works on its connection.
        """
        with self._turn, changing_schema(self._writing) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(_FILL, {"key": _FILLING})
            yield connection

    def is_current(self) -> bool:
        """Return whether the schema is the one that this release needs."""
        return self.revision() == head()

    def knows(self, revision: str) -> bool:
        """Return whether a revision is this release's, or that of one before it."""
        return revision in known_revisions()

    def revision(self) -> str | None:
        """Return the revision of the schema; None where there is none."""
        with self.engine.connect() as connection:
            return revision_of(connection)


def claim(db: Transaction, digests: Iterable[str]) -> None:
    """Claim digests of blobs until the transaction ends; waits for other claims.

    Blobs are content-addressed and belong to nobody, so an upload may bring the very
    bytes that the sweep is removing. Who commits a row that names a digest, and who
    removes a blob, claims the digest first: the one then sees what the other did. On
    SQLite write transactions exclude each other already.
    """
    if db.connection().dialect.name != "postgresql":
        return  # to connect is to begin
    keys = sorted({int(digest[:16], 16) - (1 << 63) for digest in digests})
    db.execute(_CLAIM, {"keys": keys})


# in one order for all: claims that wait for each other could wait in a circle
_CLAIM = sa.text(
    "SELECT pg_advisory_xact_lock(key) FROM unnest(CAST(:keys AS bigint[])) AS each(key)"
)


def _at(url: str) -> dict[str, Any]:
    """Return how to connect: to a server, which is not waited for while it is away."""
    if sa.make_url(url).get_backend_name() == "sqlite":
        return {}
    connecting = {"connect_timeout": _CONNECT_SECONDS}
    return {"connect_args": connecting, "poolclass": _SharingPool}


def _is_conflict(error: DBAPIError) -> bool:
    """Return whether the same again may succeed: others were faster, or in the way."""
    state = getattr(error.orig, "sqlstate", None)
    return isinstance(error, IntegrityError) or state in _CONFLICTS


def _ask_whether_connections_live(engine: sa.Engine) -> None:
    """Ask those that nobody has used for a second, or since before anything failed.

    The pool could ask each time, which is one more way to the server and back for each
    transaction. So one that ends within a second of its use may fail the first request
    that gets it; the next ones get none of its like.
    """
    failed_at = -math.inf

    @sa.event.listens_for(engine, "handle_error")
    def _fail(_context: Any) -> None:
        nonlocal failed_at
        failed_at = time.monotonic()

    @sa.event.listens_for(engine, "checkin")
    def _checkin(_connection: Any, record: Any) -> None:
        lives = record.info.get(_TAKEN_AT, -math.inf) > failed_at
        record.info[_USED_AT] = time.monotonic() if lives else -math.inf

    @sa.event.listens_for(engine, "checkout")
    def _checkout(connection: Any, record: Any, _proxy: Any) -> None:
        now = record.info[_TAKEN_AT] = time.monotonic()
        used_at = record.info.get(_USED_AT, now)  # a new one lives
        if used_at > max(now - _IDLE_SECONDS, failed_at):
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            raise sa.exc.InvalidatePoolError from None


class _SharingPool(sa.QueuePool):
    """A pool that waits where the server has as many clients as it takes.

    All analysts and tools share that limit (``max_connections``), and each gives
    connections back within moments. A server says no SQLSTATE to who is not connected:
    what it says in words is all there is.
    """

    def _do_get(self) -> sa.pool.ConnectionPoolEntry:
        until = time.monotonic() + _FREE_SECONDS
        while True:
            try:
                return super()._do_get()
            except Exception as error:
                is_full = any(words in str(error) for words in _FULL)
                if not is_full or time.monotonic() > until:
                    raise
            time.sleep(_ASK_AGAIN_SECONDS)  # or one of our own is given back


def _set_up_sqlite(engine: sa.Engine) -> None:
    @sa.event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",  # a commit survives a loss of power
            "foreign_keys=ON",
            "secure_delete=ON",  # of what was removed no byte stays in the file
            f"busy_timeout={_BUSY_MILLISECONDS}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

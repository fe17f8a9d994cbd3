"""Databases of both kinds, lent to one test at a time.

Migrations run once per kind in a process of tests; most tests get a copy of the outcome.
Making and dropping a database costs PostgreSQL a hundred times as much as deleting the
rows of a test, so databases with our tables are lent again.
"""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.engine.default import DefaultDialect

from analyst_service.database import Database
from analyst_service.models import Base
from analyst_service.settings import Settings
from support import needs
from support.repeats import in_turn

_create_engine = sa.create_engine
_compiled: dict[str, Any] = {}

POSTGRES_URL = os.environ.get(
    "COTERIE_TEST_POSTGRES_URL", "postgresql://127.0.0.1:5432/test"
)
_MARKS = {"sqlite": (), "postgresql": pytest.mark.postgres}
BOTH_DATABASES = [pytest.param(kind, marks=marks) for kind, marks in _MARKS.items()]
# for a test whose analyst is a process of its own
on_both_databases = pytest.mark.parametrize(
    "database_kind", BOTH_DATABASES, indirect=True
)


def each_on_a_database(
    name: str, cases: Sequence[Any], fixture: str = "database_kind"
) -> pytest.MarkDecorator:
    """Mark a test with cases: each on one database, in turn; on command on both.

    ``fixture``: the one that gets the kind of database.
    """
    pairs = in_turn(cases, list(_MARKS))
    # so that each kind of database is made once
    pairs.sort(key=lambda pair: list(_MARKS).index(pair[1]))
    return pytest.mark.parametrize(
        (fixture, name),
        [pytest.param(kind, case, marks=_MARKS[kind]) for case, kind in pairs],
        indirect=[fixture],
        scope="module",
    )


@contextmanager
def limit_connections(url: str, connections: int) -> Iterator[str]:
    """Lend the URL of a database for a role that may hold so many connections."""
    with psycopg.connect(url, autocommit=True) as server:
        role = f"coterie_{secrets.token_hex(8)}"  # roles are of the whole server
        name = sql.Identifier(role)
        server.execute(
            sql.SQL("CREATE ROLE {} LOGIN CONNECTION LIMIT {}").format(
                name, sql.Literal(connections)
            )
        )
        try:
            yield (
                sa.make_url(url)
                .set(username=role)
                .render_as_string(hide_password=False)
            )
        finally:
            server.execute(sql.SQL("DROP ROLE {}").format(name))


@contextmanager
def cut_off(url: str) -> Iterator[None]:
    """End all connections to a database of PostgreSQL, and refuse others meanwhile."""
    server, _, name = url.rpartition("/")
    allow = f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS'
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"{allow} false")
        connection.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
            "WHERE datname = %s",
            [name],
        )
        try:
            yield
        finally:
            connection.execute(f"{allow} true")


class Databases:
    """Lends databases; drops those that it keeps when it is closed."""

    def __init__(self) -> None:
        self._idle: list[str] = []

    @contextmanager
    def empty(self, kind: str, folder: Path) -> Iterator[str]:
        if kind == "sqlite":
            yield f"sqlite:///{folder / 'test.db'}"
            return
        with _postgres() as url:
            yield url

    @contextmanager
    def current(self, kind: str, folder: Path) -> Iterator[str]:
        """Lend the URL of a database with the tables of this release, and no row."""
        if kind == "sqlite":
            file = folder / "test.db"
            write_current_file(file)
            yield f"sqlite:///{file}"
            return
        if self._idle:
            url = self._idle.pop()
        else:
            url = _create(f'TEMPLATE "{_name(self._template)}"')
        try:
            yield url
        finally:
            self._take_back(url)

    def _take_back(self, url: str) -> None:
        """Keep a database for the next test, unless this test changed its tables."""
        try:
            is_ours = _empty(url) == self._shape
        except psycopg.Error:
            is_ours = False
        if is_ours:
            self._idle.append(url)
        else:
            _drop(url)

    @cached_property
    def _template(self) -> str:
        url = _create()
        _migrate(url)
        return url

    @cached_property
    def _shape(self) -> Any:
        with psycopg.connect(self._template) as connection:
            return connection.execute(_SHAPE).fetchone()

    def close(self) -> None:
        template = [self._template] if "_template" in vars(self) else []
        for url in (*self._idle, *template):
            _drop(url)


def write_current_file(file: Path) -> None:
    """Write a SQLite database with the tables of this release, if none is there."""
    if not file.exists():
        file.write_bytes(_current_file())


@cache
def _current_file() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "current.db"
        _migrate(f"sqlite:///{file}")
        return file.read_bytes()


def _migrate(url: str) -> None:
    database = Database(Settings(database_url=url).database)
    database.migrate()
    database.close()


# PostgreSQL


@cache
def _why_away() -> str | None:
    """Return why no server answers; ask once, so that no test waits for it again."""
    try:
        psycopg.connect(POSTGRES_URL, connect_timeout=3).close()
    except psycopg.OperationalError:
        return f"no server answers at {POSTGRES_URL.rpartition('@')[-1]}"
    return None


@contextmanager
def _postgres() -> Iterator[str]:
    url = _create()
    try:
        yield url
    finally:
        _drop(url)


def _create(how: str = "") -> str:
    if why := _why_away():
        needs.leave_out(needs.POSTGRESQL, why)
    name = f"coterie_test_{secrets.token_hex(6)}"
    with psycopg.connect(POSTGRES_URL, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}" {how}')
        # tests kill analysts, never the server: nobody waits for its disk
        server.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    return f"{POSTGRES_URL.rpartition('/')[0]}/{name}"


_END_OTHERS = """
    SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_COUNT_ANEW = "SELECT setval(sequencename::text::regclass, 1, false) FROM pg_sequences"
# of tables, indexes and sequences
_SHAPE = """
    SELECT md5(string_agg(
        format('%s %s %s', relname, attname, atttypid), ',' ORDER BY relname, attnum
    )), (SELECT version_num FROM alembic_version)
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = 'public'::regnamespace AND attnum > 0
"""


def _empty(url: str) -> Any:
    """Delete our rows and disconnect everybody else; return the shape of the tables."""
    tables = reversed(Base.metadata.sorted_tables)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_END_OTHERS)
        shape = connection.execute(_SHAPE).fetchone()
        for table in tables:
            connection.execute(f'DELETE FROM "{table.name}"')
        connection.execute(_COUNT_ANEW)
        return shape


def _drop(url: str) -> None:
    with psycopg.connect(POSTGRES_URL, autocommit=True) as server:
        server.execute(f'DROP DATABASE "{_name(url)}" WITH (FORCE)')


def _name(url: str) -> str:
    return url.rpartition("/")[2]


# Statements


def share_statements() -> None:
    """Let all engines that are made from now on share what any of them compiles.

    SQLAlchemy keeps what it compiled for each engine. Nearly every test of the service
    has an engine of its own, and would compile what the test before had compiled.
    """
    # their keys hold the dialect: all of a kind speak to one server, or to one library
    DefaultDialect.__eq__ = _are_alike  # type: ignore[method-assign,assignment]
    DefaultDialect.__hash__ = _hash_kind  # type: ignore[method-assign,assignment]
    sa.create_engine = _create_sharing_engine


def _create_sharing_engine(url: str | sa.URL, **options: Any) -> sa.Engine:
    engine = _create_engine(url, **options)
    engine._compiled_cache = _compiled.setdefault(
        engine.dialect.name, engine._compiled_cache
    )
    return engine


def _are_alike(one: DefaultDialect, other: object) -> bool:
    return type(one) is type(other)


def _hash_kind(one: DefaultDialect) -> int:
    return hash(type(one))

"""Databases of both kinds, made for a test and dropped after it.

Migrations run once per kind in a process of tests; most tests get a copy of the outcome.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from analyst_service.database import Database
from analyst_service.settings import Settings
from support import needs

POSTGRES_URL = os.environ.get(
    "COTERIE_TEST_POSTGRES_URL", "postgresql://127.0.0.1:5432/test"
)
BOTH_DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
# for a test whose analyst is a process of its own
on_both_databases = pytest.mark.parametrize(
    "database_kind", BOTH_DATABASES, indirect=True
)


class Databases:
    """Lends databases; what it keeps of its own is dropped when it is closed."""

    @contextmanager
    def empty(self, kind: str, folder: Path) -> Iterator[str]:
        """Lend the URL of a database without a table."""
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
        with _postgres(f'TEMPLATE "{_name(self._template)}"') as url:
            yield url

    @cached_property
    def _template(self) -> str:
        url = _create()
        _migrate(url)
        return url

    def close(self) -> None:
        if "_template" in vars(self):
            _drop(self._template)


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
    """Why no server answers: asked once, so that nobody waits for it again."""
    try:
        psycopg.connect(POSTGRES_URL, connect_timeout=3).close()
    except psycopg.OperationalError:
        return f"no server answers at {POSTGRES_URL.rpartition('@')[-1]}"
    return None


@contextmanager
def _postgres(how: str = "") -> Iterator[str]:
    url = _create(how)
    try:
        yield url
    finally:
        _drop(url)


def _create(how: str = "") -> str:
    """Create a database beside the test database and return its URL."""
    if why := _why_away():
        needs.leave_out(needs.POSTGRESQL, why)
    name = f"coterie_test_{secrets.token_hex(6)}"
    with psycopg.connect(POSTGRES_URL, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}" {how}')
    return f"{POSTGRES_URL.rpartition('/')[0]}/{name}"


def _drop(url: str) -> None:
    with psycopg.connect(POSTGRES_URL, autocommit=True) as server:
        server.execute(f'DROP DATABASE "{_name(url)}" WITH (FORCE)')


def _name(url: str) -> str:
    return url.rpartition("/")[2]

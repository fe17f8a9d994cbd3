"""Databases of both kinds, made for a test and dropped after it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

POSTGRES_URL = os.environ.get(
    "COTERIE_TEST_POSTGRES_URL", "postgresql://127.0.0.1:5432/test"
)


def new_postgres_database() -> str:
    """Create an empty database beside the test database and return its URL."""
    base, _, _ = POSTGRES_URL.rpartition("/")
    name = f"coterie_test_{secrets.token_hex(6)}"
    try:
        with psycopg.connect(
            POSTGRES_URL, autocommit=True, connect_timeout=3
        ) as server:
            server.execute(f'CREATE DATABASE "{name}"')
    except psycopg.OperationalError:
        if os.environ.get("COTERIE_REQUIRE_POSTGRES"):
            raise
        pytest.skip(f"no PostgreSQL answers at {POSTGRES_URL.partition('@')[-1]}")
    return f"{base}/{name}"


def drop_postgres_database(url: str) -> None:
    name = url.rpartition("/")[2]
    with psycopg.connect(POSTGRES_URL, autocommit=True) as server:
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


BOTH_DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@contextmanager
def empty_database(kind: str, folder: Path) -> Iterator[str]:
    """Lend the URL of an empty database."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'test.db'}"
        return
    url = new_postgres_database()
    yield url
    drop_postgres_database(url)

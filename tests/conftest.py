"""Fixtures for all tests."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from harness import Analyst, Crowd
from hypothesis import settings

from clustering_protocols import simulation
from clustering_protocols.contract import Params

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("COTERIE_HYPOTHESIS", "dev"))

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


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'test.db'}"
        return
    url = new_postgres_database()
    yield url
    drop_postgres_database(url)


@pytest.fixture
def analyst(database_url: str, tmp_path: Path) -> Iterator[Analyst]:
    """A running analyst, on each kind of database."""
    with Analyst(tmp_path / "analyst", database_url) as running:
        yield running


@pytest.fixture
def gather(analyst: Analyst, tmp_path: Path) -> Iterator[Callable[..., Crowd]]:
    """Make the crowd of a session on the running analyst."""
    with ExitStack() as crowds:

        def make(params: Params, parts: simulation.Split, **options: Any) -> Crowd:
            home = tmp_path / "home"
            crowd = Crowd(analyst, home, params, parts.layout, parts.data, **options)
            crowds.callback(crowd.close)
            return crowd

        yield make


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where coordinator and parties keep their secrets."""
    return tmp_path / "home"

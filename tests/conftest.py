"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings
from support.analyst_process import Analyst, Crowd
from support.databases import BOTH_DATABASES, empty_database
from support.in_process import Api, in_process

from clustering_protocols import simulation
from clustering_protocols.contract import Params

# Equal cases in every run, so that none is red by chance; `make thorough` draws others,
# and prints how to draw again what it found.
settings.register_profile(
    "dev", max_examples=50, deadline=None, derandomize=True, database=None
)
settings.register_profile("ci", settings.get_profile("dev"), max_examples=100)
settings.register_profile(
    "nightly", max_examples=1000, deadline=None, database=None, print_blob=True
)
settings.load_profile(os.environ.get("COTERIE_HYPOTHESIS", "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every property draws more cases in `make thorough`."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.thorough)


@pytest.fixture(params=BOTH_DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database of each kind."""
    with empty_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def postgres_url(tmp_path: Path) -> Iterator[str]:
    """The URL of an empty PostgreSQL database."""
    with empty_database("postgresql", tmp_path) as url:
        yield url


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


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    """An analyst in this process, on SQLite; its rounds are stepped by ``turn``."""
    with in_process(tmp_path / "api") as running:
        yield running


@pytest.fixture
def each_api(database_url: str, tmp_path: Path) -> Iterator[Api]:
    """The same on each kind of database."""
    with in_process(tmp_path / "api", database_url) as running:
        yield running


@pytest.fixture
def start_api(tmp_path: Path) -> Callable[..., AbstractContextManager[Api]]:
    """Start the same again and again over one folder, in a ``with`` each."""
    return partial(in_process, tmp_path / "api")


@pytest.fixture(scope="module", params=BOTH_DATABASES)
def shared_api(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    """The same for a whole file, on each kind of database."""
    folder = tmp_path_factory.mktemp("shared")
    with (
        empty_database(request.param, folder) as url,
        in_process(folder, url, max_body_bytes=1 << 16) as running,
    ):
        yield running

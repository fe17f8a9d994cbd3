"""Fixtures for all tests."""

import atexit
import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings
from support import built, warm, warm_child  # noqa: F401  built comes first
from support.analyst_process import Analyst, Crowd
from support.databases import BOTH_DATABASES, Databases, share_statements
from support.in_process import Api, StartApi, in_process
from support.repeats import NEVER_RUN, NIGHTLY
from support.terminal import Terminal

from clustering_protocols import session_terms, simulation
from clustering_protocols.contract import Params

share_statements()

pytest_plugins = ["support.left_out", "support.seams"]

# Equal cases in every run, so that none is red by chance; `make thorough` draws others,
# and prints how to draw again what it found.
settings.register_profile(
    "dev", max_examples=30, deadline=None, derandomize=True, database=None
)
settings.register_profile("ci", settings.get_profile("dev"), max_examples=100)
settings.register_profile(
    "nightly", max_examples=1000, deadline=None, database=None, print_blob=True
)
settings.load_profile(os.environ.get("COTERIE_HYPOTHESIS", "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """Let the processes that share the tests share one stock of imports too."""
    if config.getoption("numprocesses", None):
        warm.stock()
    if warm.ADDRESS in os.environ:
        warm_child.install_readers()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let no search for garbage go through libraries and tests, which stay to the end.

    They are most of what a process holds, and a full search looks at each of them.
    """
    gc.disable()
    yield
    gc.freeze()
    # at its end Python finds what some libraries miss there
    atexit.register(gc.unfreeze)
    gc.set_threshold(10_000)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Mark cases that `make test` leaves out; leave out those of `make thorough` alone.

    Every property draws more cases in `make thorough`.
    """
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.thorough)
    left = [] if NIGHTLY else [item for item in items if runs_only_on_command(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]
    config.stash[NEVER_RUN] = names(left) - names(items)
    n_cases = Counter[str]()
    for item in items:
        quick = item.get_closest_marker("quick")
        if quick and not item.get_closest_marker("postgres"):
            test = item.nodeid.partition("[")[0]
            n_cases[test] += 1
            if n_cases[test] > quick.args[0]:
                item.add_marker(pytest.mark.slow)


def names(items: list[pytest.Item]) -> set[str]:
    """Return the tests without their cases."""
    return {item.nodeid.partition("[")[0] for item in items}


def runs_only_on_command(item: pytest.Item) -> bool:
    """Return whether another case of the same claim is enough for every change."""
    return any(mark.kwargs.get("only") for mark in item.iter_markers("thorough"))


# Databases


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """Lends databases to all tests of a process."""
    with closing(Databases()) as lending:
        yield lending


@pytest.fixture(params=BOTH_DATABASES)
def database_url(
    request: pytest.FixtureRequest, databases: Databases, tmp_path: Path
) -> Iterator[str]:
    """The URL of an empty database of each kind."""
    with databases.empty(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def postgres_url(databases: Databases, tmp_path: Path) -> Iterator[str]:
    """The URL of a PostgreSQL database with our tables."""
    with databases.current("postgresql", tmp_path) as url:
        yield url


# An analyst in a process of its own


@pytest.fixture(scope="module")
def database_kind(request: pytest.FixtureRequest) -> str:
    """Where an analyst keeps its rows; ``on_both_databases`` says another."""
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture(scope="module")
def analyst_of_the_file(
    database_kind: str,
    databases: Databases,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Analyst]:
    folder = tmp_path_factory.mktemp("analyst")
    with (
        databases.current(database_kind, folder) as url,
        Analyst(folder / "analyst", url) as running,
    ):
        yield running


@pytest.fixture
def analyst(analyst_of_the_file: Analyst) -> Analyst:
    """A running analyst, the same for all tests of a file: each has its own session."""
    analyst_of_the_file.start_unless_running()
    return analyst_of_the_file


@pytest.fixture
def session_id(request: pytest.FixtureRequest) -> str:
    """The id of a test's session: the same in every run, different for every test."""
    return f"s-{sha256(request.node.nodeid.encode()).hexdigest()[:12]}"


@pytest.fixture
def gather(
    analyst: Analyst, home: Path, session_id: str
) -> Iterator[Callable[..., Crowd]]:
    """Make the crowd of the test's session on the running analyst."""
    with ExitStack() as crowds:

        def make(params: Params, parts: simulation.Split, **options: Any) -> Crowd:
            options = {"session": session_id, **options}
            crowd = Crowd(analyst, home, params, parts, **options)
            crowds.callback(crowd.close)
            return crowd

        yield make


@pytest.fixture
def earlier(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[], AbstractContextManager[None]]:
    """Draw terms up as a release did that did not compare what they show of rows."""

    @contextmanager
    def draw_up() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(session_terms, "_check_new_session", lambda *_: None)
            yield

    return draw_up


@pytest.fixture
def cold_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables be read by processes that Python starts, within limits of memory."""
    warm_child.start_readers_cold(monkeypatch)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where coordinator and parties keep their secrets."""
    return tmp_path / "home"


# A terminal of an operator


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Terminal:
    """A terminal without an analyst."""
    for name in ("COTERIE_URL", "COTERIE_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Terminal(monkeypatch, tmp_path)


@pytest.fixture
def online(terminal: Terminal, analyst: Analyst) -> Terminal:
    """A terminal of a coordinator, beside a running analyst."""
    terminal.environment |= {"COTERIE_URL": analyst.url, "COTERIE_KEY": analyst.key}
    return terminal


@pytest.fixture
def rows(terminal: Terminal) -> Path:
    """A small table of one party."""
    lines = [f"p{number:02},{number},{number % 3}" for number in range(12)]
    return terminal.file("rows.csv", "\n".join(["id,x,y", *lines]))


# An analyst in this process


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    """An analyst in this process, on SQLite; its rounds are stepped by ``turn``."""
    with in_process(tmp_path / "api") as running:
        yield running


@pytest.fixture(params=BOTH_DATABASES)
def start_each_api(
    request: pytest.FixtureRequest, databases: Databases, tmp_path: Path
) -> Iterator[StartApi]:
    """Start the same on each kind of database, with changed settings."""
    with databases.current(request.param, tmp_path) as url:
        yield partial(in_process, tmp_path / "api", url)


@pytest.fixture
def each_api(start_each_api: StartApi) -> Iterator[Api]:
    """The same on each kind of database."""
    with start_each_api() as running:
        yield running


@pytest.fixture
def start_api(tmp_path: Path) -> StartApi:
    """Start the same again and again over one folder, in a ``with`` each."""
    return partial(in_process, tmp_path / "api")


@pytest.fixture(scope="module", params=BOTH_DATABASES)
def shared_api(
    request: pytest.FixtureRequest,
    databases: Databases,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Api]:
    """The same for a whole file, on each kind of database."""
    folder = tmp_path_factory.mktemp("shared")
    with (
        databases.current(request.param, folder) as url,
        in_process(folder, url, max_body_bytes=1 << 16) as running,
    ):
        yield running

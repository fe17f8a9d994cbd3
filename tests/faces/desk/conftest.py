"""Desks in this process, with and without an analyst."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.analyst_process import Analyst
from support.desks import DeskBrowser, desk_at
from support.in_process import HandClock

from coterie import Coordinator


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def stranger(tmp_path: Path, clock: HandClock) -> Iterator[DeskBrowser]:
    home, tables = tmp_path / "home", tmp_path / "tables"
    home.mkdir()
    tables.mkdir()
    with desk_at(home, tables, clock) as browser:
        yield browser


@pytest.fixture
def browser(stranger: DeskBrowser) -> DeskBrowser:
    stranger.open()
    return stranger


@pytest.fixture
def desk(browser: DeskBrowser, analyst: Analyst) -> DeskBrowser:
    browser.desk.connection.set_analyst(analyst.url, analyst.key)
    return browser


@pytest.fixture
def coordinator(desk: DeskBrowser, analyst: Analyst) -> Iterator[Coordinator]:
    with analyst.coordinator(desk.desk.home) as found:
        yield found

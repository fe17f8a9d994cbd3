"""Homes beside an analyst in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.analyst_process import House
from support.in_process import Api, in_process


@pytest.fixture(scope="module")
def driven_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An analyst for a whole file that drives its rounds by itself."""
    with in_process(tmp_path_factory.mktemp("analyst"), driven=True) as api:
        yield api


@pytest.fixture
def house(driven_api: Api, tmp_path: Path) -> House:
    """Homes that showed nothing of any rows yet."""
    return House(driven_api, tmp_path)

"""Homes beside an analyst in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.analyst_process import House
from support.in_process import in_process


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Homes beside an analyst that drives its rounds by itself."""
    with in_process(tmp_path / "analyst", driven=True) as api:
        yield House(api, tmp_path)

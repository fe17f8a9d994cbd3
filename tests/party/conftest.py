"""Terminals of operators, with and without an analyst."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.analyst_process import Analyst
from support.terminal import Terminal


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

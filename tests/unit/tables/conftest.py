"""A terminal of an operator who reads tables, without an analyst."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.terminal import Terminal


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Terminal:
    """A terminal."""
    monkeypatch.chdir(tmp_path)
    return Terminal(monkeypatch, tmp_path)

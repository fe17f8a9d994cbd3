"""The analyst of a local session, from the stock of imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from party_sdk import local_analyst
from support import warm


def start_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let local sessions start their analyst without the start of Python."""
    program = Path(local_analyst.__file__).parent / "cli" / "own_analyst.py"
    monkeypatch.setattr(local_analyst, "PROGRAM", warm.command(str(program)))

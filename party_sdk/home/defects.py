"""What is said of a defect: its place, never its text, which may hold values of cells."""

from __future__ import annotations

import traceback
from pathlib import Path


def place_of(error: Exception) -> str:
    """Return where an unexpected error came from, and nothing of its text."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"

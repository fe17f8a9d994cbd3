"""The client in TypeScript is installed where it can be; elsewhere that is said."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_lock_names_no_registry() -> None:
    lock = (ROOT / "clients" / "typescript" / "package-lock.json").read_text()
    assert '"resolved"' not in lock

"""Commands as an operator types them, whatever code they end with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from party_sdk.cli import main

Command = Callable[..., Result]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    for name in ("COTERIE_URL", "COTERIE_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Result:
        texts = [str(word) for word in words]
        home = {"COTERIE_HOME": str(tmp_path / "home")}
        result = CliRunner().invoke(main, texts, env=home, prog_name="coterie")
        if isinstance(result.exception, Exception):
            raise result.exception
        return result

    return run


@pytest.fixture
def table_report(command: Command) -> Callable[..., dict[str, Any]]:
    def report(path: Path, *words: object) -> dict[str, Any]:
        found = command("table", path, *words, "--json")
        document: dict[str, Any] = json.loads(found.stdout)
        return document

    return report


@pytest.fixture
def hints(table_report: Callable[..., dict[str, Any]]) -> Callable[..., str]:
    """Return all warnings and problems that ``coterie table`` has with a file."""

    def told(path: Path, *words: object) -> str:
        report = table_report(path, *words)
        return "\n".join(map(str, [*report["warnings"], *report["problems"]]))

    return told

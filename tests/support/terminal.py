"""Commands run within the test's process, as an operator types them."""

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from party_sdk.cli import main

RISK = "dummy.by-design"
RISKS = (RISK, "house.open-slot")
ALONE = ("--guard", "least_known=0")
"""Options of a party that knows nobody else."""


def coterie(
    *words: object,
    expect: int = 0,
    given: str | None = None,
    env: dict[str, str] | None = None,
) -> Result:
    """Run a command within this process; its exit code has to be the expected one."""
    result = CliRunner().invoke(
        main, [str(word) for word in words], input=given, env=env, prog_name="coterie"
    )
    if isinstance(result.exception, Exception):
        raise result.exception  # not SystemExit: a command ends with a code
    assert result.exit_code == expect, result.output
    return result


class Terminal:
    """Runs commands as an operator does, within this process."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.patch = patch
        self.folder = folder
        self.environment: dict[str, str] = {"COTERIE_HOME": str(folder / "home")}

    def __call__(self, *words: object, expect: int = 0) -> Result:
        texts = [str(word) for word in words]
        self.patch.setattr(sys, "argv", ["coterie", *texts])
        return coterie(*texts, expect=expect, env=self.environment)

    def json(self, *words: object, expect: int = 0) -> Any:
        return json.loads(self(*words, "--json", expect=expect).stdout)

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


@contextmanager
def answer_all(patch: pytest.MonkeyPatch, *, yes: bool) -> Iterator[list[str]]:
    """Answer all questions at a terminal meanwhile; lend what was asked."""
    asked: list[str] = []

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return yes

    with patch.context() as scope:
        scope.setattr("click.confirm", confirm)
        scope.setattr("party_sdk.cli.terminal.asker.TerminalAsker.is_present", True)
        yield asked


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def opened(terminal: Terminal, *words: object) -> tuple[str, str]:
    """Create a session for one party; return its id and the invitation."""
    create = ("session", "create", "Wards", "--protocol", "dummy")
    document = terminal.json(*create, *words)
    [invitation] = document["invitations"].values()
    return document["id"], invitation


def accepting(terminal: Terminal, invitation: str) -> tuple[str, ...]:
    """Return the options with which a party that knows nobody accepts an invitation."""
    return ("--accept", terminal.json("party", "terms", invitation)["consent"], *ALONE)


def running(terminal: Terminal, invitation: str, rows: Path) -> tuple[object, ...]:
    """Return the command that accepts an invitation's sheet and runs to the labels."""
    words = ("party", "run", invitation, "--data", rows, "--id-column", "id")
    return (*words, *accepting(terminal, invitation))

"""Commands run within the test's process, as an operator types them."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from party_sdk.cli import main

RISK = "dummy.by-design"
RISKS = (RISK, "house.open-slot")
ALONE = ("--guard", "least_known=0")
"""Options of a party that knows nobody else."""


class Terminal:
    """Runs commands as an operator does, within this process."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.patch = patch
        self.folder = folder
        self.environment: dict[str, str] = {"COTERIE_HOME": str(folder / "home")}

    def __call__(self, *words: object, expect: int = 0) -> Result:
        texts = [str(word) for word in words]
        self.patch.setattr(sys, "argv", ["coterie", *texts])
        result = CliRunner().invoke(
            main, texts, env=self.environment, prog_name="coterie"
        )
        if isinstance(result.exception, Exception):
            raise result.exception  # not SystemExit: a command ends with a code
        assert result.exit_code == expect, result.output
        return result

    def json(self, *words: object, expect: int = 0) -> Any:
        return json.loads(self(*words, "--json", expect=expect).stdout)

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def opened(terminal: Terminal, *words: object) -> tuple[str, str]:
    """A session for one party: its id and the invitation."""
    create = ("session", "create", "Wards", "--protocol", "dummy")
    document = terminal.json(*create, *words)
    [invitation] = document["invitations"].values()
    return document["id"], invitation


def accepting(terminal: Terminal, invitation: str) -> tuple[str, ...]:
    """The options that accept the sheet of an invitation, of a party that knows nobody."""
    return ("--accept", terminal.json("party", "terms", invitation)["consent"], *ALONE)

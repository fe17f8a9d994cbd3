"""The client in TypeScript is installed where it can be; elsewhere that is said."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of programs that come before all others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def run(command: list[str], folder: Path, programs: Path) -> tuple[int, str]:
    path = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


def pretend(programs: Path, name: str, script: str) -> None:
    """Put a program of this name before the real one."""
    program = programs / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_make_goes_on_without_node_and_says_so(tmp_path: Path, programs: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    client = tmp_path / "clients" / "typescript"
    client.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / "clients" / "typescript" / name, client)
    pretend(programs, "npm", "exit 1")
    code, said = run(["make", "client"], tmp_path, programs)
    assert code == 0
    assert "needs npm, Node 20 or newer" in said


def test_integration_stops_with_a_sentence_below_node_20(programs: Path) -> None:
    pretend(programs, "node", '[ "$1" = --version ] && echo v18.19.1')
    code, said = run([".ci/run"], ROOT, programs)
    assert code == 1
    assert "needs Node 20 or newer: v18.19.1 is here" in said


def test_the_lock_names_no_registry() -> None:
    lock = (ROOT / "clients" / "typescript" / "package-lock.json").read_text()
    assert '"resolved"' not in lock

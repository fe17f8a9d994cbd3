"""What of the SDK a system without POSIX modules could import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from party_sdk.home.files import lock

POSIX = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "uvloop")
_IMPORTS = """
import importlib, pkgutil, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {blocked!r}:
            raise ModuleNotFoundError(f"no {{name}} here", name=name)

sys.meta_path.insert(0, Missing())
for name in {blocked!r}:
    sys.modules.pop(name, None)
import party_sdk
found = 0
for each in pkgutil.walk_packages(party_sdk.__path__, "party_sdk."):
    if not each.name.endswith("__main__"):
        importlib.import_module(each.name)
        found += 1
import coterie
print(found)
"""


def test_the_sdk_imports_without_modules_of_posix() -> None:
    code = _IMPORTS.format(blocked=POSIX)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


def test_a_lock_is_held_by_one_file_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("wb") as first:
        assert lock(first, waits=False)
        with path.open("wb") as second:
            assert not lock(second, waits=False)
    with path.open("wb") as third:
        assert lock(third, waits=True)


@pytest.mark.parametrize("package", ["party_sdk", "coterie", "clustering_protocols"])
def test_posix_modules_are_imported_where_they_are_used(package: str) -> None:
    """At the head of a file they would keep a party from everything else."""
    root = Path(__file__).parents[2] / package
    heads = [
        (path.name, line)
        for path in root.rglob("*.py")
        for line in path.read_text().splitlines()
        if line.startswith(tuple(f"import {name}" for name in POSIX))
    ]
    assert heads == []


@pytest.mark.parametrize("encoding", ["cp1252", "cp850", "ascii"])
def test_a_console_without_some_letters_ends_no_command(encoding: str) -> None:
    environment = os.environ | {"PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-m", "party_sdk.cli", "protocols", "llf"],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"n_clusters" in done.stdout

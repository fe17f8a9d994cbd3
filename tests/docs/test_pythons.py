"""`.ci/run` tries every Python that runs here, and no name that only looks like one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from clustering_protocols import catalogue

ROOT = Path(__file__).parents[2]
HERE = "{}.{}".format(*sys.version_info)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSIONS = ["3.11", "3.12", "3.13"]


def program(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A path whose only Python is a shim that starts nothing, and pyenv's folders."""
    shims = tmp_path / "shims"
    for name in ("bash", "find", "sort"):
        program(shims / name, f'PATH=/usr/bin:/bin exec {name} "$@"')
    program(shims / f"python{HERE}", "echo command not found >&2; exit 127")
    program(shims / "pyenv", f"echo '{tmp_path}'")
    return tmp_path


def find(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", str(ROOT / ".ci" / "pythons")],
        env={"PATH": str(folder / "shims"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_interpreter_below_pyenv_stands_in_for_its_shim(folder: Path) -> None:
    real = folder / "versions" / f"{HERE}.99" / "bin" / "python"
    program(real, f'exec {os.path.realpath(sys.executable)} "$@"')
    done = find(folder)
    assert done.stdout == f"{HERE} {real}\n"
    assert f"{folder}/shims/python{HERE} does not run as this version." in done.stderr
    for other in set(VERSIONS) - {HERE}:
        assert f"Python {other}: none was found; it is left out." in done.stderr
    assert done.returncode == 0


def test_another_version_under_the_name_is_not_taken(folder: Path) -> None:
    other = next(version for version in VERSIONS if version != HERE)
    fake = folder / "shims" / f"python{other}"
    program(fake, f'exec {os.path.realpath(sys.executable)} "$@"')
    done = find(folder)
    assert done.stdout == ""
    assert f"{fake} does not run as this version." in done.stderr


def test_without_any_or_without_a_chosen_one_it_fails(folder: Path) -> None:
    assert find(folder).returncode == 1
    real = folder / "versions" / f"{HERE}.99" / "bin" / "python"
    program(real, f'exec {os.path.realpath(sys.executable)} "$@"')
    done = find(folder, COTERIE_PYTHONS=f"{HERE} 3.99")
    assert done.returncode == 1
    assert "There is no Python 3.99 here" in done.stderr


def test_the_same_versions_are_named_everywhere() -> None:
    named = " ".join(VERSIONS)
    assert f"COTERIE_PYTHONS:-{named}" in (ROOT / ".ci" / "pythons").read_text()
    classifiers = re.findall(
        r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE
    )
    assert classifiers == VERSIONS
    assert PROJECT["requires-python"] == f">={VERSIONS[0]}"
    assert f"{VERSIONS[0]} to {VERSIONS[-1]}" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", catalogue.catalogue())
def test_every_python_runs_a_session_of_every_protocol(name: str) -> None:
    text = (ROOT / "tests" / "http" / f"test_{name}.py").read_text()
    assert "@pytest.mark.every_python\n" in text

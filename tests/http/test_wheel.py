"""The wheel of all packages, in an environment that has nothing else of ours."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "coterie",
    "coterie_build",
    "analyst_service",
    "party_sdk",
    "coterie_pages",
    "clustering_protocols",
)
PAGE = """
from coterie_pages.pages import page
from support.page_models import sheet
import coterie_pages
assert "site-packages" in coterie_pages.__file__, coterie_pages.__file__
print(page(sheet())[:15])
"""
Run = Callable[..., str]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    [made] = folder.glob("coterie-*.whl")
    return made


@pytest.fixture(scope="module")
def run(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a program of an environment with the wheel, and what it needs of others'."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    install += ["--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    # the libraries; path files among them, such as that of our checkout, are not read
    [ours] = (folder / "venv" / "lib").glob("python*/site-packages")
    (ours / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}

    def call(*words: str, **environment: str) -> str:
        program = str(folder / "venv" / "bin" / words[0])
        done = subprocess.run(
            [program, *words[1:]],
            cwd=folder,
            env=kept | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return call


@pytest.mark.thorough
def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    """Templates, vectors, evidence, migrations: not modules alone."""
    inside = set(zipfile.ZipFile(wheel).namelist())
    files = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files |= {
        f"analyst_service/{path.relative_to(ROOT)}"
        for path in (ROOT / "alembic").rglob("*.py")
    }
    assert len(files) > 500
    assert files - inside == set()
    assert not [name for name in inside if name.startswith(("tests/", "benchmarks/"))]


@pytest.mark.thorough
def test_its_commands_run_where_nothing_else_of_ours_is(
    run: Run, tmp_path: Path
) -> None:
    helped = run("coterie", "--help")
    for command in ("party", "session", "serve", "migrate", "simulate"):
        assert command in helped
    data = str(tmp_path / "data")
    assert "was created" in run("coterie", "migrate", COTERIE_DATA_DIR=data)
    key = run("coterie", "key", "create", "--label", "x", COTERIE_DATA_DIR=data)
    assert key.startswith("ck_")
    assert "dc" in run("coterie", "protocols")
    page = run("python", "-c", PAGE, PYTHONPATH=str(ROOT / "tests"))
    assert page.lower().startswith("<!doctype html>")

"""Two builds of one version are told apart: by ``--version``, ``doctor`` and the log."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.analyst_process import Analyst

from coterie import build as module
from coterie.build import find_commit, find_schema, read_build
from party_sdk.analyst_client.diagnosis import check_home
from party_sdk.cli import main

ROOT = Path(__file__).parents[3]
IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@localhost")


def git(folder: Path, *words: str) -> str:
    command = ["git", *IDENTITY, "-C", str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of its own, in which the package stands."""
    root = tmp_path / "checkout"
    package = root / "coterie"
    root.mkdir()
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, root)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for other in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        (root / other).mkdir(exist_ok=True)
        (root / other / "__init__.py").touch()
    shutil.copy(ROOT / "coterie" / "build.py", package)
    kernels = "clustering_protocols/numerics/kernels.c"
    (root / kernels).parent.mkdir()
    # which compiles at once
    (root / kernels).write_text("const char source_digest[] = SOURCE_DIGEST;\n")
    (root / "alembic").mkdir()
    (root / "alembic" / "env.py").touch()
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "first")
    monkeypatch.setattr(module, "_PACKAGE", package)
    return root


def test_a_checkout_says_its_commit_and_whether_files_differ(checkout: Path) -> None:
    first = git(checkout, "rev-parse", "--short=12", "HEAD")
    assert find_commit() == first
    (checkout / "README.md").write_text("changed")
    assert find_commit() == f"{first}-dirty"
    git(checkout, "commit", "--quiet", "--all", "--message", "second")
    assert find_commit() not in {first, f"{first}-dirty"}


def test_without_git_or_a_repository_the_commit_is_unknown(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert find_commit() is None
    assert "(commit unknown, schema " in str(read_build())
    monkeypatch.undo()
    monkeypatch.setattr(module, "_PACKAGE", checkout / "coterie")
    shutil.rmtree(checkout / ".git")
    assert find_commit() is None


def build(source: Path, target: str, folder: Path, **environment: str) -> Path:
    words = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        target,
        "-d",
        str(folder),
    ]
    subprocess.run(
        words, cwd=source, env=os.environ | environment, capture_output=True, check=True
    )
    [made] = folder.iterdir()
    return made


def commit_of(wheel: Path) -> str:
    return zipfile.ZipFile(wheel).read("coterie/commit").decode().strip()


def test_a_wheel_from_sources_still_holds_the_commit(
    checkout: Path, tmp_path: Path
) -> None:
    first = git(checkout, "rev-parse", "--short=12", "HEAD")
    assert commit_of(build(checkout, "wheel", tmp_path / "wheel")) == first
    sources = build(checkout, "sdist", tmp_path / "sdist")
    shutil.unpack_archive(sources, tmp_path / "unpacked", filter="data")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    assert commit_of(build(unpacked, "wheel", tmp_path / "again")) == first


def test_who_builds_without_git_may_say_the_commit(
    checkout: Path, tmp_path: Path
) -> None:
    shutil.rmtree(checkout / ".git")
    named = build(checkout, "wheel", tmp_path / "named", COTERIE_COMMIT="0123abcd")
    assert commit_of(named) == "0123abcd"
    unnamed = build(checkout, "wheel", tmp_path / "unnamed")
    assert "coterie/commit" not in zipfile.ZipFile(unnamed).namelist()


def test_the_command_and_the_doctor_say_the_build(tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["--version"]).output
    assert told == f"coterie, version {read_build()}\n"
    [versions] = [f for f in check_home(tmp_path) if f.check == "versions"]
    assert str(read_build()) in versions.text


def test_the_first_line_of_the_log_says_the_build(tmp_path: Path) -> None:
    with Analyst(tmp_path / "analyst") as analyst:
        first = json.loads(analyst.log.read_text().splitlines()[0])
    build = read_build()
    assert first["message"] == "serving"
    assert (first["version"], first.get("commit")) == (build.version, build.commit)
    assert first["schema"] == find_schema()

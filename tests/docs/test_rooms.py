"""Folders hold few modules and say what they are for; paths that are named exist."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from support.product import PRODUCT, ROOT, parsed

MOST_IN_A_ROOT, MOST_IN_A_FOLDER = 8, 18
PROTOCOLS = ROOT / "clustering_protocols" / "protocols"
FOLDERS = sorted(
    {path.parent for name in PRODUCT for path in (ROOT / name).rglob("*.py")}
)
SUFFIXES = {".py", ".toml", ".yml", ".yaml", ".md"}
OWN = "|".join((*PRODUCT, "benchmarks", "tests"))
PACKAGES = "|".join(name for name in PRODUCT if name != "coterie")
DOTTED = re.compile(rf"(?<![\w./@-])((?:{PACKAGES})(?:\.[a-zA-Z]\w*)+)")
SLASHED = re.compile(rf"(?<![\w./-])((?:{OWN}|alembic|docker|docs)/[\w/.-]*\.\w+)")
# Histories say how things were called then.
HISTORIES = ("CHANGELOG.md", "docs/decisions/")
MADE_BY_OPERATORS = {
    "docker/.env",
    "docker/database-password",
    "docker/tls.key",
    "docker/tls.pem",
}


def test_roots_and_folders_hold_few_modules() -> None:
    for folder in FOLDERS:
        if PROTOCOLS in folder.parents:  # copied as they are
            continue
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        most = MOST_IN_A_ROOT if folder.parent == ROOT else MOST_IN_A_FOLDER
        assert len(modules) <= most, folder


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: str(f.relative_to(ROOT)))
def test_a_folder_says_what_it_is_for(folder: Path) -> None:
    assert ast.get_docstring(parsed(folder / "__init__.py"))


def named() -> list[tuple[str, str, str]]:
    """Files of the repository, and what paths of ours each names."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    found = []
    for path in listed:
        file = ROOT / path
        if file.suffix not in SUFFIXES or path.startswith(HISTORIES):
            continue
        text = file.read_text()
        found += [(path, "dotted", m[1]) for m in DOTTED.finditer(text)]
        found += [(path, "slashed", m[1]) for m in SLASHED.finditer(text)]
    return found


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something within one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:n])
        if path.with_suffix(".py").is_file():
            return len(parts) - n <= 2 and has(path.with_suffix(".py"), parts[n:])
        if (path / "__init__.py").is_file():
            return has(path / "__init__.py", parts[n:])
    return False


def exists(name: str) -> bool:
    """Whether a path is one of the repository, or of its tests."""
    return (ROOT / name).exists() or (ROOT / "tests" / name).exists()


def has(file: Path, names: list[str]) -> bool:
    """Whether a module's text defines or imports the first of some names."""
    text = file.read_text()
    return not names or re.search(rf"\b{re.escape(names[0])}\b", text) is not None


def test_paths_of_ours_that_any_text_names_exist() -> None:
    wrong = {
        (where, name)
        for where, form, name in named()
        if not (resolves(name) if form == "dotted" else exists(name))
        and name not in MADE_BY_OPERATORS
    }
    assert not wrong

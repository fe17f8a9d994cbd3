"""Helpers of tests stand beside their tests; several folders share few of them."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from support.product import ROOT, parsed

MOST_SHARED = 30
DOTTED = re.compile(r"\w+(\.\w+)+")
TESTS = ROOT / "tests"
SUPPORT = TESTS / "support"
SHARED = sorted(SUPPORT.rglob("*.py"))
BESIDE = [path for path in sorted(TESTS.rglob("*.py")) if SUPPORT not in path.parents]


def imported(tree: ast.Module) -> set[str]:
    """Return the modules that a module imports, with the names that it takes."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{each.name}" for each in node.names}
    return found


def programs(tree: ast.Module) -> set[str]:
    """Return the modules that a module names in strings, or imports in one."""
    said = {
        node.value.strip()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    found = {text for text in said if DOTTED.fullmatch(text)}
    for text in said - found:
        if "import " in text:
            try:
                found |= imported(ast.parse(text))
            except SyntaxError:  # prose
                continue
    return found


@cache
def uses(path: Path) -> set[str]:
    """Return the helpers that a file uses: ``support.x``, ``tests.folder.x``."""
    tree = parsed(path)
    used = [name.split(".") for name in imported(tree) | programs(tree)]
    shared = {".".join(each[:2]) for each in used if each[0] == "support"}
    return shared | {".".join(each[:3]) for each in used if each[0] == "tests"}


def user(path: Path) -> str:
    """Return the folder of tests that a file belongs to; a conftest is itself."""
    place = path.relative_to(TESTS)
    return str(place) if path.name == "conftest.py" else place.parts[0]


@cache
def users() -> dict[str, set[str]]:
    """Return who uses each shared module, itself or by way of another one."""
    found: dict[str, set[str]] = defaultdict(set)

    def visit(path: Path, who: str) -> None:
        for name in uses(path):
            module = SUPPORT / f"{name.removeprefix('support.')}.py"
            if name.startswith("support.") and who not in found[name]:
                found[name].add(who)
                if module.exists():
                    visit(module, who)

    for path in BESIDE:
        visit(path, user(path))
    return found


def test_few_files_are_shared() -> None:
    assert len(SHARED) <= MOST_SHARED


@pytest.mark.parametrize(
    "path",
    [path for path in SHARED if path.name != "__init__.py"],
    ids=lambda path: path.stem,
)
def test_several_folders_use_what_is_shared(path: Path) -> None:
    """Or a conftest does, which serves more tests than its own."""
    found = users()[f"support.{path.stem}"]
    assert len(found) > 1 or any(who.endswith("conftest.py") for who in found), found


def strangers(path: Path) -> list[str]:
    """Return the helpers that a file uses and that stand in another test folder."""
    folder = path.relative_to(TESTS).parts[0]
    found = [name.split(".") for name in uses(path) if name.startswith("tests.")]
    return [".".join(each) for each in found if each[1] != folder]


def test_no_folder_imports_the_helpers_of_another() -> None:
    found = {path: strangers(path) for path in (*BESIDE, *SHARED)}
    assert not {path: names for path, names in found.items() if names}


def test_uses_are_found_however_they_are_written() -> None:
    """By import, as a program, as a plugin, and in the text of another program."""
    assert users()["support.product"] >= {"docs", "sdk"}
    assert users()["support.warm_stock"] >= {"conftest.py"}
    assert users()["support.times"] >= {"conftest.py"}
    assert users()["support.page_models"] >= {"http", "pages"}


def test_a_helper_of_another_folder_is_found() -> None:
    """The program of golden records stands in a folder below that of its test."""
    golden = TESTS / "engine" / "test_golden.py"
    assert any(name.endswith(".engine.golden") for name in uses(golden))
    assert not strangers(golden)

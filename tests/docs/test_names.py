"""Modules and classes are nouns, functions are verbs, and no class shares its name."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from support.product import ROOT, nodes, trees

RULES = tomllib.loads(Path(__file__).with_name("names.toml").read_text())


def is_banned(name: str) -> bool:
    """Whether a name is one participle or preposition."""
    word = name.strip("_").lower()
    one = "_" not in word and not any(c.isupper() for c in name.strip("_")[1:])
    ends = word.endswith(tuple(RULES["banned"]["endings"])) and len(word) > 4
    return one and (ends or word in RULES["banned"]["words"])


def defined(*kinds: type[ast.stmt]) -> Iterator[tuple[Path, str]]:
    """Where something is defined, and its name."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                yield path.relative_to(ROOT), node.name  # type: ignore[attr-defined]


def test_the_rule_finds_what_it_is_for() -> None:
    assert all(map(is_banned, ["told", "_asked", "Standing", "Reopened", "where"]))
    assert not any(map(is_banned, ["read_result", "OrderRunner", "roster", "ring"]))


def test_modules_are_nouns() -> None:
    allowed = set(RULES["modules"]["allowed"])
    found = {path.relative_to(ROOT) for path in trees() if is_banned(path.stem)}
    assert not {path for path in found if path.stem not in allowed}
    assert allowed <= {path.stem for path in found}, "no module has these names"


def test_classes_are_nouns() -> None:
    allowed = set(RULES["classes"]["allowed"])
    found = {name for _, name in defined(ast.ClassDef) if is_banned(name)}
    assert found == allowed


def test_few_classes_share_their_name() -> None:
    files = Counter(name for name in dict.fromkeys(defined(ast.ClassDef)))
    homes = Counter(name for _, name in files)
    twice = {name for name, times in homes.items() if times > 1}
    assert len(twice) <= RULES["classes"]["most_defined_twice"], sorted(twice)


def test_functions_become_verbs() -> None:
    found = [
        f"{path}: {name}"
        for path, name in defined(ast.FunctionDef, ast.AsyncFunctionDef)
        if is_banned(name)
    ]
    assert len(found) == RULES["functions"]["most"], (
        f"{len(found)} functions are named by a participle or preposition: name them by "
        "verbs, and write the smaller number down in names.toml"
    )


def test_names_of_tests_become_short() -> None:
    limit = RULES["tests"]["longest"]
    found = [
        node.name
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and len(node.name) > limit
    ]
    assert len(found) == RULES["tests"]["most_longer"]

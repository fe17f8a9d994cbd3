"""A checked sum is shared and read in one place, and pooled bounds are counted in one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustering_protocols.shared_stages import checked_sums, masked_sums
from clustering_protocols.shared_stages.statistics import powers

PROTOCOLS = Path(masked_sums.__file__).parents[1]
BODY = Path(checked_sums.__file__).relative_to(PROTOCOLS).as_posix()
BOUNDS = Path(powers.__file__).relative_to(PROTOCOLS).as_posix()


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PROTOCOLS.rglob("*.py")):
        yield path.relative_to(PROTOCOLS).as_posix(), ast.parse(path.read_text())


def takes_from(tree: ast.Module, module: str, names: set[str]) -> bool:
    """Return whether a module imports one of these names, or uses it as an attribute."""
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith(module)
        for alias in node.names
    }
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == module
    }
    return bool(names & (imported | used))


def test_checked_sums_are_shared_and_read_in_one_place() -> None:
    names = {"share", "read"}
    found = {path for path, tree in modules() if takes_from(tree, "masked_sums", names)}
    assert found == {BODY}


def test_bounds_are_counted_in_one_place() -> None:
    """Whoever takes exponents, or names the lowest one, counts powers of two."""
    found = set()
    for path, tree in modules():
        if not path.startswith("shared_stages/"):
            continue
        attributes = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        named = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        if "frexp" in attributes or "LOWEST_POWER" in named:
            found.add(path)
    assert found == {BOUNDS}


@pytest.mark.parametrize(
    "text",
    [
        "from a.masked_sums import share",
        "from a.masked_sums import MaskedSum, read as look",
        "from a import masked_sums\nmasked_sums.read(1)",
    ],
)
def test_a_second_way_would_be_seen(text: str) -> None:
    assert takes_from(ast.parse(text), "masked_sums", {"share", "read"})

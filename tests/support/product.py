"""The product's own sources, for tests that read them."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = (
    "analyst_service",
    "clustering_protocols",
    "coterie",
    "coterie_pages",
    "party_sdk",
)


@cache
def parsed(path: Path) -> ast.Module:
    """A module's tree: many tests read the whole product, each of them once more."""
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All that stands in a module, from the outside to the inside."""
    return tuple(ast.walk(parsed(path)))


@cache
def trees() -> dict[Path, ast.Module]:
    """The modules of the product, by path."""
    paths = [path for name in PRODUCT for path in sorted((ROOT / name).rglob("*.py"))]
    return {path: parsed(path) for path in paths}

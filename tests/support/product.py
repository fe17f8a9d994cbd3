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
def parse(path: Path) -> ast.Module:
    """Return a module's tree; many tests read the whole product, so it is kept."""
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module, outer ones before inner ones."""
    return tuple(ast.walk(parse(path)))


@cache
def trees() -> dict[Path, ast.Module]:
    """The modules of the product, by path."""
    paths = [path for name in PRODUCT for path in sorted((ROOT / name).rglob("*.py"))]
    return {path: parse(path) for path in paths}

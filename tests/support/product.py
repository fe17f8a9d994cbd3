"""The product's own sources, for tests that read them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = (
    "analyst_service",
    "clustering_protocols",
    "coterie",
    "coterie_build",
    "coterie_http",
    "coterie_pages",
    "party_sdk",
)


@cache
def trees() -> dict[Path, ast.Module]:
    """The modules of the product, by path."""
    paths = [path for name in PRODUCT for path in sorted((ROOT / name).rglob("*.py"))]
    return {path: ast.parse(path.read_text()) for path in paths}

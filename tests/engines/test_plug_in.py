"""Dask is a plug-in: one name of the engines is used, and nothing else names Dask."""

from __future__ import annotations

import ast

from support.product import ROOT, trees

ENGINES = "analyst_service.engines"
FOLDER = ROOT / "analyst_service" / "engines"
SETTINGS = ROOT / "analyst_service" / "settings.py"


def test_one_name_of_the_engines_is_used_outside() -> None:
    used = {
        name.name
        for path, tree in trees().items()
        if FOLDER not in path.parents
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ENGINES)
        for name in node.names
    }
    assert used == {"EngineChoice"}


def test_nothing_else_names_dask_but_the_settings() -> None:
    found = {
        path
        for path in trees()
        if "dask" in path.read_text().lower() and FOLDER not in path.parents
    }
    assert found == {SETTINGS}

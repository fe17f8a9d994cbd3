"""One place builds a transport; what carries a question is known to it alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from support.product import ROOT, trees

SEAM = Path("party_sdk/analyst_client/analyst.py")
BUILDER = Path("party_sdk/analyst_client/http_analyst.py")
CLIENT = "party_sdk/analyst_client"
READINESS = "party_sdk/cli/lab/demonstration.py"  # asks whether its analyst runs


def called(name: str) -> list[Path]:
    """The modules in which something of a name is called, once for each call."""
    return [
        path.relative_to(ROOT)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) == name
    ]


def imported(tree: ast.Module) -> set[str]:
    """The modules that a module names in its imports, with what it takes of them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_one_place_builds_a_transport() -> None:
    assert called("Transport") == [BUILDER]
    assert called("HttpAnalyst").count(BUILDER) == len(called("HttpAnalyst"))


def test_nothing_inherits_a_transport_or_an_analyst_over_http() -> None:
    bases = {
        getattr(base, "id", "")
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    }
    assert not bases & {"Transport", "HttpAnalyst"}


def test_httpx_is_known_to_the_client_alone() -> None:
    known = {
        str(path.relative_to(ROOT))
        for path, tree in trees().items()
        if path.relative_to(ROOT).parts[0] == "party_sdk"
        if any(name.partition(".")[0] == "httpx" for name in imported(tree))
    }
    assert {path for path in known if not path.startswith(CLIENT)} == {READINESS}


def test_headers_of_http_stay_out_of_the_pure_package() -> None:
    header = re.compile(r"(Coterie|Upload|Repr|Content|Retry|X)-[A-Z]\w+|Prefer|Bearer")
    spelled = {
        str(path.relative_to(ROOT)): node.value
        for path, tree in trees().items()
        if path.relative_to(ROOT).parts[0] == "clustering_protocols"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if header.fullmatch(node.value)
    }
    assert not spelled


def test_the_seam_names_nothing_of_http() -> None:
    text = (ROOT / SEAM).read_text()
    names = imported(ast.parse(text))
    assert not {name for name in names if "http" in name.lower()}
    assert not {name for name in names if name.startswith("party_sdk")}
    assert "/v1/" not in text

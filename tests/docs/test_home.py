"""What an institution does at home is written once; commands, desk and orders call it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from support.product import ROOT, nodes, trees

from party_sdk.application.asker import Asker
from party_sdk.cli.terminal.asker import TerminalAsker
from party_sdk.supervisor.order_runner import OrderAsker

HOME = "party_sdk/application/home.py"


def product() -> Iterator[tuple[str, ast.AST]]:
    """Yield all that stands in the product, with its file."""
    for path in trees():
        name = str(path.relative_to(ROOT))
        yield from ((name, node) for node in nodes(path))


def receivers(name: str) -> Iterator[tuple[str, str]]:
    """Yield where a method of that name is called, and upon what."""
    for path, node in product():
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == name:
            yield path, ast.unparse(called.value)


def test_an_analyst_is_told_of_a_refusal_from_one_module() -> None:
    told = {path for path, on in receivers("decline") if "analyst" in on}
    assert told == {"party_sdk/party/leave.py"}
    states = {
        path
        for path, node in product()
        if path.startswith("party_sdk/")
        and isinstance(node, ast.Attribute)
        and ast.unparse(node) in {"SlotState.REFUSED", "SlotState.DECLINED"}
    }
    assert "party_sdk/party/leave.py" in states
    assert states <= {"party_sdk/party/leave.py", "party_sdk/supervisor/orders.py"}


def test_a_party_is_joined_and_run_in_one_place() -> None:
    assert [path for path, on in receivers("join") if on == "Party"] == [HOME]
    assert [path for path, on in receivers("run") if on == "member"] == [HOME]
    tables = {path for path, _ in receivers("tell_refusals")}
    assert tables == {HOME, "party_sdk/party/participant.py"}


def test_new_rows_are_labelled_in_one_place() -> None:
    found = {path for path, on in receivers("predict") if "result" in on}
    offers = {"party_sdk/party/party_at_home.py", "party_sdk/estimators/base.py"}
    assert found == {HOME, *offers}
    faces = {path for path, on in receivers("label") if on.endswith(("here", "home"))}
    assert faces == {
        "party_sdk/cli/party/new_rows.py",
        "party_sdk/desk/party/run_results.py",
    }


def test_terms_are_previewed_in_one_place() -> None:
    asked = [
        path
        for path, node in product()
        if isinstance(node, ast.FunctionDef) and node.name == "preview_terms"
    ]
    assert asked == ["party_sdk/party/join.py"]
    fetched = {path for path, on in receivers("preview") if "analyst" in on}
    assert fetched == set(asked)


def test_one_protocol_asks_people_by_two_faces() -> None:
    named = [
        (path, node.name)
        for path, node in product()
        if path.startswith("party_sdk/")
        if isinstance(node, ast.ClassDef) and node.name.endswith("Asker")
    ]
    assert sorted(name for _, name in named) == ["Asker", "OrderAsker", "TerminalAsker"]
    assert {TerminalAsker, OrderAsker} <= set(Asker.__subclasses__())


def test_the_layer_knows_no_face() -> None:
    faces = {"click", "starlette", "jinja2"}
    for path in (ROOT / "party_sdk" / "application").glob("*.py"):
        assert not faces & imported(path), path


def imported(path: Path) -> set[str]:
    """Return the packages that a module names, anywhere in it."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
    return found

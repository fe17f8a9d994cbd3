"""The lab has a door of few names, and one path on which a result is measured."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from support.product import ROOT, nodes, trees

from party_sdk import lab

DOOR, MOST = "party_sdk.lab", 20
INSIDE = ROOT / "party_sdk" / "lab"


def outside() -> Iterator[Path]:
    """What may use the lab: all of the product but itself, and the benchmarks."""
    yield from (path for path in trees() if INSIDE not in path.parents)
    yield from sorted((ROOT / "benchmarks").rglob("*.py"))


def imported() -> Iterator[tuple[Path, str, str]]:
    """Each name that is imported from outside: file, module, name."""
    for path in outside():
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom):
                yield from ((path, node.module or "", each.name) for each in node.names)
            elif isinstance(node, ast.Import):
                yield from ((path, each.name, "") for each in node.names)


def callers(name: str) -> set[str]:
    """Files of the product that call a function or method of this name."""
    found = set()
    for path in trees():
        for node in nodes(path):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(name):
                found.add(str(path.relative_to(ROOT)))
    return found


def test_the_door_has_few_names_and_each_is_used() -> None:
    used = {name for _, module, name in imported() if module == DOOR}
    assert used <= set(lab.__all__)
    assert set(lab.__all__) == used
    assert len(used) <= MOST
    assert all(getattr(lab, name) is not None for name in lab.__all__)


def test_nobody_reaches_past_the_door() -> None:
    past = [
        (path, module)
        for path, module, name in imported()
        if module.startswith(f"{DOOR}.") or (module, name) == ("party_sdk", "lab")
    ]
    assert not past


def test_a_result_is_measured_in_one_place() -> None:
    measure = "clustering_protocols/simulation/evaluation.py"
    path = "party_sdk/lab/trials/simulated_session.py"
    assert callers("simulation.measure") == {path}
    assert callers("simulation.run") == {path}
    assert callers("simulation.evaluate") == set()  # of benchmarks and tests alone
    # the demo's parties cluster alone, each its own rows
    alone = "party_sdk/cli/lab/demo_scores.py"
    assert callers(".cluster_pooled") == {measure, alone}
    assert callers("simulation.fidelity") == {alone}

"""Reading tables and the lab have doors of few names; a result is measured on one path."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from support.product import ROOT, nodes, trees

LAB, TABLES = "party_sdk.lab", "party_sdk.tables"
# Reading has one, and each subject beside it that others work with.
DOORS = (
    LAB,
    TABLES,
    f"{TABLES}.dictionaries",
    f"{TABLES}.linkage",
    f"{TABLES}.linkage_trials",
    f"{TABLES}.mapping",
    f"{TABLES}.proposals",
)
MOST = 20


def outside(package: str) -> Iterator[Path]:
    """What may use a package: all of the product but itself, and the benchmarks."""
    inside = ROOT.joinpath(*package.split("."))
    yield from (path for path in trees() if inside not in path.parents)
    yield from sorted((ROOT / "benchmarks").rglob("*.py"))


def imported(package: str) -> Iterator[tuple[Path, str, str]]:
    """Each name that is imported from outside: file, module, name."""
    for path in outside(package):
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


@pytest.mark.parametrize("door", DOORS)
def test_a_door_has_few_names_and_each_is_used(door: str) -> None:
    package = LAB if door == LAB else TABLES
    used = {name for _, module, name in imported(package) if module == door}
    opened = import_module(door)
    assert used == set(opened.__all__)
    assert len(used) <= MOST
    assert all(getattr(opened, name) is not None for name in used)


@pytest.mark.parametrize("package", [LAB, TABLES])
def test_nobody_reaches_past_a_door(package: str) -> None:
    parent, _, own = package.rpartition(".")
    past = [
        (path, module)
        for path, module, name in imported(package)
        if (module.startswith(f"{package}.") and module not in DOORS)
        or (module, name) == (parent, own)
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

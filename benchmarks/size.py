"""How much code there is: statements by the parser, lines, templates and JSON beside.

    python -m benchmarks.size [REVISION]

A statement is what the interpreter executes or defines; docstrings are none, and to break a
line or to move it changes nothing. With a revision both trees are counted in one run.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
WHEEL: Final = (
    "analyst_service",
    "clustering_protocols",
    "coterie",
    "coterie_pages",
    "party_sdk",
)
BESIDE: Final = ("benchmarks", "coterie_build", "coterie_http", "tests")


def count_statements(text: str) -> int:
    """Return how many statements a module has, docstrings left out."""
    nodes = list(ast.walk(ast.parse(text)))
    return sum(isinstance(each, ast.stmt) for each in nodes) - sum(
        isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Constant)
        and isinstance(each.value.value, str)
        for each in nodes
    )


def measure(root: Path) -> dict[str, Counter[str]]:
    """Return statements, lines and other files of each package below a folder."""
    found: dict[str, Counter[str]] = {}
    for name in (*WHEEL, *BESIDE):
        found[name] = counts = Counter[str]()
        for path in (root / name).rglob("*"):
            if path.suffix == ".py":
                text = path.read_text()
                counts["files"] += 1
                counts["statements"] += count_statements(text)
                counts["lines"] += text.count("\n")
            elif path.suffix in {".j2", ".json"}:
                counts[path.suffix] += path.read_text().count("\n")
    return found


def unpack(revision: str, folder: str) -> Path:
    """Write the tree of a revision into a folder, and return it."""
    archive = Path(folder) / "tree.tar"
    command = ["git", "archive", "--output", str(archive), revision]
    subprocess.run(command, cwd=ROOT, check=True)
    with tarfile.open(archive) as tree:
        tree.extractall(folder, filter="data")
    return Path(folder)


def print_table(title: str, found: dict[str, Counter[str]]) -> None:
    """Print what was counted, a package a line."""
    kinds = ("files", "statements", "lines", ".j2", ".json")
    print(f"{title:24}" + "".join(f"{kind:>12}" for kind in kinds))
    for name, counts in found.items():
        if counts:
            print(f"{name:24}" + "".join(f"{counts[kind]:12,}" for kind in kinds))


def count_product(found: dict[str, Counter[str]]) -> int:
    """Return the statements of everything but the tests."""
    return sum(
        counts["statements"] for name, counts in found.items() if name != "tests"
    )


def main() -> None:
    """Print the counts of this tree, and of another beside it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("revision", nargs="?", help="print this tree too")
    revision = parser.parse_args().revision
    here = measure(ROOT)
    print_table("here", here)
    total = count_product(here)
    print(f"statements without tests: {total:,}")
    if revision:
        with tempfile.TemporaryDirectory() as folder:
            before = measure(unpack(revision, folder))
        print_table(revision, before)
        change = total / count_product(before) - 1
        print(
            f"statements without tests: {count_product(before):,}, {change:+.1%} since"
        )


if __name__ == "__main__":
    main()

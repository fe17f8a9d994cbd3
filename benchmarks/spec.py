"""Writes the generated parts of spec/: messages, schemas, registry of labels.

    python -m benchmarks.spec

Tables and names come from the code. The sentence of each label is written by hand and
kept; a new label gets an empty one, and a test fails until somebody writes it.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks import spec_pages
from benchmarks.spec_calls import write_calls
from benchmarks.spec_example import write_example
from benchmarks.vectors.form import read_layers, read_sessions
from clustering_protocols.protocol_packages import built_in_modules

ROOT: Final = Path(__file__).parents[1]
SPEC: Final = ROOT / "spec"
REGISTRY: Final = SPEC / "registry.toml"
PACKAGES: Final = ("analyst_service", "clustering_protocols", "coterie", "party_sdk")
_LABEL: Final = re.compile(r"coterie/([a-z-]+(?:/[a-z-]+)?)/(\d+)")
# By function, the argument that names what is derived: its place and its keyword.
_CALLS: Final = {
    "group_key": (2, "purpose"),
    "group_mac": (2, "purpose"),
    "group_stream": (2, "purpose"),
    "lasting_stream": (0, "purpose"),
    "stream": (0, "purpose"),
    "MaskedSum": (1, "name"),
    "Sum": (0, "name"),
}
_HEAD: Final = (
    "# Versions, purposes and names are written by: python -m benchmarks.spec\n"
    "# The sentence of a label ('use') is written by hand.\n"
)


def generated() -> dict[Path, str]:
    """Return the text of each generated file of spec/."""
    messages, schemas, vectors = SPEC / "messages", SPEC / "schemas", SPEC / "vectors"
    sessions = read_sessions(vectors)
    return {
        **{messages / f"{n}.md": spec_pages.write_page(n) for n in built_in_modules()},
        **{
            schemas / f"{name}.json": spec_pages.write_schema(name)
            for name in spec_pages.SCHEMAS
        },
        SPEC / "example.md": write_example(sessions["dummy"]),
        SPEC / "calls.md": write_calls(read_layers(vectors), sessions),
        REGISTRY: registry(REGISTRY),
    }


def registry(known: Path) -> str:
    """Return the registry of the code's names, with the sentences in the file ``known``."""
    labels = tomllib.loads(known.read_text())["labels"] if known.exists() else {}
    versions: dict[str, set[int]] = {}
    for name, version in found_labels():
        versions.setdefault(name, set()).add(version)
    text = [_HEAD]
    for name in sorted(versions):
        use = labels.get(name, {}).get("use", "")
        text.append(f"\n[labels.{json.dumps(name)}]\n")
        text.append(f"versions = {sorted(versions[name])}\n")
        text.append(f"use = {json.dumps(use, ensure_ascii=False)}\n")
    for function, names in found_names().items():
        text.append(f"\n[names.{function}]\n")
        text += [f"{json.dumps(n)} = {json.dumps(where)}\n" for n, where in names]
    return "".join(text)


def found_labels() -> set[tuple[str, int]]:
    """Return name and version of every label that stands in the code."""
    return {
        (match[1], int(match[2]))
        for _, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        for raw in [node.value]
        for text in [raw if isinstance(raw, str) else raw.decode("latin-1")]
        for match in [_LABEL.fullmatch(text)]
        if match
    }


def found_names() -> dict[str, list[tuple[str, str]]]:
    """Return purposes and sum names by the function they are passed to, with modules.

    '{}' stands for each part of a name that is not a constant in the code.
    """
    found: dict[str, dict[str, set[str]]] = {name: {} for name in _CALLS}
    for path, tree in _modules():
        for node in ast.walk(tree):
            call = node.func if isinstance(node, ast.Call) else None
            function = getattr(call, "attr", None) or getattr(call, "id", "")
            if isinstance(node, ast.Call) and function in _CALLS:
                place, keyword = _CALLS[function]
                named = [each.value for each in node.keywords if each.arg == keyword]
                for given in (named or node.args[place:])[:1]:
                    module = path.relative_to(ROOT).as_posix()
                    found[function].setdefault(_template(given), set()).add(module)
    return {
        function: [(name, ", ".join(sorted(at))) for name, at in sorted(names.items())]
        for function, names in found.items()
    }


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "clustering_protocols" in path.parts or "coterie/" in path.read_text():
                yield path, ast.parse(path.read_text())


def _template(given: ast.expr) -> str:
    parts = given.values if isinstance(given, ast.JoinedStr) else [given]
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts
    )


if __name__ == "__main__":
    for path, text in generated().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

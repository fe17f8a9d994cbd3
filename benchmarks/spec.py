"""Writes the generated parts of spec/: tables of messages, and the registry of labels.

    python -m benchmarks.spec

Tables and names come from the code. The sentence of each label is written by hand and
kept; a new label gets an empty one, and a test fails until somebody writes it. The test
needs nothing but to run this again where names or versions changed.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from clustering_protocols.engine.message_tables import (
    ArrayField,
    StageOrder,
    WireMessage,
    build_message_table,
)
from clustering_protocols.protocol_packages import own_modules

ROOT: Final = Path(__file__).parents[1]
SPEC: Final = ROOT / "spec"
REGISTRY: Final = SPEC / "registry.toml"
PACKAGES: Final = ("analyst_service", "clustering_protocols", "coterie", "party_sdk")
_LABEL: Final = re.compile(r"coterie/([a-z-]+(?:/[a-z-]+)?)/(\d+)")
# Which argument names what is derived: its place, and its keyword.
_CALLS: Final = {
    "group_key": (2, "purpose"),
    "group_mark": (2, "purpose"),
    "group_stream": (2, "purpose"),
    "lasting_stream": (0, "purpose"),
    "stream": (0, "purpose"),
    "MaskedSum": (1, "name"),
}
_HEAD: Final = (
    "# Versions, purposes and names are written by: python -m benchmarks.spec\n"
    "# The sentence of a label ('use') is written by hand.\n"
)


def generated() -> dict[Path, str]:
    """Return the text of each generated file of spec/."""
    pages = {SPEC / "messages" / f"{name}.md": page(name) for name in own_modules()}
    return {**pages, REGISTRY: registry(REGISTRY)}


def registry(known: Path) -> str:
    """Return the registry of the code's names, with the sentences that a file has."""
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
        for match in [_LABEL.fullmatch(_text(node.value))]
        if match
    }


def found_names() -> dict[str, list[tuple[str, str]]]:
    """Return purposes and sum names by the function they are given to, with modules.

    Of a name that is composed, '{}' stands for each part. A name that comes from
    elsewhere is '{}' altogether: who passes it on stands beside it.
    """
    found: dict[str, dict[str, set[str]]] = {name: {} for name in _CALLS}
    for path, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (function := _name(node)) in _CALLS:
                given = _argument(node, *_CALLS[function])
                if given is not None:
                    module = path.relative_to(ROOT).as_posix()
                    found[function].setdefault(_template(given), set()).add(module)
    return {
        function: [(name, ", ".join(sorted(names[name]))) for name in sorted(names)]
        for function, names in found.items()
    }


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "clustering_protocols" in path.parts or "coterie/" in path.read_text():
                yield path, ast.parse(path.read_text())


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", None) or getattr(call.func, "id", "")


def _argument(call: ast.Call, place: int, keyword: str) -> ast.expr | None:
    named = [each.value for each in call.keywords if each.arg == keyword]
    return (named or call.args[place : place + 1] or [None])[0]


def _template(given: ast.expr) -> str:
    parts = given.values if isinstance(given, ast.JoinedStr) else [given]
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts
    )


def page(name: str) -> str:
    """Return the page of a protocol's messages."""
    table = build_message_table(name)
    text = [
        f"# Messages of `{name}`, version {table.version}\n\n",
        (
            "Written by `python -m benchmarks.spec` from the code's declarations. "
            f"`GET /v1/protocols/{name}/messages` serves the same, with a JSON Schema "
            "of the other fields.\n\n"
        ),
        (
            "Equal symbols of axes are equal sizes in one message. `[low, high]` "
            "bounds every item; a blank bound is none.\n\n## Messages\n\n"
        ),
        "| stage | kind, version | is a | sender → reader | arrays | other fields |\n",
        "|---|---|---|---|---|---|\n",
        *(_row(message) for message in table.messages),
        "\n## Order of stages\n\n",
        (
            "Each session is one of the protocol's examples. `n to m` says how often a "
            "party is asked. The group in brackets is told the same task; fields behind "
            "`but for` differ within it.\n"
        ),
    ]
    for number, session in enumerate(table.sessions, 1):
        params = json.dumps(session.params, sort_keys=True, ensure_ascii=False)
        text.append(f"\n### Session {number}\n\nSlots: {', '.join(session.slots)}. ")
        text.append(f"Parameters other than defaults: `{params}`\n\n")
        text += [_stage(stage) for stage in session.stages]
    return "".join(text)


def _row(message: WireMessage) -> str:
    arrays = "; ".join(_array(each) for each in message.arrays)
    fields = message.values["properties"]
    values = "; ".join(f"`{name}`: {_type(each)}" for name, each in fields.items())
    return (
        f"| {message.stage} | `{message.kind}`, {message.version} | {message.role} "
        f"| {message.sender} → {message.reader} | {arrays} | {values} |\n"
    )


def _array(array: ArrayField) -> str:
    shape = ", ".join(str(axis) for axis in array.shape)
    low, high = ("" if bound is None else f"{bound:g}" for bound in array.bounds)
    return f"`{array.name}`: {array.dtype} ({shape})" + f" [{low}, {high}]" * bool(
        low or high
    )


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", schema.get("const", "any value")))


def _stage(stage: StageOrder) -> str:
    rounds = "; ".join(
        f"`{each.task}` → `{each.contribution}`, {each.least} to {each.most} "
        f"({each.audience}{', but for ' + ', '.join(each.own) if each.own else ''})"
        for each in stage.rounds
    )
    return f"- **{stage.name}**: {rounds}\n"


if __name__ == "__main__":
    for path, text in generated().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

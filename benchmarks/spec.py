"""Writes the generated parts of spec/: messages, calls, an example, schemas, labels.

    python -m benchmarks.spec

Tables and names come from the code. The sentence of each label is written by hand and
kept; a new label gets an empty one, and a test fails until somebody writes it.
"""

from __future__ import annotations

import ast
import base64
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from benchmarks.vectors.form import (
    RecordedSession,
    SessionFile,
    VectorCase,
    read_layers,
    read_sessions,
)
from clustering_protocols import catalogue
from clustering_protocols.engine import packets
from clustering_protocols.engine.message_tables import (
    ArrayField,
    StageOrder,
    WireMessage,
    build_message_table,
)
from clustering_protocols.protocol_packages import built_in_modules
from clustering_protocols.records import hash_chain
from clustering_protocols.terms.agreements import Agreement
from clustering_protocols.terms.terms import Terms
from coterie_pages.form_fields import parameters_of

ROOT: Final = Path(__file__).parents[1]
SPEC: Final = ROOT / "spec"
REGISTRY: Final = SPEC / "registry.toml"
SCHEMAS: Final[Mapping[str, type[BaseModel]]] = {
    "terms": Terms,
    "agreement": Agreement,
}
PACKAGES: Final = ("analyst_service", "clustering_protocols", "coterie", "party_sdk")
_LABEL: Final = re.compile(r'"coterie/([a-z-]+(?:/[a-z-]+)?)/(\d+)"')
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
    layers, sessions = read_layers(vectors), read_sessions(vectors)
    cases = [case for layer in layers.values() for case in layer.cases]
    for file in sessions.values():
        cases += [step for session in file.sessions for step in session.steps]
    return {
        **{messages / f"{n}.md": write_page(n) for n in built_in_modules()},
        **{
            schemas / f"{name}.json": json.dumps(
                model.model_json_schema(), indent=1, sort_keys=True, ensure_ascii=False
            )
            + "\n"
            for name, model in SCHEMAS.items()
        },
        SPEC / "example.md": write_example(sessions["dummy"]),
        SPEC / "calls.md": write_calls(cases),
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
    for function, names in purpose_and_sum_names().items():
        text.append(f"\n[names.{function}]\n")
        text += [f"{json.dumps(n)} = {json.dumps(where)}\n" for n, where in names]
    return "".join(text)


def found_labels() -> set[tuple[str, int]]:
    """Return name and version of every label that stands in the code."""
    return {
        (name, int(version))
        for path, _ in _modules()
        for name, version in _LABEL.findall(path.read_text())
    }


def purpose_and_sum_names() -> dict[str, list[tuple[str, str]]]:
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


# Messages and parameters of a protocol


def write_page(name: str) -> str:
    """Return the page of a protocol's parameters and messages."""
    table = build_message_table(name)
    text = [
        f"# Messages of `{name}`, version {table.version}\n\n",
        (
            "Written by `python -m benchmarks.spec` from the code's declarations. "
            f"`GET /v1/protocols/{name}/messages` serves the messages, with a JSON "
            "Schema of the other fields.\n\n## Parameters\n\nWhat the terms leave out "
            "has the default.\n\n"
        ),
        "| parameter | values | default | meaning |\n|---|---|---|---|\n",
        *_parameter_rows(name),
        (
            "\n## Messages\n\nEqual symbols of axes are equal sizes in one message. "
            "`[low, high]` bounds every item; a blank bound is none.\n\n"
        ),
        "| stage | kind, version | is a | sender → reader | arrays | other fields |\n",
        "|---|---|---|---|---|---|\n",
        *(_message_row(message) for message in table.messages),
        *_types(table.messages),
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


def _parameter_rows(name: str) -> Iterator[str]:
    for each in parameters_of(catalogue.build_catalogue_entry(name)["params"]):
        has_default = "default" in each.schema
        usual = f"`{json.dumps(each.schema['default'])}`" if has_default else "required"
        values = each.kind.replace(" | ", ", ")
        meaning = str(each.schema.get("description", "")).replace("|", "\\|")
        yield f"| `{each.name}` | {values} | {usual} | {meaning} |\n"


def _message_row(message: WireMessage) -> str:
    arrays = "; ".join(_array(each) for each in message.arrays)
    fields = message.values["properties"]
    values = "; ".join(f"`{name}`: {_type(each)}" for name, each in fields.items())
    return (
        f"| {message.stage} | `{message.kind}`, {message.version} | {message.role} "
        f"| {message.sender} → {message.reader} | {arrays} | {values} |\n"
    )


def _types(messages: Sequence[WireMessage]) -> Iterator[str]:
    """Yield a description of each type that fields name."""
    found = {
        name: ", ".join(
            f"`{field}` ({_type(each)})" for field, each in schema["properties"].items()
        )
        for message in messages
        for name, schema in message.values.get("$defs", {}).items()
    }
    if found:
        yield "\nA field of one of these types is an object that has all of these members:\n\n"
    for name in sorted(found):
        yield f"- {name}: {found[name]}.\n"


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


# Calls of the vectors

_CALLS_HEAD: Final = """# Calls

Written by `python -m benchmarks.spec` from the files of [vectors/](vectors). Section 14 says what each call does. A field that some cases lack has `?`.

| call | input | output |
|---|---|---|
"""
_JSON_TYPES: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "text",
    list: "list",
    dict: "object",
}


def write_calls(cases: Iterable[VectorCase]) -> str:
    """Return the page of calls: what each is given and returns."""
    by_call: dict[str, list[VectorCase]] = {}
    for case in cases:
        by_call.setdefault(case.call, []).append(case)
    rows = [
        f"| `{call}` | {_describe_members(case.input for case in found)} | "
        f"{_describe_members(case.output for case in found if case.output is not None)} |\n"
        for call, found in by_call.items()
    ]
    return _CALLS_HEAD + "".join(rows)


def _describe_members(objects: Iterable[Mapping[str, Any]]) -> str:
    """Return the names and types of the members of objects; `?` if some lack it."""
    every = list(objects)
    names = dict.fromkeys(name for each in every for name in each)
    return ", ".join(_describe_member(name, every) for name in names)


def _describe_member(name: str, objects: list[Mapping[str, Any]]) -> str:
    found = [each[name] for each in objects if name in each]
    types = " or ".join(dict.fromkeys(_JSON_TYPES[type(value)] for value in found))
    return f"`{name}`{'' if len(found) == len(objects) else '?'} {types}"


# A recorded session, decoded

_SHOWN: Final = 32
_EXAMPLE_HEAD: Final = """# A session, read

Written by `python -m benchmarks.spec` from [vectors/sessions](vectors/sessions): the first
session of `dummy`, as slot `{slot}` knows it. Nothing of it is part of the specification.
Arrays of bytes are not shown; text in hex and base64 is cut short.
"""


def write_example(file: SessionFile) -> str:
    """Return the page of the first session of a file."""
    session = file.sessions[0]
    opening = session.steps[0].input
    head = _EXAMPLE_HEAD.format(slot=opening["slot"])
    return "\n".join([head, *_describe_opening(opening), *_describe_steps(session)])


def _describe_opening(opening: dict[str, Any]) -> Iterator[str]:
    agreement = json.loads(opening["agreement"])
    yield from _block("Invitation (section 4)", opening["invitation"], "text")
    yield from _block("Terms (section 4)", json.loads(opening["terms"]))
    yield from _block("The party's member of the roster (section 5)", opening["own"])
    lines = [member["slot"] for member in agreement["roster"]]
    shown = {"terms": "as above, as text", "roster": lines}
    yield from _block("Agreement (section 5): the roster has these members", shown)


def _describe_steps(session: RecordedSession) -> Iterator[str]:
    for step in session.steps[1:]:
        sent = _read(step.input.get("task") or step.input["result"])
        yield f"## {step.name}\n"
        yield from _block("Sent to the party", _describe_packet(sent))
        yield from _block("Its last line (section 7)", json.loads(sent.history[-1]))
        yield f"The transcript is `{_cut(hash_chain.digest(sent.history[-1]))}`.\n"
        output = step.output or {}
        if "labels" in output:
            yield from _block("Labels, in the order of the table", output["labels"])
        else:
            answer = _describe_packet(_read(output["contribution"]))
            yield from _block("The contribution", answer)


def _read(text: str) -> packets.Packet:
    return packets.parse(base64.b64decode(text))


def _describe_packet(packet: packets.Packet) -> dict[str, Any]:
    """Return header and record of a packet."""
    header = packet.header.model_dump(mode="json")
    arrays = {
        name: {"dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in packet.arrays.items()
    }
    return {"header": header, "record": packet.header.record, "arrays": arrays}


def _block(title: str, content: Any, language: str = "json") -> Iterator[str]:
    shown = content
    if language == "json":
        shown = json.dumps(_shorten(content), indent=1, ensure_ascii=False)
    yield f"{title}:\n\n```{language}\n{shown}\n```\n"


def _shorten(value: Any) -> Any:
    """Return JSON values with long texts cut short."""
    if isinstance(value, dict):
        return {name: _shorten(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shorten(each) for each in value]
    return _cut(value) if isinstance(value, str) else value


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN or " " in text else f"{text[: _SHOWN // 2]}…"


if __name__ == "__main__":
    for path, text in generated().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

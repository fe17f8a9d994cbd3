"""Texts of spec/ that are derived from the code: messages, parameters, schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from clustering_protocols import catalogue
from clustering_protocols.engine.message_tables import (
    ArrayField,
    StageOrder,
    WireMessage,
    build_message_table,
)
from clustering_protocols.terms.agreements import Agreement
from clustering_protocols.terms.terms import Terms
from coterie_pages.form_fields import Parameter, parameters_of

SCHEMAS: Final[Mapping[str, type[BaseModel]]] = {
    "terms": Terms,
    "agreement": Agreement,
}


def write_schema(name: str) -> str:
    """Return the JSON Schema of a text that a party reads."""
    schema = SCHEMAS[name].model_json_schema()
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


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
        yield f"| `{each.name}` | {_values(each)} | {usual} | {_meaning(each)} |\n"


def _values(parameter: Parameter) -> str:
    return parameter.kind.replace(" | ", ", ")


def _meaning(parameter: Parameter) -> str:
    return str(parameter.schema.get("description", "")).replace("|", "\\|")


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
        yield "\nTypes of fields are objects with these members, all of them:\n\n"
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

"""`coterie protocols`: what there is, and what each takes, without an analyst."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from party_sdk.cli.output import json_option, say
from party_sdk.cli.tables import aligned

_WIDTH: Final = 88


@click.command()
@click.argument("name", required=False)
@json_option
def protocols(name: str | None, *, as_json: bool) -> None:
    """List the protocols; with NAME, say what one takes.

    That is its parameters with limits and defaults, who learns what, its risks, and
    what a party may decide alone.
    """
    from clustering_protocols import registry

    if name is None:
        _show_all(as_json=as_json)
        return
    known = registry.describe(name)
    if as_json:
        say(json.dumps(known))
        return
    say(f"{name}: {known['title']}")
    for line in _lines(known):
        say(line)


def _show_all(*, as_json: bool) -> None:
    from clustering_protocols import registry

    known = {name: each for name, each in registry.catalogue().items() if each.methods}
    if as_json:
        say(json.dumps([registry.describe(name) for name in known]))
        return
    rows = [["PROTOCOL", "SPLIT", "WHAT IT IS"]]
    rows += [
        [name, ", ".join(each.partitionings), each.title]
        for name, each in known.items()
    ]
    for line in aligned(rows):
        say(line)


def _lines(known: Mapping[str, Any]) -> Iterator[str]:
    yield from _wrapped(known["summary"], "")
    yield from ("", "Parameters (--param NAME=VALUE):")
    schema = known["params"]
    required = schema.get("required", [])
    for name, each in schema["properties"].items():
        yield from _parameter(
            name, each, schema.get("$defs", {}), is_required=name in required
        )
    for title, key in (
        ("Who learns what:", "learns"),
        ("Risks that sessions may bring:", "risks"),
        ("What a party may decide alone (--choice NAME=VALUE):", "choices"),
    ):
        yield from ("", title)
        for name, sentence in known[key].items():
            yield f"  {name}"
            yield from _wrapped(sentence, "      ")


def _parameter(
    name: str, field: Mapping[str, Any], parts: Mapping[str, Any], *, is_required: bool
) -> Iterator[str]:
    """Yield a parameter with what it may be; one of several parts part by part."""
    reference = str(field.get("$ref", "")).rpartition("/")[2]
    if reference in parts:
        inside = parts[reference]
        for part, each in inside.get("properties", {}).items():
            needed = is_required and part in inside.get("required", [])
            yield from _parameter(f"{name}.{part}", each, parts, is_required=needed)
        return
    default = (
        "required" if is_required else f"default {json.dumps(field.get('default'))}"
    )
    yield f"  {name}  ({'; '.join(filter(None, [_kind(field), default]))})"
    yield from _wrapped(str(field.get("description", "")), "      ")


def _kind(field: Mapping[str, Any]) -> str:
    """Return type and limits in words."""
    if "anyOf" in field:
        kinds = [each for each in field["anyOf"] if each.get("type") != "null"]
        return " or ".join(filter(None, map(_kind, kinds)))
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    if "const" in field:
        return str(field["const"])
    limits = {
        "minimum": "from {}",
        "exclusiveMinimum": "above {}",
        "maximum": "to {}",
        "exclusiveMaximum": "below {}",
    }
    told = [form.format(field[key]) for key, form in limits.items() if key in field]
    return " ".join([str(field.get("type", "")), *told]).strip()


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)

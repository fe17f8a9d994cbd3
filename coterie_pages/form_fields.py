"""Form fields for the parameters of a JSON schema, with descriptions of their types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from clustering_protocols.contract.parameters import ASKED, KEYWORD, USUAL
from coterie_pages.models import FormField

_LIMITS: Final = {
    "minimum": "from {}",
    "exclusiveMinimum": "above {}",
    "maximum": "to {}",
    "exclusiveMaximum": "below {}",
}
_TYPES: Final = {"integer": "A whole number", "number": "A number"}

Schema = Mapping[str, Any]


class Parameter(NamedTuple):
    """A parameter that has a value of its own; it may be nested in another parameter.

    name: the full name, such as ``alignment.ids`` for a nested parameter.
    schema: the JSON schema of its value.
    group: the topic of the parameter or, if it has none, of the enclosing parameter.
    """

    name: str
    schema: Schema
    is_required: bool
    group: str = USUAL

    @property
    def kind(self) -> str:
        """Return the type of the value and its limits in words."""
        return kind_of(self.schema)

    @property
    def default_json(self) -> str:
        """Return the default value as JSON; empty if the parameter is required."""
        return "" if self.is_required else json.dumps(self.schema.get("default"))


def parameters_of(schema: Schema) -> Iterator[Parameter]:
    """Yield the parameters of a new session; nested ones replace their parent."""
    yield from _walk_parameters("", schema, schema.get("$defs", {}), is_required=True)


def _walk_parameters(
    prefix: str,
    schema: Schema,
    definitions: Mapping[str, Schema],
    *,
    is_required: bool,
    group: str = USUAL,
) -> Iterator[Parameter]:
    required = schema.get("required", [])
    for name, property_ in schema.get("properties", {}).items():
        is_needed = is_required and (name in required or ASKED in property_)
        own_group = str(property_.get(KEYWORD, group))
        nested = definitions.get(str(property_.get("$ref", "")).rpartition("/")[2])
        if nested is None:
            yield Parameter(f"{prefix}{name}", property_, is_needed, own_group)
        else:
            yield from _walk_parameters(
                f"{prefix}{name}.",
                nested,
                definitions,
                is_required=is_needed,
                group=own_group,
            )


def kind_of(schema: Schema) -> str:
    """Return the type that a schema describes, with its limits, in words."""
    if "anyOf" in schema:
        kinds = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return " or ".join(filter(None, map(kind_of, kinds)))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    limits = [
        form.format(schema[key]) for key, form in _LIMITS.items() if key in schema
    ]
    return " ".join([str(schema.get("type", "")), *limits]).strip()


def fields_of(
    schema: Schema,
    values: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    *,
    prefix: str = "",
) -> tuple[FormField, ...]:
    """Return a form field for each parameter in the schema, required ones first.

    values: the current values by field name; an empty value means the default.
    errors: error messages by parameter name.
    prefix: a prefix for the name of each field.
    """
    values, errors = values or {}, errors or {}
    fields = [
        _field(parameter, prefix, values.get(f"{prefix}{parameter.name}", ""), errors)
        for parameter in parameters_of(schema)
    ]
    return tuple(sorted(fields, key=lambda field: not field.required))


def _field(
    parameter: Parameter, prefix: str, value: str, errors: Mapping[str, str]
) -> FormField:
    options = _choice_options(parameter.schema)
    kind, _, limits = parameter.kind.partition(" ")
    default = parameter.default_json.strip('"')
    return FormField(
        name=f"{prefix}{parameter.name}",
        label=parameter.name,
        group=parameter.group,
        hint=str(parameter.schema.get("description", "")),
        kind="choice" if options else "text",
        options=options,
        limits="" if options else f"{_TYPES.get(kind, kind)} {limits}".strip(),
        default="" if default == "null" else default,
        required=parameter.is_required,
        value=value,
        error=errors.get(parameter.name, ""),
    )


def _choice_options(schema: Schema) -> dict[str, str]:
    if schema.get("type") == "boolean":
        return {"true": "yes", "false": "no"}
    kinds = [schema, *schema.get("anyOf", ())]
    return {str(value): str(value) for kind in kinds for value in kind.get("enum", ())}

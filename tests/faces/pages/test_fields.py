"""Forms follow the schema of a protocol's parameters, and take what it takes."""

import json
from typing import Any

import pytest

from clustering_protocols import catalogue
from clustering_protocols.contract.parameters import GROUPS
from coterie_pages.form_fields import fields_of, parameters_of

PROTOCOLS = ("dc", "fccm", "llf", "omnifc", "pqmds")


def schema_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = catalogue.build_catalogue_entry(name)["params"]
    return found


def put(values: dict[str, Any], name: str, value: Any) -> None:
    *path, last = name.split(".")
    for part in path:
        values = values.setdefault(part, {})
    values[last] = value


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_parameter_has_a_field_that_says_what_it_takes(name: str) -> None:
    fields = fields_of(schema_of(name))
    assert len({field.name for field in fields}) == len(fields) > 5
    for field in fields:
        assert field.hint, field.name
        assert field.options or field.limits, field.name
        assert field.group in GROUPS, field.name
    needed = [field.required for field in fields]
    assert needed == sorted(needed, reverse=True)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_shown_default_is_what_the_protocol_uses(name: str) -> None:
    given: dict[str, Any] = {}
    usual: dict[str, Any] = {}
    for each in parameters_of(schema_of(name)):
        if each.name == "n_clusters":
            put(given, each.name, 3)
        elif each.is_required:  # what whoever opens a session names
            put(given, each.name, each.schema["enum"][0])
        else:
            put(usual, each.name, json.loads(each.default_json))
    plain = catalogue.parse_params(name, given)
    assert catalogue.parse_params(name, {**usual, **given}) == plain


def test_a_field_keeps_its_input_and_shows_its_error() -> None:
    fields = fields_of(
        schema_of("dc"),
        {"param.n_clusters": "many", "param.anchor.kind": "uniform"},
        {"n_clusters": "Give a whole number."},
        prefix="param.",
    )
    found = {field.name: field for field in fields}
    assert fields[0].name == "param.n_clusters"
    assert (fields[0].value, fields[0].error) == ("many", "Give a whole number.")
    assert found["param.anchor.kind"].value == "uniform"
    assert found["param.anchor.kind"].default == "gaussian"
    assert [*found["param.predictor"].options.values()] == ["yes", "no"]
    assert found["param.n_init"].limits == "A whole number from 1 to 1000"

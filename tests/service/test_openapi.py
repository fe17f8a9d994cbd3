"""The document from which clients are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from analyst_service.app import create_app
from analyst_service.settings import Settings
from clustering_protocols import json_form, registry
from clustering_protocols.codec import MEDIA_TYPE

if TYPE_CHECKING:
    from support.in_process import Api

PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = create_app(Settings()).openapi()
    return found


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All operations, by method and path."""
    return {
        f"{method} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def follow(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself where there is a reference to it."""
    found: Any = schema
    while "$ref" in found:
        place = found["$ref"].removeprefix("#/").split("/")
        found = document
        for part in place:
            found = found[part]
    return dict(found)


def test_the_document_that_is_served_is_the_one_of_the_app(
    api: Api, document: dict[str, Any]
) -> None:
    served = api.send("GET", "/openapi.json")
    assert served.json() == document
    assert document["openapi"].startswith("3.1")


def test_every_operation_has_an_id_of_its_own_and_says_what_it_does(
    document: dict[str, Any],
) -> None:
    found = operations(document)
    ids = [operation["operationId"] for operation in found.values()]
    assert len(set(ids)) == len(ids) > 10
    for name, operation in found.items():
        assert operation["summary"], name
        assert operation["description"].endswith("."), name


def test_every_operation_describes_its_problems(document: dict[str, Any]) -> None:
    for name, operation in operations(document).items():
        content = operation["responses"]["default"]["content"]
        assert content.keys() == {PROBLEM}, name
        schema = follow(document, content[PROBLEM]["schema"])
        assert set(schema["required"]) == {
            "type",
            "title",
            "status",
            "detail",
            "remedy",
            "request_id",
        }, name


def test_arrays_travel_under_their_own_media_type(document: dict[str, Any]) -> None:
    here = "/v1/sessions/{session_id}"
    found = operations(document)
    upload = found[f"put {here}/rounds/{{round_}}/attempts/{{attempt}}/contribution"]
    assert upload["requestBody"]["required"]
    both = {MEDIA_TYPE, json_form.MEDIA_TYPE}
    bodies = [upload["requestBody"]] + [
        found[name]["responses"]["200"]
        for name in (f"get {here}/task", f"get {here}/result")
    ]
    for body in bodies:
        assert body["content"].keys() == both
        form = follow(document, body["content"][json_form.MEDIA_TYPE]["schema"])
        assert form["required"] == ["header", "arrays"]


def test_protocols_are_a_union_that_their_name_tells_apart(
    document: dict[str, Any],
) -> None:
    schemas = document["components"]["schemas"]
    protocol = schemas["SessionWrite"]["properties"]["protocol"]
    assert protocol["discriminator"]["propertyName"] == "name"
    mapping = protocol["discriminator"]["mapping"]
    assert mapping.keys() == set(registry.catalogue()) >= {"dc", "dummy"}
    assert len(protocol["oneOf"]) == len(mapping)
    for name, reference in mapping.items():
        choice = follow(document, {"$ref": reference})
        assert choice["properties"]["name"]["const"] == name
        assert choice["additionalProperties"] is False
        params = follow(document, choice["properties"]["params"])
        declared = registry.protocol(name).params.model_json_schema()
        assert params["properties"].keys() == declared["properties"].keys()
        assert params.get("required", []) == declared.get("required", [])


def test_every_parameter_of_a_protocol_is_described(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for known in registry.catalogue().values():
        for name, field in schemas[known.params.__name__]["properties"].items():
            assert field.get("description") or "$ref" in field, name


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    found = set(references(document))
    assert len(found) > 10
    for reference in found:
        assert follow(document, {"$ref": reference})


def test_the_catalogue_lists_every_protocol_and_needs_no_credential(api: Api) -> None:
    listed = api.send("GET", "/v1/protocols").json()["protocols"]
    assert [entry["name"] for entry in listed] == list(registry.catalogue())
    for entry in listed:
        assert entry == registry.describe(entry["name"])
        assert all(code.startswith(f"{entry['name']}.") for code in entry["risks"])


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/nowhere"), ("DELETE", "/v1/protocols"), ("PATCH", "/v1/sessions/s")],
)
def test_an_address_or_method_that_is_not_in_it_is_a_problem_too(
    api: Api, method: str, path: str
) -> None:
    refusal = api.send(method, path)
    assert (refusal.status_code, refusal.headers["content-type"]) == (404, PROBLEM)
    assert refusal.json()["type"].endswith(":not-found")

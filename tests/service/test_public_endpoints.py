"""What anybody may read: the document of the API, and the page at ``/``."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from support.in_process import InProcess
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from analyst_service.app import create_app
from analyst_service.errors import ProblemDocument
from analyst_service.settings import Settings
from benchmarks import openapi
from clustering_protocols import catalogue
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.engine.message_tables import build_message_table
from clustering_protocols.records import json_form
from clustering_protocols.records.codec import MEDIA_TYPE

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


def test_the_document_is_as_written_down() -> None:
    assert openapi.PAGE.read_text() == openapi.page()


def test_every_operation_has_a_unique_id_and_a_description(
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
    assert mapping.keys() == set(catalogue.catalogue()) >= {"dc", "dummy"}
    assert len(protocol["oneOf"]) == len(mapping)
    for name, reference in mapping.items():
        choice = follow(document, {"$ref": reference})
        assert choice["properties"]["name"]["const"] == name
        assert choice["additionalProperties"] is False
        params = follow(document, choice["properties"]["params"])
        declared = catalogue.protocol(name).params.model_json_schema()
        assert params["properties"].keys() == declared["properties"].keys()
        assert params.get("required", []) == declared.get("required", [])


def test_every_parameter_of_a_protocol_is_described(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for known in catalogue.catalogue().values():
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


def test_the_catalogue_of_protocols_needs_no_credential(api: Api) -> None:
    listed = api.send("GET", "/v1/protocols").json()["protocols"]
    assert [entry["name"] for entry in listed] == list(catalogue.catalogue())
    for entry in listed:
        assert entry == catalogue.describe(entry["name"])
        assert all(code.startswith(f"{entry['name']}.") for code in entry["risks"])


def test_the_messages_of_each_protocol_need_no_credential(api: Api) -> None:
    for name in catalogue.catalogue():
        served = api.send("GET", f"/v1/protocols/{name}/messages").json()
        assert served == build_message_table(name).model_dump(mode="json")


def test_messages_of_an_unknown_protocol_are_not_found(api: Api) -> None:
    refusal = api.send("GET", "/v1/protocols/nobodys/messages")
    assert (refusal.status_code, refusal.headers["content-type"]) == (404, PROBLEM)
    assert "GET /v1/protocols lists" in refusal.json()["detail"]


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


# What readers and generators need beside it


def test_it_says_which_operations_want_a_credential(
    document: dict[str, Any],
) -> None:
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    assert document["servers"][0]["url"] == "/"
    found = operations(document).values()
    secured = {each["operationId"] for each in found if each["security"]}
    assert {each["operationId"] for each in found} - secured == {
        "list_protocols",
        "list_messages",
        "get_identity",
        "get_health",
        "get_readiness",
        "get_metrics",
        "preview",
        "join",
        "decline",
    }
    described = {tag["name"] for tag in document["tags"] if tag["description"]}
    assert described == {tag for each in found for tag in each["tags"]}


def bodies_and_answers(
    document: dict[str, Any],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every JSON body and answer, by operation."""
    for operation in operations(document).values():
        parts = [operation.get("requestBody") or {}]
        parts += [
            each for code, each in operation["responses"].items() if code[0] == "2"
        ]
        for part in parts:
            content = part.get("content", {})
            if "application/json" in content:
                yield operation["operationId"], content["application/json"]


def test_every_operation_has_examples_that_its_schemas_take(
    document: dict[str, Any],
) -> None:
    # here: it costs a second of processor time, in every process of a run
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    registry_ = Registry().with_resource(
        "urn:document", Resource(document, DRAFT202012)
    )
    without = set()
    for name, content in bodies_and_answers(document):
        if "example" not in content:
            without.add(name)
            continue
        schema = json.loads(
            json.dumps(content.get("schema", {})).replace('"#/', '"urn:document#/')
        )
        Draft202012Validator(schema, registry=registry_).validate(content["example"])
    # they are large, and need no credential
    assert without == {"list_protocols", "list_messages"}


def test_problems_have_examples_and_operations_list_usual_ones(
    document: dict[str, Any],
) -> None:
    examples = document["components"]["examples"]
    assert examples.keys() == {each.slug for each in Problem}
    for each in examples.values():
        ProblemDocument.model_validate(each["value"])
    for name, operation in operations(document).items():
        usual = operation["responses"]["default"]["content"][PROBLEM]["examples"]
        assert {"too-many-requests", "unavailable"} <= usual.keys(), name


def test_the_example_of_a_session_opens_one(api: Api, document: dict[str, Any]) -> None:
    content = operations(document)["put /v1/sessions/{session_id}"]["requestBody"]
    example = content["content"]["application/json"]["example"]
    opened = api.send("PUT", "/v1/sessions/s-example", api.key(), json=example)
    assert opened.status_code == 201, opened.text


def test_what_is_sent_may_leave_its_defaults_out(document: dict[str, Any]) -> None:
    """Generators take a field with a default for one that is always there."""
    schemas = document["components"]["schemas"]
    for known in catalogue.catalogue().values():
        schema = schemas[known.params.__name__]
        for name, field in schema["properties"].items():
            assert "default" not in field, name
            may_be_null = {"type": "null"} in field.get("anyOf", [])
            assert (
                name in schema.get("required", [])
                or may_be_null
                or "Default: " in field["description"]
            )


# The page at ``/``, where a clicked invitation leads


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_a_browser_reads_what_an_invitation_is_and_what_to_do(api: Api) -> None:
    page = api.send("GET", "/", headers=BROWSER)
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for said in (
        "coterie ui",
        "/docs",
        "coterie session",
        "for a program",
        "coterie party join @invitation.txt",
        "history",
    ):
        assert said in page.text


@pytest.mark.threat(126)
def test_the_page_runs_and_loads_nothing_and_hands_nothing_on(api: Api) -> None:
    page = api.send("GET", "/", headers=BROWSER)
    assert not re.search(
        r"<script|<img|<link|<iframe|<form|href|src=|\son\w+=", page.text
    )
    policy = page.headers["content-security-policy"]
    [style] = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    hashed = base64.b64encode(sha256(style.encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{hashed}'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
def test_a_program_finds_nothing_there(api: Api, accept: str) -> None:
    refused = api.send("GET", "/", headers={"Accept": accept})
    assert refused.status_code == 404
    assert refused.json()["type"] == Problem.NOT_FOUND.urn


def test_the_page_says_the_same_whatever_is_asked_for(api: Api) -> None:
    asked = api.send("GET", "/?coterie-1/x", headers=BROWSER).text
    assert asked == api.send("GET", "/", headers=BROWSER).text


@pytest.mark.parametrize(
    "path", ["/healthz", "/v1/sessions", "/v1/nothing", "/nothing"]
)
def test_answers_for_programs_are_not_cached_or_sniffed(api: Api, path: str) -> None:
    answer = api.send("GET", path, api.key())
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def test_only_a_trusted_proxy_can_state_that_tls_is_used(api: Api) -> None:
    """uvicorn rewrites the scheme of those; what else stands in a header is a word."""
    said = api.send("GET", "/healthz", headers={"X-Forwarded-Proto": "https"})
    assert "strict-transport-security" not in said.headers


@pytest.mark.parametrize("trusted", ["127.0.0.1", "10.0.0.1"])
def test_the_web_server_believes_a_trusted_proxy_alone(api: Api, trusted: str) -> None:
    """Requests come from 127.0.0.1 here; `serve` names the setting's addresses."""
    behind = ProxyHeadersMiddleware(api.app, trusted_hosts=trusted)
    with httpx.Client(
        base_url="http://127.0.0.1", transport=InProcess(behind, api.portal)
    ) as client:
        said = client.get("/healthz", headers={"X-Forwarded-Proto": "https"})
    is_tls = "strict-transport-security" in said.headers
    assert is_tls is (trusted == "127.0.0.1")

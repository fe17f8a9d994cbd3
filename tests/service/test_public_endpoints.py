"""What needs no credential: the OpenAPI document, the catalogue and the page at ``/``."""

import base64
import json
import re
from hashlib import sha256
from typing import Any

import pytest
from support.in_process import Api

from analyst_service.app import create_app
from analyst_service.settings import Settings
from benchmarks import openapi
from clustering_protocols import catalogue
from clustering_protocols.engine.message_tables import build_message_table

PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = create_app(Settings()).openapi()
    return found


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


@pytest.mark.threat(31)
def test_the_document_that_is_served_is_the_one_that_is_written_down(
    file_api: Api, document: dict[str, Any]
) -> None:
    """A reader of the written page checks ids, references and required credentials."""
    assert file_api.send("GET", "/openapi.json").json() == document
    assert openapi.PAGE.read_text() == openapi.page(), "run: make generated"


def test_the_catalogue_of_protocols_needs_no_credential(file_api: Api) -> None:
    listed = file_api.send("GET", "/v1/protocols").json()["protocols"]
    assert [entry["name"] for entry in listed] == list(catalogue.catalogue())
    for entry in listed:
        assert entry == catalogue.build_catalogue_entry(entry["name"])
        assert all(code.startswith(f"{entry['name']}.") for code in entry["risks"])
    table = build_message_table("dc").model_dump(mode="json")
    assert file_api.send("GET", "/v1/protocols/dc/messages").json() == table


def test_an_address_or_method_that_is_not_in_it_is_a_problem_too(file_api: Api) -> None:
    for method, path in (
        *(
            ("GET", "/nowhere"),
            ("DELETE", "/v1/protocols"),
            ("PATCH", "/v1/sessions/s"),
        ),
        ("GET", "/v1/protocols/nobodys/messages"),
    ):
        refusal = file_api.send(method, path)
        assert (refusal.status_code, refusal.headers["content-type"]) == (404, PROBLEM)
        assert refusal.json()["type"].endswith(":not-found")


def test_every_body_has_an_example_that_its_schema_takes(
    document: dict[str, Any],
) -> None:
    # here: it costs a second of CPU time, in every process of a run
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    registry_ = Registry().with_resource(
        "urn:document", Resource(document, DRAFT202012)
    )
    bodies = [
        operation["requestBody"]["content"]["application/json"]
        for operation in operations(document).values()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    ]
    assert len(bodies) >= 10
    for content in bodies:
        text = json.dumps(content["schema"]).replace('"#/', '"urn:document#/')
        validator = Draft202012Validator(json.loads(text), registry=registry_)
        validator.validate(content["example"])


def test_the_example_of_a_session_opens_one(
    file_api: Api, document: dict[str, Any]
) -> None:
    content = operations(document)["put /v1/sessions/{session_id}"]["requestBody"]
    example = content["content"]["application/json"]["example"]
    opened = file_api.send(
        "PUT", "/v1/sessions/s-example", file_api.key(), json=example
    )
    assert opened.status_code == 201, opened.text


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_a_browser_alone_reads_what_an_invitation_is_and_what_to_do(
    file_api: Api,
) -> None:
    page = file_api.send("GET", "/", headers=BROWSER)
    asked = file_api.send("GET", "/?coterie-1/x", headers=BROWSER)
    assert asked.text == page.text, "whatever is asked for"
    for accept in ("*/*", "application/json", ""):
        refused = file_api.send("GET", "/", headers={"Accept": accept})
        assert refused.status_code == 404
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for said in ("coterie ui", "coterie party join @invitation.txt", "/docs"):
        assert said in page.text


@pytest.mark.threat(126)
def test_the_page_runs_and_loads_nothing_and_hands_nothing_on(file_api: Api) -> None:
    page = file_api.send("GET", "/", headers=BROWSER)
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


def test_answers_for_programs_are_not_cached_or_sniffed(file_api: Api) -> None:
    for path in ("/healthz", "/v1/sessions", "/v1/nothing", "/nothing"):
        answer = file_api.send("GET", path, file_api.key())
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_who_came_by_https_is_told_to_stay_with_it(file_api: Api) -> None:
    """`serve` lets named proxies alone say that a request came by https."""
    for scheme, is_told in (("https", True), ("http", False)):
        answer = file_api.client.get(f"{scheme}://127.0.0.1/healthz")
        assert ("strict-transport-security" in answer.headers) is is_told

"""Requests generated from the OpenAPI document get documented answers, never a 5xx."""

from datetime import timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings, strategies as st
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from support.databases import each_on_a_database
from support.in_process import Api, ByHand
from support.repeats import thorough

from analyst_service.app import create_app
from analyst_service.credentials import Role
from analyst_service.settings import Settings
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records.codec import MEDIA_TYPE
from party_sdk.analyst_client.requests import contribution_headers
from tests.service.samples import PARTS, A

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@schemathesis.serializer(MEDIA_TYPE)
def as_it_is(context: Any, value: Any) -> bytes:
    """Send bytes unchanged, and any other value of a strategy as text."""
    del context
    return value if isinstance(value, bytes) else str(value).encode()


schemathesis.openapi.media_type(MEDIA_TYPE, st.binary(max_size=200))

SCHEMA = schemathesis.openapi.from_dict(create_app(Settings()).openapi())
OPERATIONS = {
    operation.ok().label: operation.ok() for operation in SCHEMA.get_all_operations()
}


class World:
    """Sessions in all states, and the credentials of everybody."""

    def __init__(self, api: Api) -> None:
        self.api = api
        running = api.open(Dummy(), PARTS).join()
        running.answer(A, turn=False)
        ended = api.open(Dummy(), PARTS).join().finish()
        deleted = api.open(Dummy(), PARTS).join()
        api.send("DELETE", deleted.path, deleted.key)
        self.sessions: list[ByHand] = [
            api.open(Dummy(), PARTS),
            running,
            ended,
            deleted,
        ]
        self.secrets: list[str | None] = [None, "ck_wrong", api.key(Role.ADMINISTRATOR)]
        for session in self.sessions:
            self.secrets += [session.key, *session.tokens.values()]

    def send(self, case: Case, secret: str | None) -> httpx.Response:
        wanted = case.as_transport_kwargs(base_url="http://127.0.0.1")
        wanted = {k: v for k, v in wanted.items() if k in KNOWN}
        request = requests.Request(**wanted).prepare()
        content: Any = request.body
        if case.media_type == MEDIA_TYPE:
            request.headers.update(contribution_headers(content or b""))
        response = self.api.send(
            str(request.method),
            str(request.url),
            secret,
            {k: v for k, v in request.headers.items() if k != "Content-Length"},
            content=content.encode() if isinstance(content, str) else content,
        )
        response.elapsed = timedelta(0)  # the checks ask for it
        return response


KNOWN = {"method", "url", "headers", "params", "json", "data", "cookies", "files"}


@pytest.fixture(scope="module")
def world(shared_api: Api) -> World:
    """A world on each kind of database, because PostgreSQL accepts other texts."""
    return World(shared_api)


@pytest.mark.thorough
@pytest.mark.threat(16, 17, 19, 22)
@each_on_a_database("label", list(OPERATIONS), "shared_api")
def test_no_request_gets_a_failure_or_undocumented_answer(
    world: World, label: str
) -> None:
    operation = OPERATIONS[label]
    n_secrets, n_sessions = len(world.secrets), len(world.sessions)

    @settings(
        max_examples=thorough(ci=30, nightly=500),
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation.as_strategy(),
        secret=st.integers(0, n_secrets - 1),
        session=st.none() | st.integers(0, n_sessions - 1),
    )
    def ask(case: Case, secret: int, session: int | None) -> None:
        if session is not None and "session_id" in (case.path_parameters or {}):
            case.path_parameters["session_id"] = world.sessions[session].id
        if "wait" in (case.query or {}):
            case.query["wait"] = 0
        response = world.send(case, world.secrets[secret])
        case.validate_response(response, checks=CHECKS)
        check(response, operation.definition.raw["responses"])

    ask()


def check(response: httpx.Response, documented: dict[str, Any]) -> None:
    """Assert that a success is documented, and that a refusal is in the catalogue."""
    if response.is_success:
        assert str(response.status_code) in documented
        return
    assert response.status_code < 500
    if response.request.method == "HEAD":
        return  # it has no body
    document = response.json()
    assert Problem.from_slug(document["type"]).status == response.status_code


HOSTILE = [
    "../../etc/passwd",
    "..%2f..%2fetc",
    "%00",
    "a\x00b",
    "CON",
    "x" * 300,
    "\u202eabc",
    "🦔",
    "name.",
    "a/b",
    "S-UPPER",
    "'; DROP TABLE sessions;--",
    '" OR 1=1',
    "{{7*7}}",
    "<script>alert(1)</script>",
    "${jndi:ldap://x}",
    "a\r\nX-Injected: 1",
]


@pytest.mark.threat(16, 17, 18)
@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_finds_nothing_and_a_hostile_title_is_given_back_or_refused(
    world: World, text: str
) -> None:
    before, session, key = world.api.stored(), world.sessions[0], world.api.key()
    here = f"/v1/sessions/{quote(text, safe='')}"
    for method, path in (
        *(("GET", here), ("GET", f"{here}/audit"), ("DELETE", here)),
        ("POST", f"{here}/cancel"),
    ):
        refusal = world.api.send(method, path, session.key)
        assert refusal.status_code in {404, 422}, (method, path)
        assert "x-injected" not in refusal.headers
    body = {**session.terms, "layout": {"slots": [{"name": text}]}}
    assert world.api.send("PUT", "/v1/sessions/s-x", key, json=body).is_client_error
    changed = [
        name for name, rows in world.api.stored()[0].items() if rows != before[0][name]
    ]
    assert set(changed) <= {"credentials"}, "of the key of this test"
    path = f"/v1/sessions/s-{sha256(text.encode()).hexdigest()[:16]}"
    body = {**session.terms, "about": {"title": text}}
    response = world.api.send("PUT", path, key, json=body)
    if response.status_code == 201:
        assert world.api.send("GET", path, key).json()["title"] == text
    else:
        assert response.status_code == 422
    assert response.headers["content-type"].startswith("application/")

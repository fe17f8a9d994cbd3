"""The page at ``/``, where a clicked invitation leads."""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from typing import TYPE_CHECKING

import httpx
import pytest
from support.in_process import InProcess
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from clustering_protocols.common.error_catalogue import Problem

if TYPE_CHECKING:
    from support.in_process import Api

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

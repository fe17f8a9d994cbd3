"""Nobody looks at a silent screen: what is waited for is said after three seconds."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.terminal import Terminal

from party_sdk.analyst_client import transport
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.analyst_client.transport import Listeners
from tests.party.small_servers import serving

PROXY = (Path(__file__).parents[2] / "docker" / "nginx.conf").read_text()
URL = "http://127.0.0.1"


def answering(seconds: float, status: int = 200) -> Callable[..., httpx.Response]:
    def answer(_: httpx.Request) -> httpx.Response:
        threading.Event().wait(seconds)
        return httpx.Response(status)

    return answer


def heard(
    handler: Callable[..., httpx.Response], patience: float = 0.0, **sent: Any
) -> tuple[list[str], list[str]]:
    silence: list[str] = []
    outage: list[str] = []
    http = httpx.Client(base_url=URL, transport=httpx.MockTransport(handler))
    told = Listeners(on_silence=silence.append, on_outage=outage.append)
    with connect(URL, http=http, listeners=told) as analyst:
        analyst._transport.send(
            "GET", "/v1/x", headers=sent.pop("headers", {}), patience=patience, **sent
        )
    return silence, outage


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "SILENT_SECONDS", 0.05)


@pytest.mark.usefixtures("soon")
def test_a_request_that_nobody_answers_is_said_once() -> None:
    assert heard(answering(0.4)) == (["127.0.0.1"], [])
    assert heard(answering(0)) == ([], [])


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "sent", [{"params": {"wait": "20"}}, {"headers": {"Prefer": "wait=20"}}]
)
def test_a_request_that_the_analyst_may_hold_is_no_silence(
    sent: dict[str, Any],
) -> None:
    assert heard(answering(0.3), **sent) == ([], [])


@pytest.mark.usefixtures("soon")
def test_an_outage_that_was_said_is_no_silence() -> None:
    assert heard(answering(0, 503), patience=0.5) == ([], ["cannot be reached"])


class AsTheProxy(BaseHTTPRequestHandler):
    """Answers as the shipped proxy does whose analysts are all gone."""

    def do_GET(self) -> None:
        [document] = re.findall(r"return 503 '(.*)';", PROXY)
        self.send_response(503)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(document)))
        self.end_headers()
        self.wfile.write(document.encode())

    def log_message(self, *_: object) -> None:
        pass


def test_a_coordinator_reads_at_once_that_all_analysts_are_gone(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        transport, "next_delay", lambda attempt, *_: 0.1 if attempt < 4 else None
    )
    with serving(AsTheProxy) as url:
        terminal.environment |= {"COTERIE_URL": url, "COTERIE_KEY": "ck_x"}
        done = terminal("session", "list", "--json", expect=6)
        found = terminal.json("doctor", url, expect=1)
    said = done.stderr.splitlines()
    assert re.fullmatch(
        r"The analyst cannot be reached; trying again since \d\d:\d\d:\d\d\.", said[0]
    )
    assert "The analyst does not answer the proxy." in done.stderr
    assert json.loads(done.stdout)["exit_code"] == 6
    [bad] = [each for each in found if not each["good"]]
    assert bad["said"] == (
        "The analyst is there, but cannot answer now: The analyst does not answer the "
        "proxy."
    )
    assert "firewall" not in json.dumps(found)

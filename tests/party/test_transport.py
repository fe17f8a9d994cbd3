"""Sending: when to try again, what a refusal becomes, and what is never sent."""

import json
import re
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.terminal import Terminal

from analyst_service.errors import problem_response
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    Internal,
    InvalidParameters,
    SessionOver,
    Unauthenticated,
    Unavailable,
    VersionMismatch,
)
from party_sdk.analyst_client import transport
from party_sdk.analyst_client.http_analyst import HttpAnalyst, connect
from party_sdk.analyst_client.requests import bearer_header, raise_problem
from party_sdk.analyst_client.transport import RETRYABLE, Listeners, next_delay
from party_sdk.coordinator.coordinator import Coordinator
from tests.party.small_servers import SmallHandler, serving

URL = "http://127.0.0.1"
PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    ("attempt", "elapsed", "status", "retry_after", "expected"),
    [
        # growing pauses, up to a ceiling
        (1, 0, None, None, 0.2),
        (2, 1, None, None, 0.4),
        (3, 1, None, None, 0.8),
        (5, 1, None, None, 3.2),
        (6, 1, None, None, 5.0),
        (1000, 1, None, None, 5.0),
        # the analyst may ask for more time, not for less
        (1, 0, 503, "7", 7.0),
        (1, 0, 503, "0", 0.2),
        (6, 0, 429, "1", 5.0),
        (1, 0, 400, "7", None),
        # what is no number of seconds is no wish
        (1, 0, 503, "Wed, 21 Oct 2026 07:28:00 GMT", 0.2),
        (1, 0, 503, "1.5", 0.2),
        (1, 0, 503, "²", 0.2),
        # patience ends before the next attempt would begin
        (1, 99.8, None, None, 0.2),
        (1, 99.81, None, None, None),
        (1, 0, 503, "100", 100.0),
        (1, 0, 503, "101", None),
    ],
)
def test_the_next_attempt_follows_from_what_has_happened(
    attempt: int,
    elapsed: float,
    status: int | None,
    retry_after: str | None,
    expected: float | None,
) -> None:
    assert next_delay(attempt, elapsed, 100, status, retry_after) == expected


def test_an_answer_is_final_unless_its_status_may_pass() -> None:
    passing = {s for s in range(100, 600) if next_delay(1, 0, 100, s, None)}
    # 507: a disk that is full is not for long
    assert passing == RETRYABLE == {408, 425, 429, 500, 502, 503, 504, 507}


def answered(status: int, content: bytes, media_type: str = PROBLEM) -> httpx.Response:
    return httpx.Response(status, content=content, headers={"Content-Type": media_type})


@pytest.mark.parametrize("key", ["ck_ü", "ck_1\n", "ck_\x00"])
def test_a_key_that_cannot_travel_is_refused_before_it_is_sent(key: str) -> None:
    with pytest.raises(Unauthenticated, match="contains invalid characters"):
        bearer_header(key)
    assert bearer_header("") == bearer_header(None) == {}


@pytest.mark.parametrize("problem", Problem, ids=lambda problem: problem.slug)
def test_each_problem_becomes_the_exception_of_its_name(problem: Problem) -> None:
    sent = problem_response(problem, "What came.")
    with pytest.raises(CoterieError) as raised:
        raise_problem(answered(sent.status_code, bytes(sent.body)))
    assert type(raised.value) is type(CoterieError.of(problem, ""))
    assert raised.value.problem is problem
    assert raised.value.detail == "What came."


def test_a_session_that_is_over_tells_its_state_and_reason() -> None:
    extra = {"state": "failed", "reason": Problem.PROTOCOL_FAILED.slug}
    sent = problem_response(Problem.SESSION_OVER, "It is over.", extra)
    with pytest.raises(SessionOver) as raised:
        raise_problem(answered(410, bytes(sent.body)))
    assert (raised.value.state, raised.value.reason) == ("failed", "protocol-failed")


@pytest.mark.parametrize(
    ("status", "content", "media_type"),
    [
        (502, b"<html>Bad gateway</html>", "text/html"),
        (404, b"", "text/plain"),
        (302, b"", "text/html"),
        (500, b'{"error": 1}', "application/json"),
        (400, b'{"type": "about:blank", "detail": "What?"}', PROBLEM),
        (400, b'{"type": "urn:coterie:problem:unheard-of"}', PROBLEM),
        (400, b"[]", PROBLEM),
        (400, b"\xff", PROBLEM),
    ],
)
def test_an_answer_that_is_not_of_an_analyst_is_explained(
    status: int, content: bytes, media_type: str
) -> None:
    both = (Internal, InvalidParameters)
    with pytest.raises(both, match="not a Coterie analyst"):
        raise_problem(answered(status, content, media_type))


class Hand:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    clock = Hand()
    monkeypatch.setattr(transport, "time", clock)
    return clock


Handler = Callable[[httpx.Request], httpx.Response]


def asked_by(handler: Handler, patience: float = 60) -> HttpAnalyst:
    http = httpx.Client(base_url=URL, transport=httpx.MockTransport(handler))
    return connect(URL, patience=patience, http=http)


def dead(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("nobody there", request=request)


def test_patience_ends_with_a_word_on_how_often_and_how_long(hand: Hand) -> None:
    with asked_by(dead) as sending, pytest.raises(Unavailable) as raised:
        sending._transport.send("GET", "/x", headers={})
    assert sum(hand.slept) <= 60 < sum(hand.slept) + 5
    assert f"{len(hand.slept) + 1} attempts" in raised.value.detail
    assert "ConnectError at 127.0.0.1" in raised.value.detail


def test_an_analyst_that_stays_busy_is_unavailable(hand: Hand) -> None:
    busy = problem_response(Problem.UNAVAILABLE, "Later.", headers={"Retry-After": "9"})

    headers = {"Content-Type": PROBLEM, "Retry-After": "9"}
    answer = httpx.Response(503, content=bytes(busy.body), headers=headers)
    sending = asked_by(lambda _: answer)
    with sending, pytest.raises(Unavailable, match="Later"):
        sending.session("s")
    assert hand.slept == [9.0] * 6


RECEIPT = {
    "session": "s",
    "slot": "a",
    "round": 1,
    "attempt": 2,
    "digest": "0" * 64,
    "size": 5,
    "received_at": "2026-03-01T00:00:00Z",
    "sequence": 9,
    "entry": "x",
    "signature": "y",
}


@pytest.mark.usefixtures("hand")
def test_the_same_bytes_are_sent_until_an_answer_comes() -> None:
    seen: list[tuple[str, bytes, str]] = []
    numbers = count()

    def handler(request: httpx.Request) -> httpx.Response:
        authorization = request.headers["authorization"]
        seen.append((str(request.url), request.read(), authorization))
        if next(numbers) < 2:
            raise httpx.ReadError("lost", request=request)
        return httpx.Response(200, json=RECEIPT)

    with asked_by(handler) as sending:
        receipt, _ = sending.as_party("t").contribute("s", 1, 2, b"bytes")
    assert receipt.model_dump(mode="json") == RECEIPT
    url = f"{URL}/v1/sessions/s/rounds/1/attempts/2/contribution"
    assert seen == [(url, b"bytes", "Bearer t")] * 3


def test_a_refusal_is_not_repeated(hand: Hand) -> None:
    requests: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        sent = problem_response(Problem.FORBIDDEN, "No.")
        return answered(403, bytes(sent.body))

    with asked_by(handler) as sending, pytest.raises(CoterieError, match="No"):
        sending.session("s")
    assert len(requests) == 1
    assert hand.slept == []


def test_a_page_that_pretends_success_is_explained() -> None:
    page = httpx.Response(200, html="<html>Please log in</html>")
    with asked_by(lambda _: page) as sending:
        for ask in (
            lambda: sending.session("s"),
            sending.sessions,
            lambda: sending.invite("s", None),
            lambda: sending.preview("code"),
            lambda: sending.contribute("s", 1, 1, b""),
        ):
            with pytest.raises(Internal, match="not a Coterie analyst"):
                ask()


def line(name: str, state: str = "recruiting") -> dict[str, Any]:
    created = "2026-03-01T00:00:00Z"
    return {"id": name, "title": "", "state": state, "round": 0, "created_at": created}


def test_a_coordinator_reads_all_pages_of_a_list(tmp_path: Path) -> None:
    pages: dict[str, dict[str, Any]] = {
        "": {"sessions": [line("a")], "next": "a"},
        "a": {"sessions": [line("b") | {"newer": 1}], "next": None},
    }

    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=pages[request.url.params["after"]])

    with asked_by(handler) as sending:
        coordinator = Coordinator(URL, "k", home=tmp_path, analyst=sending)
        found = [
            each.model_dump(mode="json", exclude_unset=True)
            for each in coordinator.sessions()
        ]
    assert found == [line("a"), line("b")]


@pytest.mark.parametrize(
    "content",
    [
        {"sessions": [line("a", "of-a-newer-release")], "next": None},
        {"sessions": [{"id": "a"}], "next": None},
        {},
        [],
    ],
)
def test_an_unreadable_answer_is_a_version_mismatch(content: Any) -> None:
    with (
        asked_by(lambda _: httpx.Response(200, json=content)) as sending,
        pytest.raises(VersionMismatch, match="answer") as refused,
    ):
        sending.sessions()
    assert "newer" not in refused.value.detail  # never what came


def test_plain_http_goes_to_this_machine_alone() -> None:
    for host in ("127.0.0.1:8443", "localhost", "[::1]:8443"):
        connect(f"http://{host}").close()
    connect("https://analyst.example").close()
    for host in ("analyst.example", "192.168.0.7:8443", "127.0.0.1.example"):
        with pytest.raises(GuardRefused, match="use https"):
            connect(f"HTTP://{host}")
    for host in ("localhost@analyst.example", "10.0.0.1#127.0.0.1"):
        with pytest.raises(InvalidParameters, match="has no"):
            connect(f"http://{host}")


def test_a_redirection_is_not_followed() -> None:
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(307, headers={"Location": "http://elsewhere.example/"})

    with asked_by(handler) as sending, pytest.raises(Internal):
        sending.as_party("token").session("s")
    assert asked == ["127.0.0.1"]


def test_an_analyst_without_room_is_waited_for_and_that_is_said(hand: Hand) -> None:
    answers = iter((507, 507, 503, 200))
    told: list[str] = []

    wire = httpx.MockTransport(lambda _: httpx.Response(next(answers)))
    http = httpx.Client(base_url=URL, transport=wire)
    with connect(URL, http=http, listeners=Listeners(on_outage=told.append)) as sending:
        assert sending._transport.send("PUT", "/x", headers={}).status_code == 200
    assert told == ["has no room left", "cannot answer now", ""]
    assert len(hand.slept) == 3


# What is waited for is said after three seconds


PROXY = (Path(__file__).parents[2] / "docker" / "nginx.conf").read_text()


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
def test_silence_is_said_once_unless_the_analyst_may_wait_or_an_outage_was_said() -> (
    None
):
    assert heard(answering(0.4)) == (["127.0.0.1"], [])
    assert heard(answering(0)) == ([], [])
    assert heard(answering(0.3), params={"wait": "20"}) == ([], [])
    assert heard(answering(0.3), headers={"Prefer": "wait=20"}) == ([], [])
    assert heard(answering(0, 503), patience=0.5) == ([], ["cannot answer now"])


class AsTheProxy(SmallHandler):
    """Answers as the shipped proxy does whose analysts are all gone."""

    def do_GET(self) -> None:  # noqa: N802  the server's own form
        [document] = re.findall(r"return 503 '(.*)';", PROXY)
        self.answer(503, document, PROBLEM)


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
        r"The analyst cannot answer now; trying again since \d\d:\d\d:\d\d\.", said[0]
    )
    assert "The analyst does not answer the proxy." in done.stderr
    assert json.loads(done.stdout)["exit_code"] == 6
    [bad] = [each for each in found if not each["good"]]
    assert bad["said"] == (
        "The analyst is there, but cannot answer now: The analyst does not answer the "
        "proxy."
    )
    assert "firewall" not in json.dumps(found)

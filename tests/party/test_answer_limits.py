"""What an answer may take: anyone who answers fills no memory, and holds up nobody."""

import socketserver
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple
from unittest.mock import Mock

import httpx
import pytest

from analyst_service.app import create_app
from analyst_service.settings import Settings
from clustering_protocols.common.errors import CoterieError, GuardRefused, Unavailable
from clustering_protocols.records.codec import MEDIA_TYPE
from clustering_protocols.wire.answers import SessionLine
from clustering_protocols.wire.states import SessionState
from party_sdk.analyst_client import connections as limits, requests
from party_sdk.analyst_client.connections import proxy_of
from party_sdk.analyst_client.diagnosis import check_analyst
from party_sdk.analyst_client.http_analyst import HttpAnalyst, connect
from party_sdk.analyst_client.transport import open_http
from party_sdk.coordinator.coordinator import Coordinator
from party_sdk.party.rounds import SessionWatch

MEBIBYTE = 1 << 20
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
KEY = b'{"key": "' + b"0" * 64 + b'"}'

SESSION_LINE = SessionLine(
    id="s",
    title="Wards",
    state=SessionState.COLLECTING,
    round=1,
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)

Send = Callable[[bytes], None]
Answer = Callable[[Send], None]


class Peer(NamedTuple):
    """Anyone who answers at an address, byte by byte, and what it was asked."""

    port: int
    asked: list[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads, block_on_close = True, False  # some answers have no end


@contextmanager
def answering(answer: Answer) -> Iterator[Peer]:
    asked: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b""
            with suppress(OSError):
                while line := self.rfile.readline():
                    head += line
                    if line == b"\r\n":
                        asked.append(head)
                        answer(self.request.sendall)
                        head = b""

    with _Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield Peer(server.server_address[1], asked)
        finally:
            server.shutdown()


def whole(content: bytes, coding: bytes = b"") -> Answer:
    said = b"Content-Encoding: " + coding + b"\r\n" if coding else b""
    length = f"Content-Length: {len(content)}\r\n\r\n".encode()
    return lambda send: send(OK + said + length + content)


def without_end(send: Send) -> None:
    send(CHUNKED)
    chunk = b"100000\r\n" + b" " * MEBIBYTE + b"\r\n"
    while True:
        send(chunk)


def announced(n_bytes: int) -> Answer:
    return lambda send: send(OK + f"Content-Length: {n_bytes}\r\n\r\n".encode())


def bomb(n_bytes: int) -> bytes:
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    pieces = [packing.compress(bytes(MEBIBYTE)) for _ in range(n_bytes // MEBIBYTE)]
    return b"".join([*pieces, packing.flush()])


@contextmanager
def little_memory() -> Iterator[None]:
    """Fail if more is held at once than one document and some pieces."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 2 * limits.DOCUMENT_BYTES
    finally:
        tracemalloc.stop()


ROUTES: dict[str, Callable[[HttpAnalyst], Any]] = {
    "preview": lambda client: client.preview("code"),
    "identity": lambda client: client.identity(),
    "session": lambda client: client.session("s"),
    "sessions": lambda client: client.sessions(),
    "agreement": lambda client: client.agreement("s"),
    "audit": lambda client: client.audit("s"),
}
ARRAYS: dict[str, Callable[[HttpAnalyst], Any]] = {
    "task": lambda client: client.task("s", 0),
    "next task": lambda client: client.contribute("s", 1, 1, b"bytes", 20),
    "result": lambda client: client.result("s"),
}


@pytest.mark.threat(158)
@pytest.mark.parametrize("route", ROUTES)
def test_an_endless_document_is_refused_within_memory(route: str) -> None:
    with (
        answering(without_end) as peer,
        connect(peer.url, patience=0) as analyst,
        little_memory(),
        pytest.raises(GuardRefused, match="more than 16 MiB") as refused,
    ):
        ROUTES[route](analyst.as_party("token"))
    assert "None of it was stored" in refused.value.remedy


@pytest.mark.threat(158)
@pytest.mark.parametrize("fetch", ARRAYS)
def test_too_large_arrays_are_refused_before_the_first_byte(fetch: str) -> None:
    with (
        answering(announced(limits.max_array_bytes() + 1)) as peer,
        connect(peer.url, patience=0) as analyst,
        little_memory(),
        pytest.raises(GuardRefused, match="half of the memory"),
    ):
        ARRAYS[fetch](analyst.as_party("token"))


@pytest.mark.threat(158)
def test_arrays_without_a_length_end_at_the_same_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "max_array_bytes", lambda: 3 * MEBIBYTE)
    with (
        answering(without_end) as peer,
        connect(peer.url, patience=0) as analyst,
        little_memory(),
        pytest.raises(GuardRefused, match="more than 3 MiB"),
    ):
        analyst.result("s")


@pytest.mark.threat(158)
@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"identity, gzip"])
@pytest.mark.quick(2)
def test_nothing_is_unpacked(coding: bytes) -> None:
    packed = bomb(256 * MEBIBYTE)
    assert len(packed) < MEBIBYTE
    with (
        answering(whole(packed, coding)) as peer,
        connect(peer.url, patience=0) as analyst,
        little_memory(),
        pytest.raises(GuardRefused, match="compressed"),
    ):
        analyst.preview("code")
    assert b"accept-encoding: identity\r\n" in peer.asked[0].lower()


@pytest.mark.threat(158)
def test_who_looks_at_an_analyst_is_told_of_such_an_answer() -> None:
    with answering(without_end) as peer, little_memory():
        *_, last = check_analyst(peer.url)
    assert not last.is_ok
    assert "more than 16 MiB" in last.text


def test_large_arrays_are_read() -> None:
    content = b"x" * (limits.DOCUMENT_BYTES + MEBIBYTE)
    with answering(whole(content)) as peer, connect(peer.url, patience=0) as analyst:
        assert analyst.result("s") == analyst.task("s", 0) == content


def test_whatever_the_analyst_sends_as_arrays_is_read_as_such() -> None:
    """The table of routes misses none of the service's own description."""
    paths = create_app(Settings()).openapi()["paths"]
    of_arrays = {
        path
        for path, operations in paths.items()
        for operation in operations.values()
        for form in (*operation["responses"].values(), operation.get("requestBody"))
        # the answer to a contribution is the next task
        if form and MEDIA_TYPE in form.get("content", {})
    }
    assert len(of_arrays) == 3
    for path in of_arrays:
        assert limits.max_answer_bytes(path) == limits.max_array_bytes(), path


PAGES: dict[str, tuple[bytes, Callable[[HttpAnalyst], Any]]] = {
    "audit": (
        b'{"lines": [%b], "next": 7, "signature": ""}',
        lambda analyst: analyst.audit("s"),
    ),
    "sessions": (
        b'{"sessions": [%b], "next": "more"}',
        lambda analyst: Coordinator("", "key", analyst=analyst).sessions(),
    ),
}
LINES = {"audit": b'"line"', "sessions": SESSION_LINE.model_dump_json().encode()}


@pytest.mark.threat(158)
@pytest.mark.parametrize("n_lines", [0, 1, 2])
@pytest.mark.parametrize("what", PAGES)
def test_a_list_without_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, what: str, n_lines: int
) -> None:
    page, fetch = PAGES[what]
    monkeypatch.setattr(limits, "MAX_PAGES", 50)
    if n_lines == 2:
        monkeypatch.setattr(limits, "max_array_bytes", lambda: 100)
    lines = b",".join([LINES[what]] * n_lines)
    with (
        answering(whole(page % lines)) as peer,
        connect(peer.url, patience=0) as analyst,
        pytest.raises(GuardRefused, match="list has no end"),
    ):
        fetch(analyst)
    assert len(peer.asked) == {0: 1, 1: 50}.get(n_lines, len(peer.asked)) <= 50


PROBLEMS = {
    "nested": b'{"detail": ' + b"[" * 200_000,
    "long": b'{"type": "urn:coterie:problem:not-found", "detail": "%b"}'
    % (b"A" * 10**7),
    "no text": b'{"type": 5, "detail": {"a": [1]}, "state": [], "reason": 1}',
}


@pytest.mark.threat(158)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_problem_of_another_form_is_a_short_sentence(kind: str) -> None:
    media_type = {"Content-Type": requests.PROBLEM_TYPE}
    problem = httpx.Response(404, content=PROBLEMS[kind], headers=media_type)
    with pytest.raises(CoterieError) as raised:
        requests.raise_problem(problem)
    assert len(str(raised.value)) < 5000
    assert "[1]" not in str(raised.value)


def test_an_analyst_that_holds_no_request_is_asked_seldom() -> None:
    analyst = Mock(**{"task.return_value": None})
    watch = SessionWatch(analyst, "s", None)
    begin = time.monotonic()
    assert [watch.fetch_task() for _ in range(3)] == [None] * 3
    assert time.monotonic() - begin > 0.5


def drip(start: bytes, drop: bytes) -> Answer:
    def answer(send: Send) -> None:
        send(start)
        while True:
            send(drop)
            time.sleep(0.02)

    return answer


SLOW = {
    "a head": drip(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "heads that are none yet": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "content": drip(CHUNKED, b"1\r\n \r\n"),
    "content of a length": drip(OK + b"Content-Length: 100000\r\n\r\n", b" "),
    "silence": drip(OK + b"Content-Length: 100000\r\n\r\n", b""),
}


@pytest.mark.threat(159)
@pytest.mark.parametrize("what", SLOW)
def test_an_answer_that_drips_ends(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.5)
    with answering(SLOW[what]) as peer:
        begin = time.monotonic()
        with (
            connect(peer.url, patience=0) as analyst,
            pytest.raises(Unavailable, match="no complete answer in time"),
        ):
            analyst.identity()
        assert 0.4 < time.monotonic() - begin < 5


def test_a_slow_answer_has_the_time_that_its_bytes_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.3)

    def answer(send: Send) -> None:
        send(OK + f"Content-Length: {len(KEY) + 8 * 4096}\r\n\r\n".encode())
        for _ in range(8):
            time.sleep(0.1)  # more than twice the least rate, for 0.8 s
            send(b" " * 4096)
        send(KEY)

    with answering(answer) as peer, connect(peer.url, patience=0) as analyst:
        assert analyst.identity() == "0" * 64


def test_the_clock_begins_anew_with_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.4)
    with answering(whole(KEY)) as peer, connect(peer.url, patience=0) as analyst:
        for _ in range(3):
            assert analyst.identity() == "0" * 64
            time.sleep(0.3)
    assert len(peer.asked) == 3


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with answering(whole(KEY)) as peer:
        monkeypatch.setenv("http_proxy", f"http://user:word@127.0.0.1:{peer.port}")
        yield peer


def test_the_proxy_of_the_environment_is_asked(proxied: Peer) -> None:
    url = "http://analyst.invalid"
    with open_http(url) as http:
        request = http.build_request("GET", "/v1/identity")
        assert limits.fetch(http, request).is_success
    assert proxied.asked[0].startswith(b"GET http://analyst.invalid/v1/identity ")
    assert b"proxy-authorization: basic " in proxied.asked[0].lower()


@pytest.mark.usefixtures("proxied")
def test_hosts_of_this_machine_need_no_proxy() -> None:
    for host in ("localhost", "127.0.0.1", "127.8.9.1", "[::1]"):
        assert proxy_of(f"http://{host}:8000") is None
    for host in ("127.0.0.1.example", "localhost.example", "10.0.0.1"):
        assert proxy_of(f"http://{host}:8000") is not None


def test_a_proxy_that_wants_a_password_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    with answering(lambda send: send(refusal)) as peer:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{peer.port}")
        with (
            connect("https://analyst.invalid", patience=60) as analyst,
            pytest.raises(Unavailable, match="asks for a name and a password") as said,
        ):
            analyst.identity()
        assert "HTTPS_PROXY" in said.value.remedy
        *_, finding = check_analyst("https://analyst.invalid")
    assert len(peer.asked) == 2
    assert (finding.check, finding.remedy) == ("proxy", said.value.remedy)


def test_this_machine_is_asked_itself_whatever_the_environment_says(
    proxied: Peer,
) -> None:
    """A request to it is plain HTTP: a proxy would read the key."""
    with answering(whole(KEY)) as peer, connect(peer.url, patience=0) as analyst:
        analyst.identity()
    assert len(peer.asked) == 1
    assert not proxied.asked

"""An analyst in operation: limits, connections, clocks, readiness and its log."""

import json
import logging
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import timedelta
from functools import partial
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from opentelemetry import _logs, metrics, trace
from support.analyst_process import Analyst
from support.databases import limit_connections
from support.in_process import Api, HandClock, StartApi

from analyst_service.credentials import revoke_credential, rotate_key
from analyst_service.database import Database, ServerClock, SystemClock
from analyst_service.logs import JsonFormatter
from analyst_service.settings import Settings
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import NotFound
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records.codec import MEDIA_TYPE
from tests.service.raw_requests import SILENCE, start
from tests.service.samples import PARTS, A, B, figures, problem_of


def test_the_administrators_page_has_every_setting_and_no_other() -> None:
    page = Path(__file__).parents[2] / "docs" / "administrator.md"
    listed = re.findall(r"(?m)^\| `COTERIE_(\w+)` \|", page.read_text())
    assert sorted(listed) == sorted(name.upper() for name in Settings.model_fields)


def test_metrics_count_sessions_rounds_bytes_and_refusals(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    content = session.reply(A)
    before = figures(api)
    session.put(A, content)
    session.put(A, content)
    api.send("GET", session.path, "ck_wrong")
    after = figures(api)
    upload = "/v1/sessions/{session_id}/rounds/{round_}/attempts/{attempt}/contribution"
    assert after["coterie_sessions", "collecting"] == 1
    assert after["coterie_sessions", "failed"] == 0
    assert after["coterie_step_seconds_count", "Opened"] == 1
    assert after["coterie_requests_total", "PUT", upload, "201"] == 1
    assert after["coterie_requests_total", "PUT", upload, "200"] == 1
    assert after["coterie_refusals_total", "unauthenticated"] == 1
    received = "coterie_received_bytes_total"
    assert after[received,] - before[received,] == 2 * len(content)
    session.answer(B)
    session.finish()
    api.send("GET", "/v1/sessions/surprise", session.key)
    ended = figures(api)
    text = api.send("GET", "/metrics").text
    for name in (session.id, A, session.key, "surprise"):
        assert name not in text
    assert ended["coterie_sessions", "completed"] == 1
    assert ended["coterie_sessions", "collecting"] == 0
    assert ended["coterie_step_seconds_count", "Closed"] == 1


@pytest.fixture
def written() -> Iterator[StringIO]:
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield stream
    root.setLevel(level)
    root.removeHandler(handler)


def entries(written: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_every_request_is_one_json_line_with_its_id(
    api: Api, written: StringIO
) -> None:
    session = api.open(Dummy(), PARTS)
    written.truncate(0)
    written.seek(0)
    good = api.send("GET", session.path, session.key)
    bad = api.send("GET", "/v1/sessions/ward-7", session.key)
    first, second = [e for e in entries(written) if e["logger"] == "coterie.requests"]
    assert second["request_id"] == bad.headers["x-request-id"]
    assert second["request_id"] == bad.json()["request_id"]
    assert first["request_id"] == good.headers["x-request-id"] != second["request_id"]
    assert (first["route"], first["status"]) == ("/v1/sessions/{session_id}", 200)
    assert (second["status"], second["problem"]) == (404, "not-found")
    assert first["caller"] == second["caller"]
    assert "ward-7" not in json.dumps([first, second])


@pytest.mark.threat(17, 32)
def test_a_log_line_stays_one_line_and_shows_no_text_of_an_error(
    written: StringIO,
) -> None:
    log = logging.getLogger("tests")
    try:
        int("canary\nsecond line")
    except ValueError:
        log.exception("it\nfailed")
    [entry] = entries(written)
    assert entry["message"] == "it\nfailed"
    assert entry["error"].startswith("ValueError at ")
    assert "canary" not in json.dumps(entry)


@pytest.mark.threat(131)
def test_the_text_of_a_failure_reaches_neither_log_nor_collectors(
    api: Api, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FastAPI would report every request and error to a trace collector."""

    class Collecting:
        def __getattr__(self, name: str) -> Any:
            pytest.fail(f"{name} was asked for")

    def fail(*_: object) -> None:
        raise RuntimeError("canary")

    for kind, name in (
        (trace, "get_tracer_provider"),
        (metrics, "get_meter_provider"),
        (_logs, "get_logger_provider"),
    ):
        monkeypatch.setattr(kind, name, Collecting)
    assert api.send("GET", "/v1/protocols").status_code == 200
    assert api.send("POST", "/v1/join", content=b"canary").status_code // 100 == 4
    monkeypatch.setattr(Database, "read", fail)
    refusal = api.send("GET", "/v1/sessions", "ck_canary")
    assert problem_of(refusal) is Problem.INTERNAL
    assert "canary" not in refusal.text + caplog.text
    assert "RuntimeError at " in caplog.text


@pytest.mark.threat(68)
def test_one_callers_flood_is_held_up_and_no_other_caller(start_api: StartApi) -> None:
    with start_api(requests_per_second=4) as api:
        flooding, other = api.key(), api.key()
        asked = [api.send("GET", "/v1/sessions", flooding) for _ in range(25)]
        assert [r.status_code for r in asked] == [200] * 20 + [429] * 5
        assert problem_of(asked[-1]) is Problem.TOO_MANY_REQUESTS
        assert asked[-1].headers["retry-after"] == "1"
        assert api.send("GET", "/v1/sessions", other).status_code == 200
        api.clock.forward(1)
        asked = [api.send("GET", "/v1/sessions", flooding) for _ in range(5)]
        assert [r.status_code for r in asked] == [200, 200, 200, 200, 429]
        guesses = [f"ck_guess-{number}" for number in range(25)]
        asked = [api.send("GET", "/v1/sessions", guess) for guess in guesses]
        assert [r.status_code for r in asked] == [401] * 20 + [429] * 5
        assert api.send("GET", "/v1/sessions", other).status_code == 200


@pytest.mark.threat(7)
def test_headers_over_the_limit_are_refused(api: Api) -> None:
    for headers, path in (
        ({"X-Long": "x" * 70_000}, "/v1/protocols"),
        ({f"X-{n}": "x" * 20 for n in range(2_000)}, "/v1/protocols"),
        ({}, "/v1/protocols?" + "x" * 100_000),
    ):
        with suppress(httpx.InvalidURL):
            refusal = api.send("GET", path, headers=headers)
            assert problem_of(refusal) is Problem.HEADER_TOO_LARGE


@pytest.mark.threat(15, 67)
def test_an_upload_too_large_or_too_slow_is_refused_and_leaves_no_draft(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = api.open(Dummy(), PARTS).join()
    content = session.reply(A)
    path, secret = session.place(content), session.tokens[A]
    headers = {"content-type": MEDIA_TYPE, "content-digest": f"sha-256=:{'A' * 43}=:"}
    large = {**headers, "content-length": str((1 << 63) - 1)}
    refused = start(api, "PUT", path, [b"x", SILENCE], secret=secret, **large)
    assert (refused.result(60).status, refused.result(60).read) == (413, 0)
    monkeypatch.setattr("analyst_service.middleware.BODY_SECONDS", 0.05)
    slow = {**headers, "content-length": "100000"}
    given_up = start(api, "PUT", path, [b"x", SILENCE], secret=secret, **slow)
    assert (given_up.result(60).status, given_up.result(60).problem) == (408, "timeout")
    assert given_up.result(60).headers["connection"] == "close"
    assert not list((api.service.settings.blob_location.folder / "tmp").iterdir())


@pytest.mark.threat(9)
def test_what_is_left_of_a_body_is_no_second_request(analyst: Analyst) -> None:
    smuggled = "GET /v1/protocols HTTP/1.1\r\nHost: x\r\n\r\n"
    head = "POST /v1/join/preview HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
    body = "{" + " " * (2 << 20)
    request = f"{head}\r\nContent-Length: {len(body)}\r\n\r\n{smuggled}"
    with socket.create_connection(("127.0.0.1", analyst.port)) as connection:
        connection.settimeout(10)
        connection.sendall(request.encode())
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_rotated_key_keeps_its_sessions_and_retires_the_old(api: Api) -> None:
    session = api.open(Dummy(), PARTS)
    key_id = api.caller(session.key).credential_id
    fresh = api.service.database.transact(rotate_key, key_id, 1000, 60)
    for secret in (session.key, fresh):
        assert api.send("GET", session.path, secret).status_code == 200
    api.clock.forward(60)
    assert api.send("GET", session.path, session.key).status_code == 401
    assert api.send("POST", f"{session.path}/cancel", fresh).status_code == 200
    api.clock.forward(940)
    assert api.send("GET", session.path, fresh).status_code == 401


def test_a_key_that_has_ended_and_a_token_are_not_rotated(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join(A)
    token, key = map(api.caller, (session.tokens[A], session.key))
    database = api.service.database
    database.transact(revoke_credential, key.credential_id)
    for credential in (token.credential_id, key.credential_id, "unknown"):
        with pytest.raises(NotFound):
            database.transact(rotate_key, credential, 60, 60)
    assert api.send("GET", session.path, session.key).status_code == 401


def test_tokens_expire_an_hour_after_a_slot_joined_again(api: Api) -> None:
    """If a join was sent twice, either response may be the one that arrives."""
    session = api.open(Dummy(), PARTS).join(A, turn=False)
    first = session.tokens[A]
    session.join(A, turn=False)
    assert api.send("GET", session.path, first).status_code == 200
    api.clock.forward(3600)
    assert api.send("GET", session.path, first).status_code == 401
    assert api.send("GET", session.path, session.tokens[A]).status_code == 200


SECOND = timedelta(seconds=1)


def test_the_monotonic_clock_continues_from_the_servers_time() -> None:
    server = HandClock()
    clock = ServerClock(server.now)
    assert server.now() <= clock.now() < server.now() + SECOND
    read = [clock.now() for _ in range(100)]
    assert all(earlier <= later for earlier, later in pairwise(read))
    assert read[-1] < server.now() + SECOND
    server.forward(3600)  # the server's clock is set: it is the one that counts
    clock.synchronise()
    assert server.now() <= clock.now() < server.now() + SECOND


@pytest.mark.postgres
def test_analysts_of_one_server_share_its_clock(postgres_url: str) -> None:
    database = Database(postgres_url)
    clock = database.clock
    assert isinstance(clock, ServerClock)
    # of this machine, on which the server runs too
    assert abs(clock.now() - SystemClock().now()) < SECOND
    database.close()


def ask(database: Database) -> int:
    with database.read() as transaction:
        return int(transaction.scalar(sa.text("SELECT 1 FROM pg_sleep(0.01)")) or 0)


@pytest.mark.postgres
def test_requests_beyond_the_connections_wait_for_an_answer(postgres_url: str) -> None:
    """Two databases with twenty threads each use a server that allows three connections."""
    with (
        limit_connections(postgres_url, 3) as url,
        closing(Database(url, 2)) as one,
        closing(Database(url, 2)) as two,
        ThreadPoolExecutor(40) as threads,
    ):
        answers = list(threads.map(ask, [one, two] * 100))
    assert answers == [1] * 200


def test_more_requests_than_threads_share_two_connections(start_api: StartApi) -> None:
    """A request must not keep its connection while it waits for a thread: deadlock."""
    with start_api(database_connections=2) as api, ThreadPoolExecutor(60) as threads:
        session, code = api.open(Dummy(), PARTS), {"code": "i" * 43}
        asked = [
            partial(api.send, "GET", f"/v1/sessions{path}", session.key)
            for path in ("", *(f"/{session.id}{end}" for end in ("", "/audit")))
        ]
        asked.append(partial(api.send, "POST", "/v1/join/preview", json=code))
        answers = list(threads.map(lambda send: send(), asked * 40))
        expected = [200, 200, 200, 404] * 40
        assert [answer.status_code for answer in answers] == expected


@pytest.mark.postgres
def test_another_refusal_is_told_at_once(postgres_url: str) -> None:
    nobody = sa.make_url(postgres_url).set(username="coterie_nobody")
    begun = time.monotonic()
    with (
        closing(Database(nobody.render_as_string(hide_password=False))) as database,
        pytest.raises(sa.exc.OperationalError),
    ):
        ask(database)
    assert time.monotonic() - begun < 5

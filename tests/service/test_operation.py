"""An analyst in operation: limits, connections, clocks, readiness and its log."""

from __future__ import annotations

import json
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import datetime, timedelta
from io import StringIO
from itertools import pairwise
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
import sqlalchemy as sa
from opentelemetry import _logs, metrics, trace
from prometheus_client.parser import text_string_to_metric_families
from support.analyst_process import Analyst, Crowd, wait_for
from support.databases import limited
from support.in_process import HandClock, in_process
from support.warm import with_constants

from analyst_service.clock import ServerClock, SystemClock
from analyst_service.credentials import revoke, rotate_key
from analyst_service.monitoring.logs import JsonLines
from analyst_service.settings import Settings
from analyst_service.storage.database import Database
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import NotFound
from clustering_protocols.protocols.dummy import Dummy
from tests.service.raw_requests import SILENCE, start
from tests.service.samples import PARTS, A, B, StartApi

if TYPE_CHECKING:
    from support.in_process import Api, HandClock


def problem_of(response: httpx.Response) -> Problem:
    assert response.headers["content-type"] == "application/problem+json"
    return Problem.of_slug(response.json()["type"])


def test_the_administrators_page_has_every_setting_and_no_other() -> None:
    page = Path(__file__).parents[2] / "docs" / "administrator.md"
    listed = re.findall(r"(?m)^\| `COTERIE_(\w+)` \|", page.read_text())
    assert sorted(listed) == sorted(name.upper() for name in Settings.model_fields)


# Health


@pytest.mark.threat(57)
def test_a_service_whose_database_is_away_lives_and_is_not_ready(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api.send("GET", "/readyz").json() == {"status": "ok"}
    away = Database("postgresql+psycopg://127.0.0.1:1/nowhere")
    with monkeypatch.context() as context:
        context.setattr(api.service.database, "engine", away.engine)
        assert api.send("GET", "/healthz").status_code == 200
        api.clock.forward(1)  # what it said before is kept for as long
        refusal = api.send("GET", "/readyz")
    assert refusal.status_code == 503
    assert refusal.headers["retry-after"] == "2"
    assert problem_of(refusal) is Problem.UNAVAILABLE
    api.clock.forward(1)
    assert api.send("GET", "/readyz").status_code == 200


def test_a_service_on_another_schema_is_not_ready(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Database, "is_current", lambda _: False)
    assert api.send("GET", "/readyz").status_code == 503


# Figures


def figures(api: Api) -> dict[tuple[str, ...], float]:
    """All samples, by name and labels."""
    api.clock.forward(1)  # they are worked out once a second
    response = api.send("GET", "/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


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
    ended = figures(api)
    assert ended["coterie_sessions", "completed"] == 1
    assert ended["coterie_sessions", "collecting"] == 0
    assert ended["coterie_step_seconds_count", "Closed"] == 1


def test_no_figure_names_a_session_a_party_or_a_credential(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join().finish()
    api.send("GET", "/v1/sessions/surprise", session.key)
    text = api.send("GET", "/metrics").text
    for name in (session.id, A, session.key, "surprise"):
        assert name not in text


# Logs


@pytest.fixture
def written() -> Iterator[StringIO]:
    """What the loggers write while a test runs."""
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
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


def test_a_failure_is_a_problem_without_its_text(
    api: Api, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("canary")

    monkeypatch.setattr("analyst_service.requests.authenticate", fail)
    refusal = api.send("GET", "/v1/sessions", "ck_x")
    assert problem_of(refusal) is Problem.INTERNAL
    assert "canary" not in refusal.text + caplog.text
    assert "RuntimeError at " in caplog.text


@pytest.mark.threat(131)
def test_what_collects_traces_on_this_machine_is_told_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The framework would tell it of every request, and the text of every error."""

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
    assert api.send("GET", "/v1/sessions", "ck_canary").status_code == 500


# Limits


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


@pytest.mark.parametrize("path", ["/v1/sessions", "/v1/join/preview"])
def test_guessing_keys_or_codes_is_held_up(start_api: StartApi, path: str) -> None:
    with start_api(requests_per_second=4) as api:
        method = "GET" if path == "/v1/sessions" else "POST"
        body = {"code": "0123456789abcdef"}
        asked = [
            api.send(method, path, f"ck_guess-{guess}", json=body)
            for guess in range(25)
        ]
        refused = 401 if method == "GET" else 404
        assert [r.status_code for r in asked] == [refused] * 20 + [429] * 5
        assert api.send("GET", "/v1/sessions", api.key()).status_code == 200


@pytest.fixture
def clock(api: Api) -> HandClock:
    return api.clock


@pytest.mark.threat(69)
def test_requests_over_the_limit_are_refused_and_not_queued(
    start_api: StartApi,
) -> None:
    with start_api(max_requests=3) as api:
        session = api.open(Dummy(), PARTS).join(A)
        body = [b"{", SILENCE]
        keys = [api.key() for _ in range(10)]
        sent = [start(api, "PUT", "/v1/sessions/s", body, secret=key) for key in keys]
        wait_for(lambda: sum(request.done() for request in sent) == 7)
        refused = [request.result() for request in sent if request.done()]
        assert {(r.status, r.read) for r in refused} == {(429, 0)}
        assert api.send("GET", session.path, session.key).status_code == 429
        for request in sent:
            request.cancel()
        wait_for(lambda: api.send("GET", session.path, session.key).status_code == 200)
        assert session.status["state"] == "recruiting"


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


@pytest.fixture(scope="module")
def impatient(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Analyst]:
    """A real analyst that waits half a second for slow bodies."""
    limits = with_constants(
        {
            "analyst_service.middleware.BODY_SECONDS": 0.5,
            "analyst_service.middleware.STRANGER_SECONDS": 0.5,
            "analyst_service.contributions.endpoints.MAX_WAIT_SECONDS": 1,
        }
    )
    folder = tmp_path_factory.mktemp("impatient")
    with Analyst(folder, environment=limits) as analyst:
        yield analyst


def dribble(port: int, head: str) -> tuple[bytes, float]:
    """Send a request whose body comes one byte at a time; return the answer."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(10)
        begin = time.monotonic()
        connection.sendall(head.encode())
        with suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(100):
                connection.sendall(b" ")
                time.sleep(0.05)
                if time.monotonic() - begin > 3:
                    break
        answer = b""
        with suppress(ConnectionResetError):
            while piece := connection.recv(1 << 16):
                answer += piece
        return answer, time.monotonic() - begin


@pytest.mark.threat(67)
@pytest.mark.parametrize("what", ["json", "arrays"])
def test_a_slow_body_is_abandoned_and_its_connection_closed(
    impatient: Analyst, gather_on: Callable[[Analyst], Crowd], what: str
) -> None:
    crowd = gather_on(impatient)
    head = "POST /v1/join/preview HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
    if what == "arrays":
        party = crowd.party(A)
        party.enrol(PARTS.data[A])
        crowd.party(B).enrol(PARTS.data[B])
        while crowd.session.status().state != "collecting":
            time.sleep(0.02)
        token = party.folder.load_identity().token
        head = (
            f"PUT /v1/sessions/{crowd.session.id}/rounds/1/attempts/1/contribution"
            f" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Digest: sha-256=:{'A' * 43}=:"
            "\r\nContent-Type: application/vnd.coterie.arrays"
        )
    length = 10_000 if what == "json" else 100_000  # of what each may send
    answer, _ = dribble(impatient.port, f"{head}\r\nContent-Length: {length}\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answer.lower()
    assert b"urn:coterie:problem:timeout" in answer
    assert not list((impatient.data_dir / "blobs" / "tmp").iterdir())


@pytest.fixture
def gather_on(home: Path, session_id: str) -> Iterator[Callable[[Analyst], Crowd]]:
    crowds: list[Crowd] = []

    def make(analyst: Analyst) -> Crowd:
        rest = (Dummy(), PARTS.layout, PARTS.data)
        made = Crowd(analyst, home, *rest, session=session_id)
        crowds.append(made)
        return made

    yield make
    for crowd in crowds:
        crowd.close()


@pytest.mark.threat(9)
def test_what_is_left_of_a_body_is_no_second_request(impatient: Analyst) -> None:
    smuggled = "GET /v1/protocols HTTP/1.1\r\nHost: x\r\n\r\n"
    head = "POST /v1/join/preview HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
    body = "{" + " " * (2 << 20)
    request = f"{head}\r\nContent-Length: {len(body)}\r\n\r\n{smuggled}"
    with socket.create_connection(("127.0.0.1", impatient.port)) as connection:
        connection.settimeout(10)
        connection.sendall(request.encode())
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.threat(15)
def test_a_body_over_the_limit_is_refused_before_its_first_byte(
    impatient: Analyst, gather_on: Callable[[Analyst], Crowd]
) -> None:
    crowd = gather_on(impatient)
    party = crowd.party(A)
    party.enrol(PARTS.data[A])
    token = party.folder.load_identity().token
    head = (
        f"PUT /v1/sessions/{crowd.session.id}/rounds/1/attempts/1/contribution"
        f" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {(1 << 63) - 1}"
        "\r\nContent-Type: application/vnd.coterie.arrays\r\nExpect: 100-continue"
    )
    with socket.create_connection(("127.0.0.1", impatient.port)) as connection:
        connection.settimeout(10)
        connection.sendall(f"{head}\r\n\r\n".encode())
        answer = connection.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"100 Continue" not in answer


@pytest.mark.threat(8)
def test_a_truncated_body_leaves_nothing_and_can_be_resent(
    impatient: Analyst, gather_on: Callable[[Analyst], Crowd]
) -> None:
    crowd = gather_on(impatient)
    crowd.start(B)
    seen: list[bytes] = []

    class HalfFirst(httpx.HTTPTransport):
        """Sends half of the first upload on a line of its own, and hangs up."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/contribution") and not seen:
                body = request.read()
                head = f"PUT {request.url.path} HTTP/1.1\r\nHost: x\r\n"
                for name, value in request.headers.items():
                    if name != "host":
                        head += f"{name}: {value}\r\n"
                port = impatient.port
                with socket.create_connection(("127.0.0.1", port)) as line:
                    line.settimeout(10)
                    line.sendall(head.encode() + b"\r\n" + body[: len(body) // 2])
                    line.shutdown(socket.SHUT_WR)
                    with suppress(ConnectionResetError):
                        seen.append(line.recv(1 << 16))
                drafts = impatient.data_dir / "blobs" / "tmp"
                wait_for(lambda: not list(drafts.iterdir()))
            return super().handle_request(request)

    http = httpx.Client(base_url=impatient.url, transport=HalfFirst())
    crowd.results[A] = crowd.party(A, http).run(PARTS.data[A])
    crowd.join()
    assert seen
    assert not seen[0].startswith(b"HTTP/1.1 2")


# Rotation and revocation


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
    database.transact(revoke, key.credential_id)
    for credential in (token.credential_id, key.credential_id, "unknown"):
        with pytest.raises(NotFound):
            database.transact(rotate_key, credential, 60, 60)
    assert api.send("GET", session.path, session.key).status_code == 401


def test_tokens_expire_an_hour_after_a_slot_joined_again(api: Api) -> None:
    """Of a join that was sent twice either response may be the one that arrives."""
    session = api.open(Dummy(), PARTS).join(A, turn=False)
    first = session.tokens[A]
    session.join(A, turn=False)
    assert api.send("GET", session.path, first).status_code == 200
    api.clock.forward(3600)
    assert api.send("GET", session.path, first).status_code == 401
    assert api.send("GET", session.path, session.tokens[A]).status_code == 200


def test_a_service_writes_json_lines_and_no_secret(
    impatient: Analyst, gather_on: Callable[[Analyst], Crowd]
) -> None:
    gather_on(impatient)
    httpx.get(f"{impatient.url}/v1/sessions", headers={"X": "canary"})
    lines = impatient.log.read_text().splitlines()
    assert len([json.loads(line) for line in lines]) > 3
    assert impatient.key not in impatient.log.read_text()
    assert "canary" not in impatient.log.read_text()


# Who it is


# The clock that several analysts share


SECOND = timedelta(seconds=1)


def test_the_monotonic_clock_continues_from_the_servers_time() -> None:
    server, own = HandClock(), HandClock()
    own.forward(7200)
    clock = ServerClock(server.now, own)
    assert server.now() <= clock.now() < server.now() + SECOND
    assert abs(clock.skew() - 7200 * SECOND) < SECOND
    own.forward(-86_400)  # somebody sets the machine's clock: nobody here sees it
    read = [clock.now() for _ in range(100)]
    assert all(earlier <= later for earlier, later in pairwise(read))
    assert read[-1] < server.now() + SECOND
    server.forward(3600)  # the server's clock is set: it is the one that counts
    assert abs(clock.skew() + 82_800 * SECOND) < SECOND
    assert server.now() <= clock.now() < server.now() + SECOND


def test_a_server_that_does_not_answer_is_no_time() -> None:
    def away() -> datetime:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        ServerClock(away).now()


@pytest.mark.postgres
def test_analysts_of_one_server_share_its_clock(postgres_url: str) -> None:
    database = Database(postgres_url)
    clock = database.clock
    assert isinstance(clock, ServerClock)
    # of this machine, on which the server runs too
    assert abs(clock.now() - SystemClock().now()) < SECOND
    assert abs(clock.skew()) < SECOND
    database.close()


def test_a_file_is_of_one_machine_and_its_clock_counts(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'test.db'}")
    assert isinstance(database.clock, SystemClock)
    assert not database.clock.skew()
    database.close()


# Connections to PostgreSQL, which all analysts and tools share


def ask(database: Database) -> int:
    with database.read() as transaction:
        return int(transaction.scalar(sa.text("SELECT 1 FROM pg_sleep(0.01)")) or 0)


@pytest.mark.postgres
def test_a_full_server_is_waited_for(postgres_url: str) -> None:
    with limited(postgres_url, 1) as url:
        other = psycopg.connect(url)
        leaves = Timer(0.5, other.close)
        leaves.start()
        begun = time.monotonic()
        with closing(Database(url)) as database:
            assert ask(database) == 1
        assert time.monotonic() - begun >= 0.4
        leaves.join()


@pytest.mark.postgres
def test_requests_beyond_the_connections_wait_for_an_answer(
    postgres_url: str,
) -> None:
    """Twenty threads of each of two processes, a server that takes three."""
    with (
        limited(postgres_url, 3) as url,
        closing(Database(url, 2)) as one,
        closing(Database(url, 2)) as two,
        ThreadPoolExecutor(40) as threads,
    ):
        answers = list(threads.map(ask, [one, two] * 100))
    assert answers == [1] * 200


@pytest.mark.parametrize("path", ["", "/{id}", "/{id}/audit", "/{id}/receivers"])
def test_more_requests_than_threads_share_two_connections(
    tmp_path: Path, path: str
) -> None:
    """A request that keeps its connection while it waits for a thread stops all."""
    with (
        in_process(tmp_path / "api", database_connections=2) as api,
        ThreadPoolExecutor(60) as threads,
    ):
        session = api.open(Dummy(), PARTS)
        place = "/v1/sessions" + path.format(id=session.id)
        answers = threads.map(lambda _: api.send("GET", place, session.key), range(120))
        assert [answer.status_code for answer in answers] == [200] * 120


def test_refused_invitations_share_two_connections(tmp_path: Path) -> None:
    """What is counted of a refusal is looked up once the refused request has ended."""
    code = {"code": "i" * 43}
    with (
        in_process(tmp_path / "api", database_connections=2) as api,
        ThreadPoolExecutor(60) as threads,
    ):
        place = "/v1/join/preview"
        answers = threads.map(lambda _: api.send("POST", place, json=code), range(120))
        assert [answer.status_code for answer in answers] == [404] * 120


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

"""Requests without a credential cost little, and block no request that has one."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import Result
from pydantic import ValidationError
from support.analyst_process import wait_for
from support.in_process import Api, StartApi

from analyst_service import contribution_endpoints as endpoints, middleware, requests
from analyst_service.blobs import FileBlobStore
from analyst_service.database import Database
from analyst_service.middleware import RequestLimits, RequestPool
from analyst_service.process_context import CachedValue
from analyst_service.requests import MAX_NAMES, UnparsedBody
from analyst_service.session_endpoints import SessionWrite
from analyst_service.settings import Settings
from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import codec
from tests.service.raw_requests import SILENCE, Exchange, ask, start
from tests.service.samples import PARTS, A, B

STRANGE = (
    ("POST", "/v1/join"),
    ("POST", "/v1/join/preview"),
    ("POST", "/v1/join/decline"),
    ("PUT", "/v1/sessions/s"),
)


def test_a_strangers_body_is_refused_before_its_first_byte_or_at_the_limit(
    api: Api,
) -> None:
    limit = middleware.UNAUTHENTICATED_BYTES
    announced = {"content-length": str(limit + 1)}
    for method, path in STRANGE:
        refused = ask(api, method, path, [b" "] * (limit + 1), **announced)
        assert (refused.status, refused.read) == (413, 0)
        assert refused.headers["connection"] == "close"
        refused = ask(api, method, path, [b" " * 1024] * 1024)
        assert refused.status in {401, 413}
        assert refused.read <= limit + 1024


@pytest.mark.parametrize("secret", [None, "ck_guess"])
def test_an_unknown_caller_is_refused_before_the_body_is_read(
    api: Api, secret: str | None
) -> None:
    for method, path in (
        ("PUT", "/v1/sessions/s"),
        ("POST", "/v1/sessions/s/invitations"),
        ("PUT", "/v1/sessions/s/rounds/1/attempts/1/contribution"),
    ):
        refused = ask(api, method, path, [b"{", SILENCE], secret=secret)
        assert (refused.status, refused.problem) == (401, "unauthenticated")
        assert refused.read == 0


def test_a_strangers_body_has_a_head_start_of_its_own(
    start_api: StartApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "UNAUTHENTICATED_SECONDS", 0.05)
    with start_api() as api:
        slow = ask(api, "POST", "/v1/join/preview", [b"{", SILENCE])
        assert (slow.status, slow.problem) == (408, "timeout")
        key = api.key()
        patient = start(api, "PUT", "/v1/sessions/s", [b"{", SILENCE], secret=key)
        wait_for(lambda: not slow.pieces)
        assert not patient.done()
        patient.cancel()


def test_no_body_is_parsed_in_the_event_loop(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def this_thread() -> int:
        return threading.get_ident()

    loop, parsed_in = api.portal.call(this_thread), []
    load = codec.load_object

    def noting(text: str, max_names: int) -> Any:
        parsed_in.append(threading.get_ident())
        return load(text, max_names)

    monkeypatch.setattr(codec, "load_object", noting)
    session = api.open(Dummy(), PARTS)
    assert session.try_join(A).status_code == 200
    api.send("POST", "/v1/join/preview", json={"code": session.codes[B]})
    assert len(parsed_in) == 4, "a session, invitations, a join, a preview"
    assert loop not in parsed_in


def test_too_many_names_are_refused_before_validation(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[type] = []
    monkeypatch.setattr(requests, "_build_validator", asked.append)
    many = {f"{n:x}": 0 for n in range(MAX_NAMES + 1)}
    deep = b'{"a":' * 3000
    for body in (*map(json.dumps, (many, {"member": {"keys": many}})), deep.decode()):
        refused = ask(api, "POST", "/v1/join", [body.encode()])
        assert (refused.status, refused.problem) == (400, "malformed")
    assert asked == []


LONG = {
    "slots": {"layout": {"slots": [{}] * 900}, "protocol": {"name": "dummy"}},
    "fields": {
        "layout": {"slots": []},
        "protocol": {"name": "dummy"},
        "dictionary": [{"fields": [{"surprise": 1}] * 900}],
    },
    "numbers": {
        "layout": {"slots": []},
        "protocol": {
            "name": "llf",
            "params": {"n_clusters": 2, "initial_centroids": [["x"] * 900]},
        },
    },
}


@pytest.mark.parametrize("what", LONG)
def test_validation_stops_at_the_first_wrong_item_of_a_list(what: str) -> None:
    """The validator holds the interpreter lock: a long list of errors would block all."""
    body = LONG[what]
    with pytest.raises(ValidationError) as patient:
        SessionWrite.model_validate(body)
    assert patient.value.error_count() >= 900
    with pytest.raises(InvalidParameters) as refused:
        UnparsedBody(SessionWrite, json.dumps(body).encode()).read()
    found = refused.value.__context__
    assert isinstance(found, ValidationError)
    assert found.error_count() < 8


def pots(api: Api) -> tuple[RequestPool, RequestPool]:
    ask(api, "GET", "/healthz")  # the first request builds the layers
    layer = api.app.middleware_stack
    while not isinstance(layer, RequestLimits):
        layer = layer.__dict__.get("app") or layer.__dict__["_app"]
    return layer.unauthenticated, layer.callers


def limit_pools(
    api: Api, *, callers: int, strangers: int, each: int, waiting: int
) -> None:
    for pot, total in zip(pots(api), (strangers, callers), strict=True):
        pot.max_total, pot.max_per_sender, pot.max_waiting = total, each, waiting


@contextmanager
def silent(api: Api, n: int, **more: Any) -> Iterator[list[Future[Exchange]]]:
    """Send requests without a credential whose bodies stop after a byte."""
    sent = [
        start(api, "POST", "/v1/join/preview", [b"{", SILENCE], **more)
        for _ in range(n)
    ]
    try:
        yield sent
    finally:
        for request in sent:
            request.cancel()


@pytest.mark.threat(67, 68)
def test_strangers_that_fall_silent_take_no_place_from_a_caller(
    start_api: StartApi,
) -> None:
    with start_api() as api:
        limit_pools(api, callers=2, strangers=6, each=4, waiting=0)
        key = api.key()
        with silent(api, 7) as sent:
            wait_for(lambda: sum(request.done() for request in sent) == 3)
            refused = [request.result() for request in sent if request.done()]
            assert {r.status for r in refused} == {429}
            assert {r.headers["retry-after"] for r in refused} == {"1"}
            with silent(api, 3, address="192.0.2.2") as others:
                wait_for(lambda: sum(request.done() for request in others) == 1)
                assert api.send("GET", "/v1/sessions", key).status_code == 200
                for probe in ("/healthz", "/readyz"):
                    assert api.send("GET", probe).status_code == 200
                body = PARTS.layout.model_dump(mode="json")
                terms = {"protocol": {"name": "dummy"}, "layout": body}
                opened = api.send("PUT", "/v1/sessions/s", key, json=terms)
                assert opened.status_code == 201
                session = api.open(Dummy(), PARTS)
                assert session.try_join(A).status_code == 429, "a stranger's, too"
        wait_for(lambda: session.try_join(A).status_code == 200)


@pytest.mark.threat(68)
def test_one_callers_requests_take_no_place_from_another(start_api: StartApi) -> None:
    with start_api() as api:
        limit_pools(api, callers=6, strangers=6, each=3, waiting=0)
        flooding, other = api.key(), api.key()
        sent = [
            start(api, "PUT", "/v1/sessions/s", [b"{", SILENCE], secret=flooding)
            for _ in range(5)
        ]
        wait_for(lambda: sum(request.done() for request in sent) == 2)
        refused = [request.result() for request in sent if request.done()]
        assert {(r.status, r.read) for r in refused} == {(429, 0)}
        assert api.send("GET", "/v1/sessions", other).status_code == 200
        assert api.send("GET", "/v1/sessions", flooding).status_code == 429
        for request in sent:
            request.cancel()
        wait_for(lambda: api.send("GET", "/v1/sessions", flooding).status_code == 200)


@pytest.mark.threat(68)
def test_long_polls_take_no_slot_and_too_many_return_at_once(
    start_api: StartApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MAX_WAIT_SECONDS", 300)
    with start_api() as api:
        limit_pools(api, callers=2, strangers=2, each=2, waiting=3)
        session, other = api.open(Dummy(), PARTS).join(A), api.key()
        _, callers = pots(api)
        held = []
        for number in range(1, 4):
            poll = f"{session.path}/task?wait=300"
            held.append(start(api, "GET", poll, secret=session.tokens[A]))
            wait_for(lambda n=number: callers.waiting.total() == n)
        one_more = ask(api, "GET", poll, secret=session.tokens[A])
        assert (one_more.status, one_more.headers["retry-after"]) == (204, "1")
        assert not any(request.done() for request in held)
        assert api.send("GET", "/v1/sessions", other).status_code == 200
        session.join(B)  # all three are woken, though there is room for two
        assert [request.result(60).status for request in held] == [200] * 3
        assert api.send("GET", "/v1/sessions", other).status_code == 200


@pytest.mark.threat(67)
def test_addresses_and_callers_are_forgotten_after_they_leave(api: Api) -> None:
    for number in range(20):
        ask(api, "GET", "/v1/protocols", address=f"192.0.2.{number}")
        api.send("GET", "/v1/sessions", api.key())
    for pot in pots(api):
        assert (pot.number, dict(pot.served), dict(pot.waiting)) == (0, {}, {})


def test_what_is_open_is_counted_before_a_body_is_read(start_api: StartApi) -> None:
    with start_api(requests_per_second=1) as api:
        paths = ("/readyz", "/metrics", "/v1/protocols", "/v1/identity", "/")
        assert [ask(api, "GET", path).status for path in paths] == [200] * 4 + [404]
        guess = json.dumps({"code": "0123456789abcdef"}).encode()
        refused = ask(api, "POST", "/v1/join/preview", [guess])
        assert (refused.status, refused.read) == (429, 0)
        assert ask(api, "GET", "/metrics").status == 429
        assert ask(api, "GET", "/healthz").status == 200, "a supervisor has to know"


def test_what_is_open_is_worked_out_once_a_second_or_once(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked: list[str] = []

    def counted(owner: Any, name: str) -> None:
        work = getattr(owner, name)

        def noting(*args: Any) -> Any:
            worked.append(name)
            return work(*args)

        monkeypatch.setattr(owner, name, noting)

    for owner, name in (
        (Database, "has_current_schema"),
        (FileBlobStore, "create_draft"),
        (catalogue, "build_catalogue_entry"),
    ):
        counted(owner, name)
    counted(api.service.figures, "_compute")
    paths = ("/readyz", "/metrics", "/v1/protocols", "/openapi.json")
    for path in paths:
        ask(api, "GET", path)
    worked.clear()
    for path in paths * 3:
        assert ask(api, "GET", path).status == 200
    assert worked == []
    api.clock.forward(1)
    for path in paths * 3:
        assert ask(api, "GET", path).status == 200
    assert sorted(worked) == ["_compute", "create_draft", "has_current_schema"]


def test_one_thread_computes_a_value_while_others_use_the_last() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    begun, go_on = threading.Event(), threading.Event()
    values = iter(range(10))

    def work_out() -> int:
        begun.set()
        go_on.wait(60)
        return next(values)

    go_on.set()
    recent = CachedValue(work_out)
    assert recent.get(at) == 0
    go_on.clear()
    begun.clear()
    later = at + timedelta(seconds=1)
    slow = threading.Thread(target=recent.get, args=(later,))
    slow.start()
    assert begun.wait(60)
    assert recent.get(later) == 0
    go_on.set()
    slow.join()
    assert recent.get(later) == 1
    assert recent.get(at) == 2, "a clock that was put back"


SERVED = {
    "open to the network": (("--host", "0.0.0.0"), "", True),
    "behind a proxy": (("--host", "0.0.0.0"), "10.0.0.1", False),
    "this machine alone": ((), "", False),
}


@pytest.mark.usefixtures("serves")
@pytest.mark.parametrize("what", SERVED)
def test_plain_http_is_warned_of_and_a_named_proxy_alone_is_trusted(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    words, proxies, is_warned = SERVED[what]
    served: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "analyst_service.cli.shutdown.run_server",
        lambda *_, **options: served.append(options),
    )
    assert run("migrate").exit_code == 0
    done = run("serve", *words, COTERIE_TRUSTED_PROXIES=proxies)
    assert done.exit_code == 0, done.output
    assert ("Warning: plain HTTP on 0.0.0.0" in done.stderr) is is_warned
    [options] = served
    assert options["proxy_headers"] is bool(proxies)
    assert options["forwarded_allow_ips"] == proxies


def test_the_dummy_is_offered_where_a_setting_says_so(start_api: StartApi) -> None:
    terms = {
        "protocol": {"name": "dummy"},
        "layout": PARTS.layout.model_dump(mode="json"),
    }
    default = Settings.model_fields["hidden_protocols"].default
    assert default == "dummy"
    for hidden, is_offered in ((default, False), ("", True), ("dc, dummy", False)):
        with start_api(hidden_protocols=hidden) as api:
            listed = api.send("GET", "/v1/protocols").json()["protocols"]
            assert ("dummy" in {entry["name"] for entry in listed}) is is_offered
            asked = api.send(
                "PUT", f"/v1/sessions/s{len(hidden)}", api.key(), json=terms
            )
            assert asked.status_code == (201 if is_offered else 422)

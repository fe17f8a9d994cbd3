"""Pages at the analyst: who sees what, and what another site cannot make them do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest
from support.browsing import Browser, texts, tree
from support.in_process import InProcess
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from analyst_service.auth.service import AuthService, Role
from analyst_service.retention.worker import Sweeper
from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.signed_logs import SignedLog
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.states import SessionState

if TYPE_CHECKING:
    from support.in_process import Api

LAYOUT = Layout.lattice(2)
X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, LAYOUT, seed=1)
A, B = LAYOUT.names
# groups far apart: whatever the start, no audit of sums stops so few rows
FAR = np.random.default_rng(1).normal(size=(60, 3)) + 9 * (np.arange(60) % 3)[:, None]
THREE = simulation.split(FAR, Layout.lattice(3), seed=1)
XSS = "</title></script><script>alert(1)</script><img src=x onerror=alert(1)>"
PAGES = ("/ui", "/ui/sessions", "/ui/sessions/s-1", "/ui/keys", "/ui/visits")


@pytest.fixture
def visitor(api: Api) -> Browser:
    browser = Browser(api)
    assert browser.sign_in(api.key()).status_code == 303
    return browser


def administrator(api: Api) -> Browser:
    browser = Browser(api)
    browser.sign_in(api.key(Role.ADMINISTRATOR))
    return browser


def opened(api: Api, browser: Browser, **about: Any) -> Any:
    """A session of the coordinator who looks."""
    session = api.open(Dummy(), PARTS, **about)
    browser.sign_in(session.key)
    return session


ODD_ORIGINS = (
    "http://[",
    "http://]",
    b"http://\xe9",
    "http://[::1",
    "null",
    "//",
    "\x7f",
)


@pytest.mark.threat(133)
@pytest.mark.parametrize("origin", ODD_ORIGINS)
def test_an_odd_origin_is_another_site(api: Api, origin: Any) -> None:
    """Nobody has to show a key for that."""
    sent = Browser(api).post("/ui/sign-in", {"key": "none"}, Origin=origin)
    assert sent.status_code == 403


@pytest.mark.threat(133)
@pytest.mark.parametrize("key", ["%00", "a%00b", "%F0%9F%92%A9", "0" * 17])
@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_what_is_no_id_of_a_key_is_found_nowhere(
    each_api: Api, key: str, action: str
) -> None:
    browser = administrator(each_api)
    sent = browser.post(f"/ui/keys/{key}/{action}", {"token": browser.token()})
    assert sent.status_code in {404, 422}


# Signing in and out


@pytest.mark.parametrize("path", PAGES)
def test_who_shows_no_key_is_asked_for_one(api: Api, path: str) -> None:
    response = Browser(api).get(path)
    assert response.status_code == 303
    assert response.headers["location"] == "/ui/sign-in"


def test_a_sign_in_cookie_is_hidden_from_scripts_and_sites(
    api: Api,
) -> None:
    key = api.key()
    response = Browser(api).sign_in(key)
    cookie = response.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/ui"} <= set(cookie.split("; "))
    assert f"Max-Age={api.service.settings.visit_seconds}" in cookie
    assert key not in cookie
    over_tls = Browser(api).post("https://127.0.0.1/ui/sign-in", {"key": key})
    cookie = over_tls.headers["set-cookie"]
    assert cookie.startswith("__Host-")
    assert {"Secure", "Path=/"} <= set(cookie.split("; "))
    assert over_tls.headers["strict-transport-security"]


def test_only_a_trusted_proxy_can_state_that_tls_is_used(api: Api) -> None:
    """uvicorn rewrites the scheme of those; what else stands in a header is a word."""
    said = Browser(api).post(
        "/ui/sign-in", {"key": api.key()}, X_Forwarded_Proto="https"
    )
    assert "Secure" not in said.headers["set-cookie"]
    assert "strict-transport-security" not in said.headers


@pytest.mark.parametrize("trusted", ["127.0.0.1", "10.0.0.1"])
def test_the_web_server_believes_a_trusted_proxy_alone(api: Api, trusted: str) -> None:
    """Requests come from 127.0.0.1 here; `serve` names the setting's addresses."""
    behind = ProxyHeadersMiddleware(api.app, trusted_hosts=trusted)
    with httpx.Client(
        base_url="http://127.0.0.1", transport=InProcess(behind, api.portal)
    ) as client:
        said = Browser(replace(api, client=client)).post(
            "/ui/sign-in", {"key": api.key()}, X_Forwarded_Proto="https"
        )
    assert ("Secure" in said.headers["set-cookie"]) is (trusted == "127.0.0.1")


@pytest.mark.parametrize(
    "path", ["/healthz", "/v1/sessions", "/v1/nothing", "/nothing"]
)
def test_answers_for_programs_are_not_cached_or_sniffed(api: Api, path: str) -> None:
    answer = api.send("GET", path, api.key())
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.threat(115)
def test_a_key_or_a_visit_is_never_in_an_address(api: Api, visitor: Browser) -> None:
    session = opened(api, visitor)
    secret = visitor.cookies["coterie-visit"]
    for path in ("/ui/sessions", f"/ui/sessions/{session.id}"):
        shown = visitor.get(path).text
        links = re.findall(r'(?:href|src|action|data-hx-get)="([^"]*)"', shown)
        assert links
        for link in links:
            assert session.key not in link
            assert secret not in link
            assert visitor.token() not in link
        assert secret not in shown
    assert visitor.sign_in(session.key).headers["location"] == "/ui/sessions"
    assert visitor.get(f"/ui/sign-in?key={session.key}").status_code == 200
    assert Browser(api).get(f"/ui/sessions?key={session.key}").status_code == 303


@pytest.mark.threat(113)
def test_a_cookie_that_was_there_before_is_never_the_visits(api: Api) -> None:
    browser = Browser(api, {"coterie-visit": "chosen-by-somebody"})
    browser.sign_in(api.key())
    first = browser.cookies["coterie-visit"]
    assert first != "chosen-by-somebody"
    assert (
        Browser(api, {"coterie-visit": "chosen-by-somebody"})
        .get("/ui/sessions")
        .is_redirect
    )
    browser.sign_in(api.key())
    assert browser.cookies["coterie-visit"] != first
    assert Browser(api, {"coterie-visit": first}).get("/ui/sessions").is_redirect


def test_signing_out_ends_the_visit_and_not_only_the_cookie(
    api: Api, visitor: Browser
) -> None:
    kept = dict(visitor.cookies)
    left = visitor.post("/ui/sign-out", {"token": visitor.token()})
    assert left.headers["location"] == "/ui/sign-in"
    assert "Max-Age=0" in left.headers["set-cookie"]
    assert Browser(api, kept).get("/ui/sessions").is_redirect


def test_a_visit_ends_with_its_time_and_with_its_key(each_api: Api) -> None:
    browser = Browser(each_api)
    key_id, secret = _new_key(each_api)
    browser.sign_in(secret)
    assert browser.get("/ui/sessions").status_code == 200
    with each_api.service.database.write() as transaction:
        AuthService(transaction, each_api.clock).revoke(key_id)
    assert browser.get("/ui/sessions").is_redirect
    browser.sign_in(each_api.key())
    each_api.clock.forward(each_api.service.settings.visit_idle_seconds)
    assert browser.get("/ui/sessions").is_redirect


def _new_key(api: Api) -> tuple[str, str]:
    with api.service.database.write() as transaction:
        auth = AuthService(transaction, api.clock)
        return auth.create_key(Role.COORDINATOR, "tests", 366 * 86_400)


def test_a_wrong_key_and_a_partys_token_open_nothing(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join(A)
    browser = Browser(api)
    wrong = browser.sign_in("ck_nothing")
    assert wrong.status_code == 401
    assert "has expired or was revoked" in texts(wrong)
    refused = browser.sign_in(session.tokens[A])
    assert refused.status_code == 401
    assert browser.cookies == {}


def test_pages_are_there_only_where_the_setting_says_so(
    start_api: Any,
) -> None:
    with start_api(pages=False) as api:
        assert api.send("GET", "/ui").status_code == 404
        assert api.send("GET", "/ui/sign-in").status_code == 404


# What is shown


def test_a_list_says_who_is_awaited_and_since_when(
    each_api: Api,
) -> None:
    api = each_api
    browser = Browser(api)
    one = opened(api, browser, about={"title": "Wards"}).join(A)
    api.clock.forward(7200)
    browser.sign_in(one.key)
    said = texts(browser.get("/ui/sessions"))
    assert "Wards" in said
    assert B in said
    assert A not in said
    assert "2 hours ago" in said
    one.join(B)
    one.answer(A)
    assert B in texts(browser.get("/ui/sessions"))
    assert A not in texts(browser.get("/ui/sessions"))
    recruiting = browser.get("/ui/sessions?state=recruiting")
    assert "No session fits this filter" in texts(recruiting)


def test_coordinators_see_own_sessions_and_administrators_all(
    api: Api, visitor: Browser
) -> None:
    session = api.open(Dummy(), PARTS)
    hidden = visitor.get(f"/ui/sessions/{session.id}")
    unknown = visitor.get("/ui/sessions/s-unknown")
    assert hidden.status_code == unknown.status_code == 404
    without = re.compile("Request <code>[0-9a-f]+</code>|s-[a-z0-9-]+")
    assert without.sub("", hidden.text) == without.sub("", unknown.text)
    assert session.id not in visitor.get("/ui/sessions").text
    assert session.id in administrator(api).get("/ui/sessions").text


def test_a_session_page_shows_layout_times_result_and_chain(api: Api) -> None:
    session = api.open(LosslessFederated(n_clusters=2), THREE)
    browser = Browser(api)
    browser.sign_in(session.key)
    path = f"/ui/sessions/{session.id}"
    assert "Waiting for" in texts(browser.get(path))
    session.join()
    session.answer()
    assert 'data-hx-trigger="every 5s"' in browser.get(path).text
    session.finish()
    shown = browser.get(path)
    said = texts(shown)
    assert "the chain holds" in said
    assert "completed" in said
    assert "cluster 1" in said
    assert "data-hx-trigger" not in shown.text  # nothing more will come
    titles = [each.text for each in tree(shown).iter("title")]
    assert "When stages and rounds were open and who answered when" in titles
    assert {"opening", "closing"} <= set(titles)


def test_a_changed_audit_is_said_to_be_broken_with_its_line(api: Api) -> None:
    from analyst_service.storage.models import AuditLine

    browser = Browser(api)
    session = opened(api, browser).join()
    with api.service.database.write() as transaction:
        line = transaction.get(AuditLine, (session.id, 2))
        assert line is not None
        line.line = line.line.replace('"number":2', '"number":3')
    said = texts(browser.get(f"/ui/sessions/{session.id}"))
    assert "the chain is broken" in said
    assert "Line 2 does not follow" in said


def test_files_of_a_session_are_those_of_the_command_line(api: Api) -> None:
    browser = Browser(api)
    session = opened(api, browser).join()
    session.finish()
    path = f"/ui/sessions/{session.id}"
    audit = browser.get(f"{path}/audit.json")
    log = SignedLog.read(audit.content)
    assert log.key == api.service.institution.key
    assert log.entries()[-1]["event"]
    assert json.loads(browser.get(f"{path}/status.json").text)["state"] == "completed"
    report = browser.get(f"{path}/report.html")
    assert "This file holds no script" in report.text
    for each in (audit, report):
        assert each.headers["content-disposition"].startswith("attachment")


# What may be done


def test_a_session_is_waited_for_longer_and_cancelled(api: Api) -> None:
    browser = Browser(api)
    session = opened(api, browser)
    path, token = f"/ui/sessions/{session.id}", browser.token()
    before = session.status["deadline"]
    assert browser.post(f"{path}/deadline", {"token": token, "days": "7"}).is_redirect
    assert session.status["deadline"] > before
    for days in ("0", "-1", "1e3", "999999999999", "²"):
        wrong = browser.post(f"{path}/deadline", {"token": token, "days": days})
        assert wrong.status_code == 422
    assert browser.post(f"{path}/cancel", {"token": token}).is_redirect
    assert session.status["state"] == SessionState.CANCELLED
    over = browser.post(f"{path}/deadline", {"token": token, "days": "1"})
    assert over.status_code == 410
    assert "Stopped on request" in texts(over)


def test_a_number_of_clusters_is_chosen_on_the_page(api: Api) -> None:
    evaluation = {"n_clusters": [2, 3], "choose": "later"}
    session = api.open(LosslessFederated(n_clusters=3), THREE, evaluation=evaluation)
    browser = Browser(api)
    browser.sign_in(session.key)
    session.join()
    for _ in range(200):
        if session.status["state"] != "collecting":
            break
        session.answer()
    path, token = f"/ui/sessions/{session.id}", browser.token()
    shown = browser.get(path)
    assert "(!) Waits for you: " in shown.text
    assert "Suggested: " in texts(shown)
    assert "Parties get 2 clusters, for good." in texts(shown)
    parsed = tree(shown)
    choices = [f for f in parsed.iter("form") if "/choice" in f.attrib["action"]]
    folded = [f for each in parsed.iter("details") for f in each.iter("form")]
    assert len(choices) == 2
    assert all(each in folded for each in choices)
    assert browser.post(
        f"{path}/choice", {"token": token, "n_clusters": "2"}
    ).is_redirect
    assert [run["chosen"] for run in session.status["runs"]] == [True, False]


def test_only_an_administrator_manages_keys(api: Api) -> None:
    browser = administrator(api)
    token = browser.token()
    made = browser.post(
        "/ui/keys", {"token": token, "label": "Ward study", "role": "coordinator"}
    )
    [secret] = re.findall(r"ck_[\w-]+", texts(made))
    assert api.send("GET", "/v1/sessions", secret).status_code == 200
    assert secret not in browser.get("/ui/keys").text
    [key_id] = re.findall(
        r"/ui/keys/(\w+)/revoke", made.text.partition("Ward study</td>")[2]
    )[:1]
    renewed = browser.post(f"/ui/keys/{key_id}/rotate", {"token": token})
    [fresh] = re.findall(r"ck_[\w-]+", texts(renewed))
    assert fresh != secret
    assert browser.post(f"/ui/keys/{key_id}/revoke", {"token": token}).is_redirect
    assert api.send("GET", "/v1/sessions", fresh).status_code == 401
    other = Browser(api)
    other.sign_in(api.key())
    for path in ("/ui/keys", f"/ui/keys/{key_id}/rotate", f"/ui/keys/{key_id}/revoke"):
        assert other.post(path, {"token": other.token()}).status_code == 403
    assert other.get("/ui/keys").status_code == 403


# What another site cannot do


@pytest.mark.threat(110)
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},  # an old browser that says nothing of it
        {"Origin": "", "Sec_Fetch_Site": "cross-site"},
        {"Origin": "", "Sec_Fetch_Site": "same-site"},
    ],
)
def test_a_form_of_another_site_changes_nothing(
    api: Api, headers: dict[str, str]
) -> None:
    browser = Browser(api)
    session = opened(api, browser)
    path = f"/ui/sessions/{session.id}/cancel"
    refused = browser.post(path, {"token": browser.token()}, **headers)
    assert refused.status_code == 403
    assert session.status["state"] == SessionState.RECRUITING
    refused = Browser(api).post("/ui/sign-in", {"key": session.key}, **headers)
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers


@pytest.mark.threat(110)
def test_a_form_without_the_visits_token_changes_nothing(api: Api) -> None:
    browser, other = Browser(api), Browser(api)
    session = opened(api, browser)
    other.sign_in(api.key())
    path = f"/ui/sessions/{session.id}/cancel"
    own = browser.token()
    for token in ("", "0" * 64, other.token(), "ä"):
        assert browser.post(path, {"token": token}).status_code == 403
    assert browser.post(path, f"token={own}&token={own}").status_code == 400
    assert browser.post(path, "no form").status_code == 400
    assert browser.post(path, {"token": own} | _many(60)).status_code == 400
    assert browser.get(path).status_code == 404  # what changes something is no link
    assert session.status["state"] == SessionState.RECRUITING


def _many(number: int) -> dict[str, str]:
    return {f"field{each}": "x" for each in range(number)}


@pytest.mark.threat(111)
def test_no_page_may_be_shown_in_a_frame(visitor: Browser) -> None:
    """`Browser` holds every response against the headers; this names them once."""
    for path in (*PAGES, "/ui/sign-in", "/ui/nothing", "/ui/static/app.css"):
        headers = visitor.get(path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"


@pytest.mark.threat(114)
def test_what_others_wrote_is_shown_and_never_run(api: Api) -> None:
    browser = Browser(api)
    title = XSS[:100]
    session = opened(api, browser, about={"title": title, "purpose": XSS})
    reason = {"state": "declined", "reason": XSS}
    code = session.invite()[A]
    api.send("POST", "/v1/join/decline", json={"code": code, **reason})
    for path in ("/ui/sessions", f"/ui/sessions/{session.id}"):
        shown = browser.get(path)
        root = tree(shown)
        assert title in texts(shown)
        assert [each.attrib.get("src") for each in root.iter("script")] == [
            each.attrib["src"] for each in root.iter("script")
        ]
        assert not list(root.iter("img"))
    assert XSS in texts(browser.get(f"/ui/sessions/{session.id}"))


def test_pages_count_towards_the_limit_of_key_or_address(
    start_api: Any,
) -> None:
    with start_api(requests_per_second=0.001, request_burst=5) as api:
        strangers = [Browser(api).get("/ui/sign-in").status_code for _ in range(7)]
        assert strangers == [200] * 5 + [429] * 2


def test_keys_tell_when_they_were_last_used(each_api: Api) -> None:
    browser, key = administrator(each_api), each_api.key()
    assert texts(browser.get("/ui/keys")).count("never") == 2
    each_api.send("GET", "/v1/sessions", key)
    each_api.clock.forward(120)
    browser.get("/ui/sessions")
    Sweeper(each_api.service).turn()
    said = texts(browser.get("/ui/keys"))
    assert "never" not in said
    assert "00:00 UTC" in said
    assert "00:02 UTC" in said

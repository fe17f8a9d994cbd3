"""Every form of the analyst's pages is answered at an address to be asked for again."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from fastapi.routing import APIRoute
from support.browsing import ANSWER, FORM, Browser, texts

from analyst_service.app import PAGES
from analyst_service.auth.service import Role
from tests.service.test_page_fuzzing import opened

if TYPE_CHECKING:
    import httpx
    from support.in_process import Api

KEYS = "/ui/keys"
FORMS = sorted(
    route.path
    for router in PAGES
    for route in router.routes
    if isinstance(route, APIRoute) and "POST" in route.methods
)
JUNK = {
    "n_clusters": "x",
    "days": "-1",
    "role": "party",
    "label": "\x07",
    "key": "none",
}


def sent(browser: Browser, path: str, fields: dict[str, str]) -> httpx.Response:
    own = {"Content-Type": FORM, "Origin": str(browser.api.client.base_url)}
    return browser.sent(path, urlencode(fields), own)


def administrator(api: Api) -> Browser:
    browser = Browser(api)
    browser.sign_in(api.key(Role.ADMINISTRATOR))
    return browser


def held(browser: Browser) -> dict[str, Any]:
    """What the browser holds for the next page."""
    found: dict[str, Any] = json.loads(
        base64.urlsafe_b64decode(browser.cookies[ANSWER])
    )
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("token", ["own", "forged"])
@pytest.mark.parametrize("fields", [{}, JUNK], ids=["empty", "junk"])
def test_no_page_is_the_answer_to_a_form(
    api: Api, form: str, fields: dict[str, str], token: str
) -> None:
    """Shown again, a page sends nothing, and what was said is said once."""
    session, browser = opened(api), administrator(api)
    path = form.format(session_id=session.id, key_id="0" * 16, visit_id="0" * 16)
    own = browser.token() if token == "own" else token
    answer = sent(browser, path, {"token": own, **fields})
    assert answer.status_code == 303, texts(answer)
    page = answer.headers["location"]
    first = browser.get(page)
    assert ANSWER not in browser.cookies
    again = browser.get(page)
    assert first.status_code < 500
    assert again.status_code in {200, 303}
    assert 'role="alert"' not in again.text


def test_a_refusal_is_said_on_the_page_of_the_form(api: Api) -> None:
    browser = administrator(api)
    answer = sent(browser, KEYS, {"token": browser.token(), "role": "party"})
    assert answer.headers["location"] == KEYS
    said = browser.get(KEYS)
    assert said.status_code == 422
    assert "coordinator or administrator" in texts(said)
    assert browser.get(KEYS).status_code == 200


def test_a_new_secret_is_shown_once_and_stands_in_no_address(api: Api) -> None:
    browser = administrator(api)
    fields = {"token": browser.token(), "role": "coordinator", "label": "Ward study"}
    answer = sent(browser, KEYS, fields)
    secret = held(browser)["made"]
    assert secret not in answer.headers["location"]
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/ui", "Max-Age=60"} <= set(
        cookie.split("; ")
    )
    by_itself = browser.get(KEYS, HX_Request="true")
    assert secret not in by_itself.text
    assert secret in browser.get(KEYS).text
    assert secret not in browser.get(KEYS).text


def test_what_was_said_of_one_page_is_not_said_on_another(api: Api) -> None:
    browser = administrator(api)
    sent(browser, KEYS, {"token": browser.token(), "role": "party"})
    other = browser.get("/ui/sessions")
    assert other.status_code == 200
    assert 'role="alert"' not in other.text


@pytest.mark.parametrize(
    "held",
    [
        "none",
        "=" * 5000,
        base64.urlsafe_b64encode(b'{"page": "/ui/keys", "status": 999}').decode(),
        base64.urlsafe_b64encode(b'{"page": "/ui/keys", "to": "/"}').decode(),
        base64.urlsafe_b64encode(b"\xff").decode(),
    ],
)
def test_what_a_browser_made_up_is_not_said(api: Api, held: str) -> None:
    browser = administrator(api)
    browser.cookies[ANSWER] = held
    shown = browser.get(KEYS)
    assert shown.status_code == 200
    assert 'role="alert"' not in shown.text


def test_over_tls_an_answer_is_sent_over_tls_alone(api: Api) -> None:
    browser = Browser(api)
    answer = sent(browser, "https://127.0.0.1/ui/sign-in", {"key": "none"})
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"__Host-{ANSWER}=")
    assert {"Secure", "Path=/"} <= set(cookie.split("; "))

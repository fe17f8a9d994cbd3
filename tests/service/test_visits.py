"""Visits at ``/ui``: they end when nobody uses them, and their owner sees and ends them."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from support.browsing import Browser, texts

from analyst_service.auth.service import Role
from analyst_service.storage.models import BrowserVisit

if TYPE_CHECKING:
    from support.in_process import Api

IDLE = 1800
HOURS = 8 * 3600
PAGE = "/ui/visits"
BUTTON = re.compile(r"/ui/visits/(\w+)/end")


def signed_in(api: Api, key: str) -> Browser:
    browser = Browser(api)
    assert browser.sign_in(key).is_redirect
    return browser


def goes_on(browser: Browser, **headers: str) -> bool:
    return browser.get("/ui/sessions", **headers).status_code == 200


@pytest.mark.threat(174)
def test_a_visit_that_nobody_uses_ends(each_api: Api) -> None:
    browser = signed_in(each_api, each_api.key())
    for _ in range(3):
        each_api.clock.forward(IDLE - 120)
        assert goes_on(browser)
    each_api.clock.forward(IDLE)
    assert not goes_on(browser)


@pytest.mark.threat(174)
def test_a_page_that_asks_by_itself_keeps_no_visit(api: Api) -> None:
    browser = signed_in(api, api.key())
    for _ in range(6):
        assert goes_on(browser, HX_Request="true")
        api.clock.forward(IDLE / 6)
    assert not goes_on(browser)


@pytest.mark.threat(174)
def test_a_visit_that_is_used_all_day_ends_all_the_same(each_api: Api) -> None:
    browser = signed_in(each_api, each_api.key())
    for _ in range(HOURS // 900 - 1):
        each_api.clock.forward(900)
        assert goes_on(browser)
    each_api.clock.forward(900)
    assert not goes_on(browser)


def test_a_visit_of_an_earlier_release_gets_an_idle_end(api: Api) -> None:
    browser = signed_in(api, api.key())
    with api.service.database.write() as transaction:
        until = api.clock.now() + timedelta(seconds=HOURS)
        transaction.execute(sa.update(BrowserVisit).values(expires_at=until))
    assert goes_on(browser)
    api.clock.forward(IDLE)
    assert not goes_on(browser)


def test_most_pages_only_read(api: Api) -> None:
    browser = signed_in(api, api.key())
    before = api.stored()[0]["browser_visits"]
    for _ in range(5):
        api.clock.forward(10)
        assert goes_on(browser)
    assert api.stored()[0]["browser_visits"] == before


def test_a_visit_that_was_ended_is_not_put_off(each_api: Api) -> None:
    """By a page that was asked for before, and is answered after."""
    key = each_api.key()
    browser, other = signed_in(each_api, key), signed_in(each_api, key)
    token = other.token()
    [ended] = BUTTON.findall(other.get(PAGE).text)
    each_api.clock.forward(IDLE / 2)
    assert other.post(f"{PAGE}/{ended}/end", {"token": token}).is_redirect
    assert not goes_on(browser)
    with closing(each_api.service.database.engine.connect()) as connection:
        count = sa.select(sa.func.count()).select_from(BrowserVisit)
        assert connection.scalar(count) == 1


def test_own_visits_are_listed_and_each_can_be_ended(each_api: Api) -> None:
    key = each_api.key()
    first = signed_in(each_api, key)
    each_api.clock.forward(60)
    second = signed_in(each_api, key)
    stranger = signed_in(each_api, each_api.key(Role.ADMINISTRATOR))
    shown = second.get(PAGE)
    assert len(BUTTON.findall(shown.text)) == 1  # and "Sign out" of this one
    assert texts(shown).count("this one") == 1
    [its] = BUTTON.findall(shown.text)
    assert second.post(f"{PAGE}/{its}/end", {"token": second.token()}).is_redirect
    assert not goes_on(first)
    assert goes_on(second)
    assert goes_on(stranger)
    again = second.post(f"{PAGE}/{its}/end", {"token": second.token()})
    assert again.status_code == 404


@pytest.mark.threat(175)
def test_a_visit_of_somebody_else_is_not_shown_and_not_ended(each_api: Api) -> None:
    """An administrator revokes the key instead, which is written down."""
    key = each_api.key()
    victim, second = signed_in(each_api, key), signed_in(each_api, key)
    [its] = BUTTON.findall(second.get(PAGE).text)
    thief = signed_in(each_api, each_api.key(Role.ADMINISTRATOR))
    assert its not in thief.get(PAGE).text
    sent = thief.post(f"{PAGE}/{its}/end", {"token": thief.token()})
    assert sent.status_code == 404
    forged = second.post(f"{PAGE}/{its}/end", {"token": thief.token()})
    assert forged.status_code == 403
    assert goes_on(victim)


@pytest.mark.threat(175)
def test_the_page_of_visits_opens_none(api: Api) -> None:
    key = api.key()
    browsers = [signed_in(api, key) for _ in range(3)]
    shown = browsers[0].get(PAGE).text
    secrets = [secret for each in browsers for secret in each.cookies.values()]
    digests = [row[0] for row in api.stored()[0]["browser_visits"]]
    assert not [each for each in [*secrets, *digests, key] if each in shown]
    for name in BUTTON.findall(shown):
        assert not goes_on(Browser(api, {"coterie-visit": name}))


@pytest.mark.parametrize("name", ["0" * 15, "0" * 17, "%00", "G" * 16])
def test_what_is_no_id_of_a_visit_is_found_nowhere(each_api: Api, name: str) -> None:
    browser = signed_in(each_api, each_api.key())
    sent = browser.post(f"{PAGE}/{name}/end", {"token": browser.token()})
    assert sent.status_code == 404

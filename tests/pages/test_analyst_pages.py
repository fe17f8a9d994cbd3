"""The analyst's pages in a real browser: quiet under their policy, and for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser
from support.analyst_process import Analyst, Crowd, wait_for

from analyst_service.auth.service import AuthService, Role
from analyst_service.clock import SystemClock
from analyst_service.configuration.settings import Settings
from analyst_service.storage.database import Database
from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from tests.pages.looking import Look, looking

LONG = (
    "Wards with a very long title that continues and on, <b>in bold</b>, and "
    + "x" * 90
)
PARTS = simulation.split(
    np.random.default_rng(0).normal(size=(60, 3)), Layout.lattice(2, 2), seed=1
)


@pytest.fixture(scope="module")
def analyst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Analyst]:
    """One that has a finished session, one that waits, and one that was cancelled."""
    folder = tmp_path_factory.mktemp("analyst")
    with Analyst(folder / "data") as running:
        crowd = Crowd(
            running, folder / "homes", Dummy(n_clusters=3), PARTS.layout, PARTS.data
        )
        crowd.start()
        crowd.join()
        crowd.close()
        coordinator = running.coordinator(folder / "coordinator")
        with coordinator:
            for name in ("waiting", "gone"):
                coordinator.create_session(
                    LONG, Dummy(), layout=PARTS.layout, session_id=name
                )
            coordinator.session("gone").cancel()
        yield running


@pytest.fixture
def look(browser: Browser, analyst: Analyst) -> Iterator[Look]:
    with looking(browser, analyst.url) as window:
        sign_in(window, analyst.key)
        yield window


def sign_in(window: Look, key: str) -> None:
    page = window.at("/ui")
    page.get_by_label("Your key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/ui/sessions")


def administrators_key(analyst: Analyst) -> str:
    database = Database(Settings(data_dir=analyst.data_dir).database)
    with database.write() as transaction:
        auth = AuthService(transaction, SystemClock())
        _, key = auth.create_key(Role.ADMINISTRATOR, "operations", 86_400)
    database.close()
    return key


def test_every_page_is_quiet_and_readable(
    browser: Browser, analyst: Analyst, look: Look
) -> None:
    links = look.page.locator("tbody a")
    paths = [links.nth(n).get_attribute("href") for n in range(links.count())]
    assert len(paths) == 3
    for number, path in enumerate(("/ui/sessions", *paths)):
        look.at(str(path))
        look.page.evaluate(
            "document.querySelectorAll('details').forEach(d => d.open = true)"
        )
        look.seen(f"analyst-sessions-{number}")
    with looking(browser, analyst.url) as window:
        window.at("/ui/sign-in")
        window.seen("analyst-sign-in")
        sign_in(window, administrators_key(analyst))
        for path in ("/ui/keys", "/ui/visits"):
            window.at(path)
            window.seen(f"analyst-{path.rpartition('/')[2]}")


def test_pages_can_be_read_on_a_dark_screen(browser: Browser, analyst: Analyst) -> None:
    with looking(browser, analyst.url, color_scheme="dark") as window:
        sign_in(window, analyst.key)
        window.check()
        window.at("/ui/sessions/waiting")
        window.check()


def test_a_page_shows_what_happens_without_being_asked_again(
    analyst: Analyst, look: Look, tmp_path: Path
) -> None:
    """It is shown anew while it is open, and continues when the analyst was away."""
    page = look.at("/ui/sessions/waiting")
    state = page.locator("dl.glance dd").first
    assert state.inner_text() == "recruiting"
    page.locator("details summary", has_text="Cancel the session").click()
    for _ in range(2):
        with page.expect_response(page.url):
            pass  # it shows itself anew, and what somebody opened stays open
    page.wait_for_timeout(200)
    assert page.get_by_role("button", name="Cancel this session").is_visible()
    analyst.kill()
    analyst.start()
    with analyst.coordinator(tmp_path) as coordinator:
        coordinator.session("waiting").cancel()
    wait_for(lambda: state.inner_text() == "cancelled", 60)


def test_a_keyboard_is_enough(look: Look) -> None:
    page = look.at("/ui/sessions")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").startswith("Wards"):
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/sessions/*")


@pytest.mark.threat(112)
def test_a_page_of_another_host_name_has_no_visit(analyst: Analyst, look: Look) -> None:
    """A name that is made to lead here has no cookie of this address to send."""
    other = analyst.url.replace("127.0.0.1", "localhost")
    look.page.goto(f"{other}/ui/sessions")
    assert look.page.url.endswith("/ui/sign-in")


def test_the_api_is_read_and_tried_without_a_network(
    browser: Browser, analyst: Analyst
) -> None:
    with looking(browser, analyst.url) as window:
        page = window.at("/docs")
        page.get_by_role("button", name="Authorize").click()
        page.get_by_label("auth-bearer-value").fill(analyst.key)
        page.get_by_role("button", name="Apply credentials").click()
        page.get_by_role("button", name="Close").last.click()
        page.locator("#operations-sessions-list_sessions button").first.click()
        page.get_by_role("button", name="Try it out").click()
        page.get_by_role("button", name="Execute").click()
        answer = page.locator(".live-responses-table")
        answer.wait_for()
        assert "waiting" in answer.inner_text()
        assert window.messages == []
        assert window.elsewhere == []

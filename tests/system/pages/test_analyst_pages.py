"""The analyst's description of its API in a real browser."""

from pathlib import Path

from playwright.sync_api import Browser
from support.analyst_process import Analyst

from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from tests.system.pages.looking import looking


def test_the_api_is_read_and_tried_without_a_network(
    browser: Browser, tmp_path: Path
) -> None:
    with (
        Analyst(tmp_path / "data") as analyst,
        analyst.coordinator(tmp_path / "coordinator") as coordinator,
        looking(browser, analyst.url) as window,
    ):
        coordinator.create_session(
            "Wards", Dummy(), layout=Layout.lattice(2), session_id="waiting"
        )
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

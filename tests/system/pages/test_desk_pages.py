"""The desk in a real browser: by keys alone, and who gets its cookie."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page
from support.analyst_process import Analyst
from support.desks import DeskProcess

from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from tests.system.pages.looking import looking

FILE = "Station & <Söhne>.csv"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[DeskProcess]:
    home, tables = tmp_path / "home", tmp_path / "tables"
    home.mkdir()
    tables.mkdir()
    with DeskProcess(home, tables, tmp_path / "desk.log") as running:
        yield running


def reached(page: Page, what: str) -> None:
    """Press Tab until something is in focus whose label or text begins so."""
    for _ in range(60):
        page.keyboard.press("Tab")
        said = page.evaluate(
            "(e => (e.labels?.[0] ?? e).textContent.trim())(document.activeElement)"
        )
        if said.startswith(what):
            return
    raise AssertionError(what)


def entered(page: Page, what: str) -> None:
    reached(page, what)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def test_a_keyboard_alone_reaches_table_and_refusal(
    browser: Browser, analyst: Analyst, desk: DeskProcess, tmp_path: Path
) -> None:
    with analyst.coordinator(tmp_path / "coordinator") as coordinator:
        session = coordinator.create_session("Keys", Dummy(), Layout.lattice(1))
        [invitation] = session.invite().values()
        (desk.tables / FILE).write_text("patient,a\nP-001,1.5\nP-002,2.5\n")
        with looking(browser, desk.address) as look:
            page = look.at(desk.link.removeprefix(desk.address))
            reached(page, "The invitation")
            page.keyboard.insert_text(invitation)
            entered(page, "Show what it is for")
            entered(page, "Accept this sheet")
            entered(page, FILE)
            assert "How it was read" in page.inner_text("main")
            reached(page, "Decline")
            page.keyboard.press("Enter")
            reached(page, "Reason, in one line")
            page.keyboard.insert_text("no hands free")
            entered(page, "Decline")
            assert "no hands free" in page.inner_text("main")
            look.check()
        assert session.status().slots[0].reason == "no hands free"


class _Listening(BaseHTTPRequestHandler):
    """Another program of this machine that somebody's browser looks at."""

    def do_GET(self) -> None:
        self.server.cookies.append(self.headers.get("Cookie"))  # type: ignore[attr-defined]  # a server of this test
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


@pytest.mark.threat(112, 127)
def test_a_browser_sends_the_visit_cookie_to_the_desk_alone(
    browser: Browser, desk: DeskProcess
) -> None:
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), _Listening) as other,
        looking(browser, desk.address) as look,
    ):
        other.cookies = []  # type: ignore[attr-defined]  # a server of this test
        threading.Thread(target=other.serve_forever, daemon=True).start()
        page = look.at(desk.link.removeprefix(desk.address))
        mine = page.url
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        page.goto(f"http://127.0.0.1:{other.server_port}/parties/")
        assert set(other.cookies) == {None}  # type: ignore[attr-defined]  # a server of this test
        other.shutdown()
        page.goto(mine.replace("127.0.0.1", "localhost"))
        assert "This visit has ended" in page.inner_text("h1")
        page.goto(mine)
        assert page.inner_text("h1") == "Taking part"


@pytest.mark.threat(128)
def test_the_same_command_prints_the_address_and_a_new_link(desk: DeskProcess) -> None:
    said = desk.another_link()
    assert said["process"] == desk.process.pid
    assert said["link"].startswith(f"{desk.address}/open/")
    assert said["link"] != desk.link
    assert httpx.get(desk.link).status_code == 401
    assert httpx.get(said["link"]).status_code == 303

"""The desk in a real browser: from an invitation to labels without a typed command."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, Page
from support.analyst_process import Analyst, Crowd
from support.desks import DeskProcess, written
from support.terminal import read

from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from tests.system.pages.looking import WIDE, Look, looking, violations

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
CENTRES = np.array([[0.0, 0.0, 0.0], [4.0, 4.0, 0.0], [0.0, 5.0, 5.0]])
LAYOUT = Layout.lattice(3, 1)
OWN = "r1c1"
SESSION = "wards-north"
FILE = "Station & <Söhne>.csv"
DRAWN = {"desk", "desk-leaves"}


def rows() -> simulation.Split:
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(c, 0.6, size=(30, 3)) for c in CENTRES])
    return simulation.split(values.round(3), LAYOUT, seed=2)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    folder = tmp_path_factory.mktemp("desk-analyst")
    params = Dummy(n_clusters=3)
    with Analyst(folder / "data") as analyst:
        parts = rows()
        made = Crowd(
            analyst, folder / "homes", params, LAYOUT, parts.data, session=SESSION
        )
        yield made
        made.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[DeskProcess]:
    home, tables = tmp_path / "home", tmp_path / "tables"
    home.mkdir()
    tables.mkdir()
    with DeskProcess(home, tables, tmp_path / "desk.log") as running:
        yield running


def seen(look: Look, name: str) -> None:
    """All that a test can tell of a page; and its picture, where pictures are written."""
    look.seen(name)
    if name in DRAWN | {"desk-terms", "desk-table", "desk-result"}:
        look.page.emulate_media(color_scheme="dark")
        assert violations(look.page) == []
        look.page.emulate_media(media="print")
        on_paper(look.page)
        look.page.emulate_media(media="screen", color_scheme="light")
    if os.environ.get("COTERIE_WRITE_PICTURES") == "1" and name in DRAWN:
        PICTURES.mkdir(exist_ok=True)
        content = look.page.screenshot(clip={"x": 0, "y": 0, **WIDE})
        (PICTURES / f"{name}.png").write_bytes(content)


def on_paper(page: Page) -> None:
    """Dark ink on white, and nothing to click."""
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert page.locator("nav, button").filter(visible=True).count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE["width"]


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


NUMBER = "Do all parties see the same number?"
AGAIN = "Send this, and all else that the sheet lists?"


def pressed(page: Page, name: str) -> None:
    with page.expect_navigation():
        page.get_by_role("button", name=name, exact=True).click()


def opened(look: Look, desk: DeskProcess) -> Page:
    return look.at(desk.another_link()["link"].removeprefix(desk.address))


def chosen(look: Look) -> None:
    """From the first page to a table that fits."""
    page = look.page
    page.get_by_label("Or the path of its file").fill("own.invitation")
    pressed(page, "Read what it is for")
    seen(look, "desk-terms")
    pressed(page, "Accept this sheet")
    seen(look, "files")
    page.get_by_role("link", name=FILE).click()
    pressed(page, "Check it against the terms")
    assert "'patient' holds words" in page.inner_text(".notice.bad")
    seen(look, "problems")
    page.get_by_label("patient names the rows").check()
    page.get_by_label("patient is clustered").uncheck()
    pressed(page, "Check it against the terms")
    seen(look, "desk-table")


def withdrawn(look: Look) -> None:
    """Take consent back; shown again, the page says so, and sends no form again."""
    page = look.page
    page.locator("summary", has_text="Withdraw consent").click()
    pressed(page, "Withdraw consent")
    for _ in range(2):
        assert "You took your consent back on" in page.inner_text("main")
        assert not page.locator("summary", has_text="Withdraw consent").count()
        page.reload()
    seen(look, "withdrawn")


def answered(look: Look) -> list[str]:
    """Say yes until there are labels; return what was asked.

    Beside the safety number consent is taken back, so that a contribution is asked about.
    """
    page, asked = look.page, look.page.locator(".asked h2")
    kinds: list[str] = []
    while True:
        page.wait_for_selector(".asked, a:has-text('Your labels')", timeout=120_000)
        if not asked.count():
            return kinds
        kinds.append(asked.inner_text())
        if kinds.count(kinds[-1]) == 1 or page.get_by_text("positions").count():
            seen(
                look,
                "desk-leaves" if page.get_by_text("positions").count() else "asked",
            )
        if kinds == [NUMBER]:
            withdrawn(look)
        with page.expect_navigation():
            page.locator(".asked button[value=yes]").click()


def test_clicks_lead_a_party_from_invitation_to_labels(
    browser: Browser, crowd: Crowd, desk: DeskProcess, tmp_path: Path
) -> None:
    """On the way the browser is closed, and the desk is opened again by another link."""
    (desk.home / "policy.toml").write_text("least_known = 1\n")
    written(desk.tables / FILE, crowd.data[OWN])
    (desk.tables / "own.invitation").write_text(str(crowd.invitations[OWN]))
    with looking(browser, desk.address) as look:
        look.at(desk.link.removeprefix(desk.address))
        assert "token" not in look.page.url
        seen(look, "empty")
        chosen(look)
        pressed(look.page, "Rehearse it first")
        seen(look, "rehearsal")
        pressed(look.page, "Take part with this table")
        seen(look, "at-work")
    crowd.start(*(slot for slot in LAYOUT.names if slot != OWN))
    with looking(browser, desk.address, accept_downloads=True) as look:
        page = opened(look, desk)
        page.wait_for_selector("li.asks", timeout=180_000)
        seen(look, "desk")
        page.get_by_label("The invitation, as you got it").fill("half of an invi")
        with page.expect_response(page.url):
            pass  # it shows itself anew, and keeps what somebody types
        page.wait_for_timeout(200)
        typed = page.get_by_label("The invitation, as you got it").input_value()
        assert typed == "half of an invi"
        page.get_by_role("link", name=SESSION, exact=True).click()
        kinds = answered(look)
        assert kinds == [NUMBER, AGAIN]
        seen(look, "desk-result")
        with page.expect_download() as download:
            page.get_by_role("link", name="Your labels").click()
        path = tmp_path / "labels.csv"
        download.value.save_as(path)
    crowd.join()
    assert [int(line["label"]) for line in read(path)] == crowd.expected()[OWN]
    log = desk.log.read_text()
    assert "P-00" not in log
    assert "/open/" not in log
    assert str(crowd.invitations[OWN])[-40:] not in log


def test_a_keyboard_alone_reaches_table_and_refusal(
    browser: Browser, crowd: Crowd, desk: DeskProcess, tmp_path: Path
) -> None:
    with crowd.analyst.coordinator(tmp_path / "coordinator") as coordinator:
        session = coordinator.create_session("Keys", Dummy(), Layout.lattice(1))
        [invitation] = session.invite().values()
        written(desk.tables / FILE, crowd.data[OWN])
        with looking(browser, desk.address) as look:
            page = look.at(desk.link.removeprefix(desk.address))
            reached(page, "The invitation")
            page.keyboard.insert_text(invitation)
            entered(page, "Read what it is for")
            entered(page, "Accept this sheet")
            entered(page, FILE)
            assert "How it was read" in page.inner_text("main")
            reached(page, "Decline")
            page.keyboard.press("Enter")
            reached(page, "Why, in a line")
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

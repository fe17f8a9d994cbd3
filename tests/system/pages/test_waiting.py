"""A page that waits for a person says so in its title and, if allowed, aloud."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser

from coterie_pages.models import Frame, Refusal
from coterie_pages.pages import render_screen
from coterie_pages.served_pages import HEADERS, find_asset
from tests.system.pages.looking import looking

_SAID = """
window.said = [];
window.Notification = class {
  static permission = "granted";
  constructor(text) { window.said.push(text); }
};
Object.defineProperty(document, "hidden", { get: () => window.away === true });
"""


class _Desk(BaseHTTPRequestHandler):
    """A page that is shown anew each second, and begins to wait."""

    waits = False

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].rpartition("/")[2]
        found = find_asset(name)
        content, headers = b"", dict(HEADERS)
        if found is not None:
            content, headers = found.content, found.headers
        else:
            frame = Frame(root="", address="/", seconds=1, waits=type(self).waits)
            told = Refusal(title="Taking part", detail="It continues.")
            content = render_screen(told, frame).encode()
            headers["Content-Type"] = "text/html; charset=utf-8"
        self.send_response(200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    _Desk.waits = False
    with ThreadingHTTPServer(("127.0.0.1", 0), _Desk) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("away", [True, False])
def test_a_page_that_begins_to_wait_tells_who_looks_elsewhere(
    browser: Browser, address: str, *, away: bool
) -> None:
    with looking(browser, address) as look:
        look.page.add_init_script(_SAID)
        page = look.at("/")
        assert page.title() == "Taking part – desk"
        page.evaluate(f"window.away = {str(away).lower()}")
        _Desk.waits = True
        page.wait_for_selector("#page[data-waits]")
        page.wait_for_timeout(2_500)  # it is said once, however often it is shown
        assert page.title() == "(!) Waits for you: Taking part – desk"
        assert page.evaluate("window.said") == ["Coterie waits for you"] * away
        assert look.messages == []
        assert look.elsewhere == []

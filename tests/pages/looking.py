"""A page in a real browser, and everything that it complains of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

WIDE = {"width": 1100, "height": 900}
_SERIOUS = {"serious", "critical"}


class Look:
    """A window onto the pages of one address."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.messages: list[str] = []
        self.elsewhere: list[str] = []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if not url.startswith((self.address, "data:")):
            self.elsewhere.append(url)

    def at(self, path: str) -> Page:
        """Open a path of the address."""
        self.page.goto(f"{self.address}{path}")
        return self.page

    def check(self) -> None:
        """Nothing was refused or said, nothing went elsewhere, and all can read it."""
        assert self.messages == []
        assert self.elsewhere == []
        assert violations(self.page) == []
        width = self.page.evaluate("document.documentElement.scrollWidth")
        assert width <= self.page.evaluate("document.documentElement.clientWidth")


def violations(page: Page) -> list[str]:
    """What axe-core finds serious on a page."""
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in found
        if each["impact"] in _SERIOUS
    ]


@contextmanager
def looking(browser: Browser, address: str, **how: Any) -> Iterator[Look]:
    """Open a window with its own cookies."""
    context = browser.new_context(**({"viewport": WIDE} | how))
    try:
        yield Look(context.new_page(), address)
    finally:
        context.close()

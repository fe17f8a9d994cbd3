"""A page in a real browser, and everything that it complains of.

``LOOK=FOLDER pytest tests/system/pages`` writes a picture of every page that is
looked at: in three widths, light and dark.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

WIDE: Any = {"width": 1100, "height": 900}
WIDTHS: Final = (390, 768, 1280)
"""Points: a telephone, a tablet, a desk."""
_SERIOUS = {"serious", "critical"}
_CUT = """
() => [...document.querySelectorAll(
  "svg, .typed input, .typed select, .confirm summary"
)].filter(each => {
  const right = each.getBoundingClientRect().right;
  const box = each.closest(".wide")?.getBoundingClientRect().right ?? Infinity;
  return right > Math.min(box, document.documentElement.clientWidth) + 1;
}).map(each => each.getAttribute("aria-labelledby") ?? each.outerHTML.slice(0, 80))
"""
_COUNT = """
addEventListener("pointerdown", () => countClicks(1), true);
addEventListener("change", each => {
  if (each.target.matches("select")) countClicks(2);
}, true);
"""


class Look:
    """A window onto the pages of one address.

    clicks: how often the person pressed; a choice from a list counts as two.
    """

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.clicks = 0
        page.context.expose_function("countClicks", self._count)
        page.context.add_init_script(_COUNT)
        self.address = address
        self.messages: list[str] = []
        self.elsewhere: list[str] = []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))

    def _count(self, clicks: int) -> None:
        self.clicks += clicks

    def _asked(self, url: str) -> None:
        if not url.startswith((self.address, "data:")):
            self.elsewhere.append(url)

    def at(self, path: str) -> Page:
        self.page.goto(f"{self.address}{path}")
        return self.page

    def check(self) -> None:
        """Nothing was refused or said, nothing went elsewhere, and all can read it."""
        assert self.messages == []
        assert self.elsewhere == []
        assert violations(self.page) == []
        fits(self.page)

    def seen(self, name: str) -> None:
        """Check a page, and write its pictures where somebody wants to look at them."""
        if folder := os.environ.get("LOOK"):
            take_pictures(self.page, f"{folder}/{name}")
        self.check()


def fits(page: Page) -> None:
    """Nothing is wider than the window; pictures and what is typed into are in sight."""
    before = page.viewport_size
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        cut = page.evaluate(_CUT)
        assert not cut, (width, cut)
    page.set_viewport_size(before or WIDE)


def take_pictures(page: Page, stem: str) -> None:
    """Write a page as a person sees it, all of it, in each width, light and dark."""
    before = page.viewport_size
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{stem}-{width}-{scheme}.png", full_page=True)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(before or WIDE)


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
    context = browser.new_context(**({"viewport": WIDE} | how))
    try:
        yield Look(context.new_page(), address)
    finally:
        context.close()

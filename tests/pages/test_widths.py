"""No picture is cut at the right, whatever the width of the window."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser
from support import page_models

from coterie_pages.pages import page

_CUT = """
() => [...document.querySelectorAll("svg")].filter(
  each => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1
       || each.closest(".wide")?.scrollWidth > each.closest(".wide")?.clientWidth + 1
).map(each => each.getAttribute("aria-labelledby") ?? each.outerHTML.slice(0, 80))
"""


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_pictures_fit_the_window(browser: Browser, width: int) -> None:
    for model in (page_models.run_report(), page_models.session_report()):
        shown = browser.new_page(viewport={"width": width, "height": 900})
        shown.set_content(page(model))
        shown.evaluate(
            "document.querySelectorAll('details').forEach(e => e.open = true)"
        )
        assert shown.locator("svg").count() > 0
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.evaluate(_CUT) == []
        shown.close()

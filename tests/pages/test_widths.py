"""No picture is cut at the right, whatever the width of the window."""

from __future__ import annotations

import os
from typing import Any

import pytest
from playwright.sync_api import Browser
from support import page_models

from coterie_pages.pages import page
from tests.pages.looking import WIDE, fits, take_pictures

MODELS: dict[str, Any] = {
    "party-report": page_models.run_report(),
    "session-report": page_models.session_report(),
    "terms-sheet": page_models.sheet(),
}


@pytest.mark.parametrize("name", MODELS)
def test_pictures_fit_the_window(browser: Browser, name: str) -> None:
    shown = browser.new_page(viewport=WIDE)
    shown.set_content(page(MODELS[name]))
    shown.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert (shown.locator("svg").count() > 0) == name.endswith("report")
    fits(shown)
    if folder := os.environ.get("LOOK"):
        take_pictures(shown, f"{folder}/{name}")
    shown.close()

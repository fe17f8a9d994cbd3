"""What people print: how many pages it takes, and what stands on the page to sign."""

from __future__ import annotations

import re
from pathlib import Path

from lxml import html
from playwright.sync_api import Browser

MOST_PAGES = 3
MOST_WORDS = 700


def count_pages(browser: Browser, path: Path, *, annex: bool = False) -> int:
    """Return on how many sheets of A4 a report is printed, with or without its annex."""
    context = browser.new_context()
    try:
        shown = context.new_page()
        shown.goto(path.as_uri())
        if annex:
            shown.locator("details.annex > summary").click()
        printed = shown.pdf(format="A4", prefer_css_page_size=True)
    finally:
        context.close()
    return len(re.findall(rb"/Type\s*/Page[^s]", printed))


def page_to_sign(sheet: str) -> str:
    """Return the text of the page that is signed, from a sheet with its annex."""
    tree = html.fromstring(sheet)
    parts = tree.xpath("//header|//section[@class='one-page']")
    return " ".join(" ".join(part.itertext()) for part in parts)

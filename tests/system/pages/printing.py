"""How many pages it takes to print what people print."""

import re
from pathlib import Path

from playwright.sync_api import Browser

MOST_PAGES = 3


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

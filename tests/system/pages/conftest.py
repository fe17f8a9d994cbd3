"""A browser without a network, for pages that need none."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright
from support.needs import CHROMIUM, leave_out


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The chromium of this machine; Playwright drives it and brings none."""
    # the first is the same without what only a person at a window needs
    found = map(shutil.which, ("chromium-headless-shell", "chromium"))
    path = next(filter(None, found), None)
    if path is None:
        leave_out(CHROMIUM, "it is not on the PATH")
    with sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=path,
            args=[
                "--no-sandbox",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
            ],
        )
        yield running
        running.close()

"""The link of the desk on a machine that others work at too."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
import pytest
from support.analyst_process import COTERIE, wait_for
from support.browsing import texts

NOBODY = 65_534
OPENER = """#!/bin/sh
printf '%s' "$*" > "$COTERIE_TEST_OPENED.new" && mv "$COTERIE_TEST_OPENED.new" "$COTERIE_TEST_OPENED"
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.threat(132)
def test_another_account_sees_no_link_of_the_desk(shared: Path) -> None:
    """What opens the browser stands in the list of processes: it holds no link."""
    opener, opened = shared / "browser", shared / "opened"
    opener.write_text(OPENER)
    opener.chmod(0o755)
    environment = os.environ | {
        "BROWSER": str(opener),
        "COTERIE_TEST_OPENED": str(opened),
    }
    words = ["ui", "--home", str(shared / "home"), "--tables", str(shared)]
    with subprocess.Popen(
        [COTERIE, *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as desk:
        try:
            wait_for(opened.exists)
            address = opened.read_text()
            page = Path(url2pathname(urlsplit(address).path))
            assert address == page.as_uri()
            assert page.stat().st_mode & 0o777 == 0o600
            if os.getuid() == 0:  # another account exists to try it
                read = subprocess.run(
                    ["cat", page], check=False, user=NOBODY, stderr=subprocess.DEVNULL
                )
                assert read.returncode != 0
            link = page.read_text().partition('<a href="')[2].partition('"')[0]
            with httpx.Client(follow_redirects=True) as browser:
                assert "Taking part" in texts(browser.get(link))
        finally:
            desk.send_signal(signal.SIGINT)

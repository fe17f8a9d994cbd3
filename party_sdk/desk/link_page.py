"""A page that takes the browser to the desk, so that no command line holds the link.

Every account of a machine reads the command lines of all processes, a browser's too. A
file of mode 0600 is read by its owner alone.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

from party_sdk.home.files import private_folder, write_private

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>Desk</title>
<a href="{link}">Open the desk</a>
</html>
"""


def write_link_page(home: Path, link: str) -> Path:
    """Write the page that leads to a desk's link; only its owner reads it.

    home: the folder of parties and coordinator.
    link: the address that opens the desk once.

    Returns the file, which the next link replaces.
    """
    page = private_folder(home) / "desk-link.html"
    write_private(page, _PAGE.format(link=escape(link)).encode())
    return page.absolute()

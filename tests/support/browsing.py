"""What a page says, read as another parser reads it."""

from xml.etree import ElementTree

import httpx
from lxml import html

FORM = "application/x-www-form-urlencoded"
MOST_WORDS = 700
"""How many words the page to sign may have at most."""


def tree(response: httpx.Response) -> ElementTree.Element:
    """The page as another parser reads it: it is well-formed XML too."""
    first, _, rest = response.text.partition("\n")
    assert first == "<!DOCTYPE html>"
    return ElementTree.fromstring(rest)


def texts(response: httpx.Response) -> str:
    return " ".join(tree(response).itertext())


def page_to_sign(sheet: str) -> str:
    """Return the text of the page that is signed, from a sheet with its annex."""
    parts = html.fromstring(sheet).xpath("//header|//section[@class='one-page']")
    return " ".join(" ".join(part.itertext()) for part in parts)

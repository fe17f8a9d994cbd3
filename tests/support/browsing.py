"""What a page says, read as another parser reads it."""

from __future__ import annotations

from xml.etree import ElementTree

import httpx

FORM = "application/x-www-form-urlencoded"


def tree(response: httpx.Response) -> ElementTree.Element:
    """The page as another parser reads it: it is well-formed XML too."""
    first, _, rest = response.text.partition("\n")
    assert first == "<!DOCTYPE html>"
    return ElementTree.fromstring(rest)


def texts(response: httpx.Response) -> str:
    return " ".join(tree(response).itertext())

"""A form is answered by the way to a page, so that a page shown again sends no form again.

Post, redirect, get: what a form came to is kept, and shown at the address of a page. How
it is kept is each shell's own: a desk is one process, an analyst may be several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

SEE_OTHER: Final = 303
"""The status that leads from a form to a page, which is asked for by GET."""


def page_above(path: str, is_page: Callable[[str], bool]) -> str:
    """Return the page on which an answer is shown: the nearest one from a form's path up.

    path: where the form was sent, without a query.
    is_page: whether a path is one that people look at.
    """
    while path.strip("/") and not is_page(path):
        path = path.rpartition("/")[0]
    return path or "/"


def is_page(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether an answer would be shown as a page: no way elsewhere, and no file.

    headers: with names in small letters.
    """
    return (
        not 300 <= status < 400
        and headers.get("content-type", "").startswith("text/html")
        and "content-disposition" not in headers
    )

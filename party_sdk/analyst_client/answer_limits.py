"""What an answer of an analyst may take: bytes by route, and time.

Otherwise anyone who answers at an address could fill the memory of this machine, or keep
it waiting without end. All requests of the SDK are sent and read by :func:`fetch`; how
long an answer may take is checked where its bytes come in
(:mod:`party_sdk.analyst_client.connections`).
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Final

import httpx

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.common.limits import BODY_BYTES, JSON_BYTES

HEAD_SECONDS: Final = 60.0
"""For how long an answer may take from the end of the request to its first byte of
content; and its content, before its rate counts. A held request takes 20 of them."""

LEAST_RATE: Final = 16 << 10
"""Bytes per second of content; an analyst asks the same of what it is sent."""

DOCUMENT_BYTES: Final = 16 * JSON_BYTES
"""Largest answer of JSON. The terms are most of it: one byte of what opens a session takes
at most six where the text of the terms stands in a document."""

MOST_PAGES: Final = 10_000
"""Pages of one list: ten million lines of an audit, half a million sessions."""

_OF_ARRAYS: Final = re.compile(r"/sessions/[^/]+/(task|result|profiles|rounds/.+)$")
_CGROUP: Final = Path("/sys/fs/cgroup/memory.max")


class LateAnswer(httpx.ReadTimeout):
    """An answer that has not ended when it had to."""

    def __init__(self) -> None:
        super().__init__("no whole answer in time")


@cache
def arrays_bytes() -> int:
    """Return the largest answer of arrays: half of what this machine has of memory.

    Arrays grow with the rows of all parties, and are read into memory: more could not be
    used here. Of a container its own memory counts. Where a system does not tell, it is
    the largest contribution that an analyst takes by default.
    """
    found = []
    with suppress(AttributeError, OSError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # "max" where there is no limit
        found.append(int(_CGROUP.read_text()))
    return min(found) // 2 if found else BODY_BYTES


def most_bytes(path: str) -> int:
    """Return how many bytes the answer to a request of this path may have."""
    return arrays_bytes() if _OF_ARRAYS.search(path) else DOCUMENT_BYTES


class PageCount:
    """Counts the pages of one list, which no analyst may make endless."""

    def __init__(self) -> None:
        self._n_pages = self._n_bytes = 0

    def add(self, n_lines: int, n_bytes: int) -> None:
        """Count a page behind which there is another one.

        Raises GuardRefused if it holds no line, or the list is too long to be one.
        """
        self._n_pages += 1
        self._n_bytes += n_bytes
        if n_lines and self._n_pages < MOST_PAGES and self._n_bytes < arrays_bytes():
            return
        raise GuardRefused(
            f"The analyst's list has no end: {self._n_pages:,} pages, "
            f"{self._n_bytes >> 20:,} MiB.",
            remedy="Nothing of it was kept. Tell the administrator of the analyst.",
        )


def fetch(http: httpx.Client, request: httpx.Request) -> httpx.Response:
    """Send a request and return its answer, read as far as its route allows.

    Raises GuardRefused if the answer is larger, or compressed.
    Raises httpx.TransportError if no whole answer came, or not in time.
    """
    request.headers["Accept-Encoding"] = "identity"
    answer = http.send(request, stream=True)
    try:
        content = _read(answer, request.url)
    finally:
        answer.close()
    return httpx.Response(
        answer.status_code, headers=answer.headers, content=content, request=request
    )


def _read(answer: httpx.Response, url: httpx.URL) -> bytes:
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise GuardRefused(
            f"The answer of {url.host} came compressed, which was not asked for.",
            remedy="Ask the administrator of the analyst, or of a proxy on the way, to "
            "send answers as they are (no Content-Encoding).",
        )
    most = most_bytes(url.path)
    announced = answer.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > most:
        raise _too_large(url, most)
    content = BytesIO()  # hands out its bytes without a copy
    for piece in answer.iter_bytes():
        if content.tell() + len(piece) > most:
            raise _too_large(url, most)
        content.write(piece)
    return content.getvalue()


def _too_large(url: httpx.URL, most: int) -> GuardRefused:
    said = f"The answer of {url.host} has more than {most >> 20:,} MiB"
    if most == DOCUMENT_BYTES:
        return GuardRefused(
            f"{said}, and no document of an analyst has.",
            remedy="Nothing of it was kept. Check the address; if it is right, tell the "
            "coordinator.",
        )
    return GuardRefused(
        f"{said}, half of the memory of this machine.",
        remedy="Nothing of it was kept. If the session is that large, take part from a "
        "machine with more memory; if not, tell the coordinator.",
    )

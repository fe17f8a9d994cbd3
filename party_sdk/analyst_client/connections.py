"""HTTP connections to an analyst, with limits on the size and duration of responses.

Without limits, a server could exhaust this machine's memory or make it wait forever.
All requests of the SDK go through :func:`fetch`. The timeout of httpx restarts with
each byte received. Here, one deadline covers the proxy handshake, the headers and the
content.
"""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from io import BytesIO
from math import inf
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.common.limits import BODY_BYTES, JSON_BYTES
from clustering_protocols.wire.answers import AuditPage, SessionPage
from clustering_protocols.wire.http_headers import is_this_machine

HEAD_SECONDS: Final = 60.0
"""The maximum time from the end of a request to its response headers, and the allowance on
top of the minimum rate for the content. The analyst may hold a request for 20 seconds."""

MIN_BYTES_PER_SECOND: Final = 16 << 10
"""The minimum rate of the content; the analyst requires the same rate of an upload."""

DOCUMENT_BYTES: Final = 16 * JSON_BYTES
"""The maximum size of a JSON response. It consists mostly of the terms, which JSON escaping
makes at most six times longer."""

MAX_PAGES: Final = 10_000
"""The maximum number of pages of a list: ten million audit lines, or 500,000 sessions."""

_ARRAY_ROUTES: Final = re.compile(r"/sessions/[^/]+/(task|result|profiles|rounds/.+)$")
_CGROUP: Final = Path("/sys/fs/cgroup/memory.max")
_Page = TypeVar("_Page", AuditPage, SessionPage)


class LateAnswer(httpx.ReadTimeout):
    """Raised if the complete response did not arrive in time."""

    def __init__(self) -> None:
        super().__init__("no complete answer in time")


@cache
def max_array_bytes() -> int:
    """Return the maximum size of an array response in bytes.

    The maximum is half of the memory of this machine or container, because arrays are
    read into memory. If the memory is unknown, it is the default size limit of a
    contribution.
    """
    sizes = []
    with suppress(AttributeError, OSError, ValueError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # the file contains "max" if there is no limit
        sizes.append(int(_CGROUP.read_text()))
    return min(sizes) // 2 if sizes else BODY_BYTES


def max_answer_bytes(path: str) -> int:
    """Return the maximum number of bytes in a response to a request for this path."""
    return max_array_bytes() if _ARRAY_ROUTES.search(path) else DOCUMENT_BYTES


def iterate_pages(
    fetch_page: Callable[[Any], _Page], first: Any, items: str
) -> Iterator[_Page]:
    """Yield the pages of a paginated list, up to a maximum length.

    fetch_page: called with ``first``, and then with the ``next`` of the latest page
        until that is None.
    items: the name of the field with the items of a page.

    Raises GuardRefused if a page before the last one is empty, or if the list has become
    too long.
    """
    after: Any = first
    n_pages = n_bytes = 0
    while after is not None:
        page = fetch_page(after)
        yield page
        after = page.next
        n_pages += 1
        n_bytes += len(page.model_dump_json())
        is_too_long = n_pages >= MAX_PAGES or n_bytes >= max_array_bytes()
        if after is not None and (is_too_long or not getattr(page, items)):
            raise GuardRefused(
                f"The analyst's list has no end: {n_pages:,} pages, "
                f"{n_bytes >> 20:,} MiB.",
                remedy="None of it was stored. Tell the administrator of the analyst.",
            )


def fetch(http: httpx.Client, request: httpx.Request) -> httpx.Response:
    """Send a request and return the complete response, within the limits of its route.

    Raises GuardRefused if the response is too large or compressed. Raises
    httpx.TransportError if no complete response arrives in time.
    """
    request.headers["Accept-Encoding"] = "identity"
    answer = http.send(request, stream=True)
    try:
        content = _read_limited(answer, request.url)
    finally:
        answer.close()
    return httpx.Response(
        answer.status_code, headers=answer.headers, content=content, request=request
    )


def _read_limited(answer: httpx.Response, url: httpx.URL) -> bytes:
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise GuardRefused(
            f"The answer from {url.host} is compressed, although this party did not request that.",
            remedy="Ask the administrator of the analyst, or of a proxy in between, to "
            "send answers uncompressed (no Content-Encoding).",
        )
    limit = max_answer_bytes(url.path)
    announced = answer.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise _response_too_large(url, limit)
    content = BytesIO()  # getvalue() returns the bytes without copying them
    for piece in answer.iter_bytes():
        if content.tell() + len(piece) > limit:
            raise _response_too_large(url, limit)
        content.write(piece)
    return content.getvalue()


def _response_too_large(url: httpx.URL, limit: int) -> GuardRefused:
    sentence = f"The answer from {url.host} has more than {limit >> 20:,} MiB"
    if limit == DOCUMENT_BYTES:
        return GuardRefused(
            f"{sentence}, more than any document of an analyst.",
            remedy="None of it was stored. Check the address; if it is right, tell the "
            "coordinator.",
        )
    return GuardRefused(
        f"{sentence}, half of the memory of this machine.",
        remedy="None of it was stored. If the session is that large, take part from a "
        "machine with more memory; if not, tell the coordinator.",
    )


def proxy_of(url: str) -> str | None:
    """Return the proxy URL that the environment sets for ``url``, or None.

    A request to this machine itself never uses a proxy: such a request is plain HTTP,
    so the proxy could read its key.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_this_machine(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    return address if address is None or "://" in address else f"http://{address}"


class TimedTransport(httpx.HTTPTransport):
    """An httpx transport whose connections enforce a deadline on the response."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._pool._network_backend = _TimedNetwork()  # noqa: SLF001  httpx has no option

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its response before the content is read."""
        answer = super().handle_request(request)
        # raises AttributeError if the connection is not a _TimedStream
        answer.extensions["network_stream"].begin_content()
        return answer


class _TimedNetwork(httpcore.NetworkBackend):
    """An httpcore network backend that opens connections with a deadline."""

    def __init__(self) -> None:
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        return _TimedStream(
            self._plain.connect_tcp(host, port, timeout, local_address, socket_options)
        )


class _TimedStream(httpcore.NetworkStream):
    """A connection whose deadline is reset by each write, and when the content begins."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner
        self._deadline = inf
        self._rate = inf

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes, and set the deadline for the response headers."""
        self._inner.write(buffer, timeout)
        self._restart_clock(inf)

    def begin_content(self) -> None:
        self._restart_clock(MIN_BYTES_PER_SECOND)

    def _restart_clock(self, rate: float) -> None:
        self._deadline = time.monotonic() + HEAD_SECONDS
        self._rate = rate

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes. Raises :class:`LateAnswer` after the deadline."""
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0:
            raise LateAnswer
        longest = seconds_left if timeout is None else min(seconds_left, timeout)
        try:
            data = self._inner.read(max_bytes, None if longest == inf else longest)
        except httpcore.ReadTimeout:
            raise LateAnswer from None
        self._deadline += len(data) / self._rate
        return data

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return _TimedStream(
            self._inner.start_tls(ssl_context, server_hostname, timeout)
        )

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

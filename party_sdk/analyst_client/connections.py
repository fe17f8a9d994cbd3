"""Connections to an analyst, with limits on the size and duration of its answers.

Without limits a server could fill this machine's memory, or keep it waiting forever. All
requests of the SDK go through :func:`fetch`. A timeout of httpx starts again with each
byte; here one clock runs from the end of a request, and covers a proxy's handshake, the
headers and the content.
"""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from io import BytesIO
from math import inf
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from clustering_protocols.common.errors import GuardRefused, InvalidParameters
from clustering_protocols.common.limits import BODY_BYTES, JSON_BYTES
from clustering_protocols.wire.http_headers import is_this_machine

HEAD_SECONDS: Final = 60.0
"""Longest time from the end of a request to the first byte of content, and from there until
the slowest rate applies. For up to 20 seconds of this time the analyst holds a request."""

MIN_BYTES_PER_SECOND: Final = 16 << 10
"""Slowest rate of content; the analyst demands the same of an upload."""

DOCUMENT_BYTES: Final = 16 * JSON_BYTES
"""Largest answer of JSON. Most of it is the terms, which escaping makes at most six times
as long."""

MAX_PAGES: Final = 10_000
"""Most pages of a list: enough for ten million audit lines, or half a million sessions."""

_ARRAY_ROUTES: Final = re.compile(r"/sessions/[^/]+/(task|result|profiles|rounds/.+)$")
_CGROUP: Final = Path("/sys/fs/cgroup/memory.max")


class LateAnswer(httpx.ReadTimeout):
    """The whole answer did not arrive in time."""

    def __init__(self) -> None:
        super().__init__("no whole answer in time")


@cache
def max_array_bytes() -> int:
    """Return the largest answer of arrays: half of the memory of this machine or container.

    Arrays grow with the rows of all parties and are read into memory. On a system that
    does not report its memory, the limit is that of a contribution by default.
    """
    sizes = []
    with suppress(AttributeError, OSError, ValueError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # the file says "max" if there is no limit
        sizes.append(int(_CGROUP.read_text()))
    return min(sizes) // 2 if sizes else BODY_BYTES


def max_answer_bytes(path: str) -> int:
    """Return how many bytes the answer to a request for this path may have."""
    return max_array_bytes() if _ARRAY_ROUTES.search(path) else DOCUMENT_BYTES


class PageCount:
    """Counts the pages of one list, so that no analyst can make it endless."""

    def __init__(self) -> None:
        self._n_pages = self._n_bytes = 0

    def add(self, n_lines: int, n_bytes: int) -> None:
        """Count a page that has a successor.

        Raises GuardRefused if it holds no line, or the list is too long.
        """
        self._n_pages += 1
        self._n_bytes += n_bytes
        if n_lines and self._n_pages < MAX_PAGES and self._n_bytes < max_array_bytes():
            return
        raise GuardRefused(
            f"The analyst's list has no end: {self._n_pages:,} pages, "
            f"{self._n_bytes >> 20:,} MiB.",
            remedy="Nothing of it was stored. Tell the administrator of the analyst.",
        )


def fetch(http: httpx.Client, request: httpx.Request) -> httpx.Response:
    """Send a request and return its answer, within the limits of its route.

    Raises GuardRefused if the answer is too large, or compressed.
    Raises httpx.TransportError if no complete answer came in time.
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
            f"The answer of {url.host} is compressed, although this party did not request that.",
            remedy="Ask the administrator of the analyst, or of a proxy on the way, to "
            "send answers as they are (no Content-Encoding).",
        )
    limit = max_answer_bytes(url.path)
    announced = answer.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise _too_large(url, limit)
    content = BytesIO()  # hands out its bytes without a copy
    for piece in answer.iter_bytes():
        if content.tell() + len(piece) > limit:
            raise _too_large(url, limit)
        content.write(piece)
    return content.getvalue()


def _too_large(url: httpx.URL, limit: int) -> GuardRefused:
    sentence = f"The answer of {url.host} has more than {limit >> 20:,} MiB"
    if limit == DOCUMENT_BYTES:
        return GuardRefused(
            f"{sentence}, which no document of an analyst has.",
            remedy="Nothing of it was kept. Check the address; if it is right, tell the "
            "coordinator.",
        )
    return GuardRefused(
        f"{sentence}, half of the memory of this machine.",
        remedy="Nothing of it was kept. If the session is that large, take part from a "
        "machine with more memory; if not, tell the coordinator.",
    )


def proxy_of(url: str) -> str | None:
    """Return the address of the environment's proxy for an address, or None.

    This machine is never reached through a proxy: a request to it is plain HTTP, so the
    proxy would read the key.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_this_machine(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    return address if address is None or "://" in address else f"http://{address}"


PROXY_REFUSES: Final = "The proxy asks for a name and a password (407)."
PROXY_REMEDY: Final = (
    "Write them into the proxy's address, HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT. If "
    "it takes only a Windows log-in (NTLM, Kerberos), ask your IT for a way without one."
)


def is_proxy_refusal(error: BaseException) -> bool:
    """Return whether a proxy demands a password."""
    # httpcore has no field for the status of the proxy's answer
    return isinstance(error, httpx.ProxyError) and str(error).startswith("407")


def open_client(
    url: str, trusted: ssl.SSLContext, *, seconds: float = 60.0
) -> httpx.Client:
    """Return a client for one address, through the environment's proxy.

    trusted: the certificate authorities.
    seconds: timeout of a single read or write.

    Raises InvalidParameters if the proxy is neither http nor https.
    """
    proxy = proxy_of(url)
    if proxy is not None and urlsplit(proxy).scheme not in {"http", "https"}:
        raise InvalidParameters(
            "The proxy of the environment is neither http:// nor https://.",
            remedy="Name one that is: HTTPS_PROXY, HTTP_PROXY; or none for this host: "
            "NO_PROXY.",
        )
    return httpx.Client(
        base_url=url,
        timeout=httpx.Timeout(seconds, connect=10.0),
        transport=_TimedTransport(verify=trusted, proxy=proxy),
    )


class _TimedTransport(httpx.HTTPTransport):
    """The transport of httpx, over connections with a clock."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._pool._network_backend = _Network()  # noqa: SLF001  httpx has no option

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return its answer before the content is read."""
        answer = super().handle_request(request)
        # without a clock in the connection this raises an AttributeError
        answer.extensions["network_stream"].begin_content()
        return answer


class _Network(httpcore.NetworkBackend):
    """httpcore's backend, with a clock in each connection."""

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
        """Return a connection."""
        return _TimedStream(
            self._plain.connect_tcp(host, port, timeout, local_address, socket_options)
        )


class _TimedStream(httpcore.NetworkStream):
    """A connection whose clock starts with each write, and again with the content."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner
        self._deadline = inf
        self._rate = inf

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes, and start the clock of the answer's head."""
        self._inner.write(buffer, timeout)
        self._start(inf)

    def begin_content(self) -> None:
        """Start the clock of the content; each byte that arrives extends it."""
        self._start(MIN_BYTES_PER_SECOND)

    def _start(self, rate: float) -> None:
        self._deadline = time.monotonic() + HEAD_SECONDS
        self._rate = rate

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes; raise :class:`LateAnswer` once the time is up."""
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
        """Close the connection."""
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Return the same connection, encrypted."""
        return _TimedStream(
            self._inner.start_tls(ssl_context, server_hostname, timeout)
        )

    def get_extra_info(self, info: str) -> Any:
        """Return a property of the underlying connection."""
        return self._inner.get_extra_info(info)

"""Connections to an analyst: what its answers may take of bytes, by route, and of time.

Otherwise anyone who answers at an address could fill the memory of this machine, or keep
it waiting without end. All requests of the SDK are sent and read by :func:`fetch`. A
timeout of httpx begins anew with each byte that comes; here a clock runs from the end of a
request, whether what comes is a handshake with a proxy, a header or content.
"""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
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


_KEPT_SECONDS = 5.0  # an idle connection, as httpx has it


def proxy_of(url: str) -> str | None:
    """Return the address of the proxy that the environment names for an address.

    None for this machine itself, whatever the environment says: a request to it is
    plain HTTP, and a proxy would read the key.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_this_machine(host) or proxy_bypass(host):
        return None
    named = getproxies()
    found = named.get(parts.scheme) or named.get("all")
    return found if found is None or "://" in found else f"http://{found}"


PROXY_REFUSES: Final = "The proxy asks for a name and a password (407)."
PROXY_REMEDY: Final = (
    "Write them into the proxy's address, HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT. If "
    "it takes only a Windows log-in (NTLM, Kerberos), ask your IT for a way without one."
)


def is_proxy_refusal(error: BaseException) -> bool:
    """Return whether a proxy refuses to connect without a password."""
    # httpcore has no field for the status of the proxy's answer
    return isinstance(error, httpx.ProxyError) and str(error).startswith("407")


def open_client(
    url: str, trusted: ssl.SSLContext, *, seconds: float = 60.0
) -> httpx.Client:
    """Return a client for one address, through the proxy of the environment.

    trusted: whose certificates count.
    seconds: for how long nothing may come or go.

    Raises InvalidParameters if the environment names a proxy that is neither http nor
        https.
    """
    return httpx.Client(
        base_url=url,
        timeout=httpx.Timeout(seconds, connect=10.0),
        transport=_Connections(_pool(proxy_of(url), trusted)),
    )


def _pool(proxy: str | None, trusted: ssl.SSLContext) -> httpcore.ConnectionPool:
    if proxy is None:
        return httpcore.ConnectionPool(
            trusted, keepalive_expiry=_KEPT_SECONDS, network_backend=_Network()
        )
    named = httpx.Proxy(proxy)
    if named.url.scheme not in {"http", "https"}:
        raise InvalidParameters(
            "The proxy of the environment is neither http:// nor https://.",
            remedy="Name one that is: HTTPS_PROXY, HTTP_PROXY; or none for this host: "
            "NO_PROXY.",
        )
    return httpcore.HTTPProxy(
        _core(named.url),
        proxy_auth=named.raw_auth,
        proxy_headers=named.headers.raw,
        ssl_context=trusted,
        keepalive_expiry=_KEPT_SECONDS,
        network_backend=_Network(),
    )


def _core(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


class _Connections(httpx.BaseTransport):
    """What httpx sends with, over connections with a clock."""

    def __init__(self, pool: httpcore.ConnectionPool) -> None:
        self._pool = pool

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return its answer, whose content is yet to come."""
        sent = httpcore.Request(
            request.method,
            _core(request.url),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_of_httpx():
            answer = self._pool.handle_request(sent)
        stream = answer.extensions["network_stream"]
        if isinstance(stream, _TimedStream):
            stream.begin_content()
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Content(answer)
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Content(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _as_of_httpx():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)


@contextmanager
def _as_of_httpx() -> Iterator[None]:
    """Raise the error of httpx that has the same name."""
    try:
        yield
    except _ERRORS as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error


class _Network(httpcore.NetworkBackend):
    """Connects as httpcore does, with a clock in each connection."""

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
    """A connection whose clock starts with each write, and for content once more."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner
        self._until = inf
        self._rate = inf

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes; what comes now is the head of an answer."""
        self._inner.write(buffer, timeout)
        self._start(inf)

    def begin_content(self) -> None:
        """Start the clock of the content: each byte lengthens its time."""
        self._start(LEAST_RATE)

    def _start(self, rate: float) -> None:
        self._until = time.monotonic() + HEAD_SECONDS
        self._rate = rate

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what comes; raise :class:`LateAnswer` once the time is up."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise LateAnswer
        longest = left if timeout is None else min(left, timeout)
        try:
            found = self._inner.read(max_bytes, None if longest == inf else longest)
        except httpcore.ReadTimeout:
            raise LateAnswer from None
        self._until += len(found) / self._rate
        return found

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
        """Return what the connection beneath knows of itself."""
        return self._inner.get_extra_info(info)

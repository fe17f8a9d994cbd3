"""Connections to an analyst, on which no answer takes for ever.

A timeout of httpx begins anew with each byte that comes. Here a clock runs from the end
of a request (:mod:`party_sdk.analyst_client.answer_limits` says how long), whether what
comes is a handshake with a proxy, a header or content.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.wire.http_headers import is_this_machine
from party_sdk.analyst_client import answer_limits as limits

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
        self._start(limits.LEAST_RATE)

    def _start(self, rate: float) -> None:
        self._until = time.monotonic() + limits.HEAD_SECONDS
        self._rate = rate

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what comes; raise :class:`LateAnswer` once the time is up."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise limits.LateAnswer
        longest = left if timeout is None else min(left, timeout)
        try:
            found = self._inner.read(max_bytes, None if longest == inf else longest)
        except httpcore.ReadTimeout:
            raise limits.LateAnswer from None
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

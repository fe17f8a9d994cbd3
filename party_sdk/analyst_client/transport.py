"""Send requests with a connection pool and retries, and explain failures that persist."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    InvalidParameters,
    Unavailable,
)
from clustering_protocols.wire.http_headers import (
    is_this_machine,
    parse_wait_preference,
)
from party_sdk.analyst_client.certificates import certificate_error
from party_sdk.analyst_client.connections import (
    LateAnswer,
    TimedTransport,
    fetch,
    proxy_of,
)
from party_sdk.home.addresses import address_advice

SILENT_SECONDS: Final = 3.0
"""The number of seconds without a response after which the operator is informed."""

_MAX_BODY_SECONDS: Final = 30.0
"""The maximum time that one attempt to send a body counts against the patience."""

UNREACHABLE: Final = "cannot be reached"
UNREADY: Final = "cannot answer now"
FULL: Final = "has no room left"
_OUTAGES: Final[dict[int | None, str]] = {
    None: UNREACHABLE,
    **dict.fromkeys((502, 503, 504), UNREADY),
    507: FULL,
}

RETRYABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 507})
_BASE_SECONDS: Final = 0.2
_CEILING_SECONDS: Final = 5.0


@cache
def default_tls_context() -> ssl.SSLContext:
    """Return a context with the default authorities, cached because loading is slow."""
    return httpx.create_ssl_context()


def authority_file() -> Path | None:
    """Return the PEM file named by ``COTERIE_CA_FILE``, or None if it is not set."""
    name = os.environ.get("COTERIE_CA_FILE")
    return Path(name) if name else None


def build_tls_context(scheme: str) -> ssl.SSLContext:
    """Return a TLS context that trusts COTERIE_CA_FILE or the default authorities.

    Raises InvalidParameters if the file contains no certificate.
    """
    ca_file = authority_file()
    if ca_file is not None:
        try:
            return ssl.create_default_context(cafile=ca_file)
        except (OSError, ValueError):
            raise InvalidParameters(
                f"{ca_file} contains no certificate in PEM format.",
                remedy="Name the PEM file of the authority in COTERIE_CA_FILE.",
            ) from None
    # plain http has no certificates, so the authorities need not be loaded
    return (
        default_tls_context()
        if scheme == "https"
        else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )


def open_http(url: str, *, seconds: float = 60.0) -> httpx.Client:
    """Create an HTTP client that uses the proxy and the authorities of the environment.

    seconds: the timeout of a single read or write.

    Raises InvalidParameters if the proxy URL is neither http nor https.
    """
    proxy = proxy_of(url)
    if proxy is not None and urlsplit(proxy).scheme not in {"http", "https"}:
        raise InvalidParameters(
            "The proxy of the environment is neither http:// nor https://.",
            remedy="Name one that is: HTTPS_PROXY, HTTP_PROXY; or none for this host: "
            "NO_PROXY.",
        )
    trusted = build_tls_context(urlsplit(url).scheme)
    return httpx.Client(
        base_url=url,
        timeout=httpx.Timeout(seconds, connect=10.0),
        transport=TimedTransport(verify=trusted, proxy=proxy),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Callbacks for periods in which an analyst does not respond.

    on_outage: called with the problem when the analyst becomes unreachable or runs out
        of storage, and with an empty string when it responds again.
    on_silence: called from another thread with the analyst's host when a request has
        waited for :data:`SILENT_SECONDS` and no outage was reported.
    """

    on_outage: Callable[[str], None] | None = None
    on_silence: Callable[[str], None] | None = None


NO_LISTENERS: Final = Listeners()


class Transport:
    """Sends requests to one analyst, and retries them until its patience is exhausted.

    The arguments are those of :func:`~party_sdk.analyst_client.http_analyst.connect`.
    """

    def __init__(
        self,
        url: str,
        patience: float,
        listeners: Listeners,
        http: httpx.Client | None,
    ) -> None:
        if advice := address_advice(url):
            raise InvalidParameters(advice)
        parts = urlsplit(url)
        if parts.scheme == "http" and not is_this_machine(parts.hostname or ""):
            raise GuardRefused(
                "Plain http would show the token to the network: use https. A "
                "certificate from your own authority is enough (COTERIE_CA_FILE)."
            )
        self.patience = patience
        self.listeners = listeners
        self._outage = ""
        self._http = http or open_http(url)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        patience: float | None = None,
        **options: Any,
    ) -> httpx.Response:
        """Send a request, retry it if necessary, and return the response.

        patience: how many seconds to retry; by default, the patience of the transport.
        **options: headers, json, content and params, as for httpx.

        Raises Unavailable if there is no response within that time, or
        CertificateRefused if the certificate of the server is not trusted.
        """
        request = self._http.build_request(method, path, **options)
        patience = self.patience if patience is None else patience
        with self._watch_silence(request):
            return self._send_retrying(request, patience)

    def _send_retrying(self, request: httpx.Request, patience: float) -> httpx.Response:
        elapsed = 0.0
        attempt = 0
        while True:
            attempt += 1
            begin = time.monotonic()
            response, problem = self._send_once(request)
            duration = time.monotonic() - begin
            # sending a large body takes time even if the analyst responds at once
            elapsed += min(duration, _MAX_BODY_SECONDS) if request.content else duration
            status = None if response is None else response.status_code
            outage = _OUTAGES.get(status, "")
            on_outage = self.listeners.on_outage
            if on_outage is not None and outage != self._outage:
                on_outage(outage)
            self._outage = outage
            retry_after = (
                None if response is None else response.headers.get("retry-after")
            )
            delay = next_delay(attempt, elapsed, patience, status, retry_after)
            if response is not None and (delay is None or response.is_success):
                return response
            if delay is None:
                raise Unavailable(
                    f"{attempt} attempts in {elapsed:.0f} s: {problem}.",
                    remedy="Check the address and that the analyst runs; then try again.",
                )
            time.sleep(delay)
            elapsed += delay

    @contextmanager
    def _watch_silence(self, request: httpx.Request) -> Iterator[None]:
        on_silence = self.listeners.on_silence
        if on_silence is None:
            yield
            return

        def report_silence() -> None:
            if not self._outage:
                on_silence(request.url.netloc.decode())

        wait = request.url.params.get("wait")
        held_seconds = (
            wait or parse_wait_preference(request.headers.get("Prefer", "")) or 0.0
        )
        timer = Timer(SILENT_SECONDS + float(held_seconds), report_silence)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _send_once(self, request: httpx.Request) -> tuple[httpx.Response | None, str]:
        try:
            return fetch(self._http, request), ""
        except httpx.TransportError as error:
            if (final_error := explain_failure(error, request.url)) is not None:
                raise final_error from None
            where = request.url.netloc.decode()
            timed_out = isinstance(error, LateAnswer)
            problem = str(error) if timed_out else type(error).__name__
            return None, f"{problem} at {where}"


def is_proxy_refusal(error: BaseException) -> bool:
    """Return whether the proxy refused the request for lack of a password."""
    # httpcore reports the status of the proxy only in the message
    return isinstance(error, httpx.ProxyError) and str(error).startswith("407")


def explain_failure(error: BaseException, url: httpx.URL) -> CoterieError | None:
    """Return the error for a failure that retrying cannot fix, or None.

    Nothing has been sent in such a case, because encryption starts with the first byte.

    Returns CertificateRefused if the certificate is not trusted, InvalidParameters if
    the server does not speak TLS, or Unavailable if the proxy requires a password.
    """
    if is_proxy_refusal(error):
        return Unavailable(
            "The proxy asks for a name and a password (407).",
            remedy="Write them into the proxy's address, "
            "HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT. If it takes only a Windows log-in "
            "(NTLM, Kerberos), ask your IT for a way without one.",
        )
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return certificate_error(cause, url.host, url.port or 443)
        if getattr(cause, "reason", None) == "WRONG_VERSION_NUMBER":
            return InvalidParameters(
                f"{url.netloc.decode()} does not speak TLS: does the address need "
                "http://, or another port?",
                remedy="Check http:// or https:// and the port; ask the coordinator.",
            )
        cause = cause.__cause__ or cause.__context__
    return None


def next_delay(
    attempt: int,
    elapsed: float,
    patience: float,
    status: int | None,
    retry_after: str | None,
) -> float | None:
    """Return the number of seconds to wait before the next attempt, or None to give up.

    attempt: the number of failed attempts, at least 1.
    elapsed, patience: the seconds since the first attempt, and the maximum before
        giving up.
    status: the HTTP status code; None if there was no response.
    retry_after: the value of the Retry-After header, in seconds.
    """
    if status is not None and status not in RETRYABLE:
        return None
    delay = min(_BASE_SECONDS * 2.0 ** min(attempt - 1, 8), _CEILING_SECONDS)
    if retry_after is not None and retry_after.isdecimal():
        delay = max(delay, float(retry_after))
    return None if elapsed + delay > patience else delay

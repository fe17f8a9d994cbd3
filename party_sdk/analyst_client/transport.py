"""Sending: one HTTP connection pool, patience, and a clear word when it runs out."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
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
from clustering_protocols.wire.http_headers import is_this_machine, wait_seconds
from party_sdk.analyst_client.certificates import refusal
from party_sdk.analyst_client.connections import (
    PROXY_REFUSES,
    PROXY_REMEDY,
    LateAnswer,
    fetch,
    is_proxy_refusal,
    open_client,
)
from party_sdk.home.addresses import mistaken

OnOutage = Callable[[str], None]
OnSilence = Callable[[str], None]

SILENT_SECONDS: Final = 3.0
"""After how long without an answer, or a word about it, the operator is told."""

_MOST_COUNTED: Final = 30.0
"""An attempt that sends a body counts for so many seconds of the patience at most."""

UNREACHABLE: Final = "cannot be reached"
FULL: Final = "has no room left"
_OUTAGES: Final[dict[int | None, str]] = {
    None: UNREACHABLE,
    **dict.fromkeys((502, 503, 504), UNREACHABLE),
    507: FULL,
}

RETRYABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 507})
_BASE_SECONDS: Final = 0.2
_CEILING_SECONDS: Final = 5.0


@cache
def usual() -> ssl.SSLContext:
    """Return whom clients trust by default; to read it takes longer than a request."""
    return httpx.create_ssl_context()


def authority_file() -> Path | None:
    """Return the PEM file of the institution's authority: ``COTERIE_CA_FILE``, or None."""
    name = os.environ.get("COTERIE_CA_FILE")
    return Path(name) if name else None


def build_tls_context(scheme: str, ca_file: Path | None) -> ssl.SSLContext:
    """Return whom a client trusts: the authority in a file, or the usual ones.

    ca_file: by default that of :func:`authority_file`.

    Raises InvalidParameters if the file holds no certificate.
    """
    ca_file = ca_file or authority_file()
    if ca_file is not None:
        try:
            return ssl.create_default_context(cafile=ca_file)
        except (OSError, ValueError):
            raise InvalidParameters(
                f"{ca_file} holds no certificate in PEM form.",
                remedy="Name the PEM file of the authority in COTERIE_CA_FILE.",
            ) from None
    # plain http shows no certificate: there nobody is trusted, and no list is read
    return usual() if scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def open_http(
    url: str, ca_file: Path | None = None, *, seconds: float = 60.0
) -> httpx.Client:
    """Return a client for one analyst; raises as :func:`build_tls_context` does.

    ``seconds``: for how long nothing may come or go.
    """
    return open_client(
        url, build_tls_context(urlsplit(url).scheme, ca_file), seconds=seconds
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Who is told while an analyst is asked.

    on_outage: called with what is wrong when the analyst can no longer be reached, or
        has no room; and with an empty text once all is well.
    on_silence: called from another thread with the analyst's host, once a request has
        waited for :data:`SILENT_SECONDS` and nothing was told of an outage.
    """

    on_outage: OnOutage | None = None
    on_silence: OnSilence | None = None


NO_LISTENERS: Final = Listeners()


class Transport:
    """Sends requests to one analyst, again and again for as long as its patience lasts.

    Its arguments are those of :func:`~party_sdk.analyst_client.http_analyst.connect`.
    """

    def __init__(
        self,
        url: str,
        *,
        ca_file: Path | None,
        patience: float,
        listeners: Listeners,
        http: httpx.Client | None,
    ) -> None:
        if wrong := mistaken(url):
            raise InvalidParameters(wrong)
        parts = urlsplit(url)
        if parts.scheme == "http" and not is_this_machine(parts.hostname or ""):
            raise GuardRefused(
                "Plain http would show the token to the network: use https. A "
                "certificate of your own authority will do (COTERIE_CA_FILE)."
            )
        self.patience = patience
        self.listeners = listeners
        self._outage = ""
        self._http = http or open_http(url, ca_file)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        patience: float | None = None,
    ) -> httpx.Response:
        """Return the first response that is worth having.

        patience: seconds for which this request is repeated; by default those of the
            transport.

        Raises Unavailable if no such response came while the patience lasted.
        Raises CertificateRefused if anyone who answers at the address shows no certificate
            that is trusted here.
        """
        request = self._http.build_request(
            method,
            path,
            headers=dict(headers),
            json=json,
            content=content,
            params=params,
        )
        patience = self.patience if patience is None else patience
        with self._watch_silence(request):
            return self._send(request, patience)

    def _send(self, request: httpx.Request, patience: float) -> httpx.Response:
        elapsed = 0.0
        attempt = 0
        while True:
            attempt += 1
            begin = time.monotonic()
            response, why = self._try(request)
            took = time.monotonic() - begin
            # a large body takes its time, which is no silence of the analyst
            elapsed += min(took, _MOST_COUNTED) if request.content else took
            status = None if response is None else response.status_code
            self._tell(_OUTAGES.get(status, ""))
            after = None if response is None else response.headers.get("retry-after")
            delay = next_delay(attempt, elapsed, patience, status, after)
            if response is not None and (delay is None or response.is_success):
                return response
            if delay is None:
                raise Unavailable(f"{attempt} attempts in {elapsed:.0f} s: {why}.")
            time.sleep(delay)
            elapsed += delay

    @contextmanager
    def _watch_silence(self, request: httpx.Request) -> Iterator[None]:
        """Break the silence of a request that nobody answers, and that is not held."""
        if self.listeners.on_silence is None:
            yield
            return
        timer = Timer(
            SILENT_SECONDS + _read_wait_seconds(request), self._break_silence, [request]
        )
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _break_silence(self, request: httpx.Request) -> None:
        on_silence = self.listeners.on_silence
        if on_silence is not None and not self._outage:
            on_silence(request.url.netloc.decode())

    def _tell(self, outage: str) -> None:
        """Say what is wrong with the analyst, or that all is well again; once each."""
        on_outage = self.listeners.on_outage
        if on_outage is not None and outage != self._outage:
            on_outage(outage)
        self._outage = outage

    def _try(self, request: httpx.Request) -> tuple[httpx.Response | None, str]:
        try:
            return fetch(self._http, request), ""
        except httpx.TransportError as error:
            if (final := explain_failure(error, request.url)) is not None:
                raise final from None
            where = request.url.netloc.decode()
            is_late = isinstance(error, LateAnswer)
            why = str(error) if is_late else type(error).__name__
            return None, f"{why} at {where}"


def _read_wait_seconds(request: httpx.Request) -> float:
    """Return for how many seconds the analyst may hold a request."""
    asked = request.url.params.get("wait")
    if asked is not None:
        return float(asked)
    return wait_seconds(request.headers.get("Prefer", "")) or 0.0


def explain_failure(error: BaseException, url: httpx.URL) -> CoterieError | None:
    """Return why to try again will not help; None where it may.

    Nothing was sent then: a connection is encrypted before its first byte.

    Returns CertificateRefused if the analyst shows no certificate that is trusted here,
        InvalidParameters if anyone who listens there does not speak TLS, Unavailable if a
        proxy wants a password.
    """
    if is_proxy_refusal(error):
        return Unavailable(PROXY_REFUSES, remedy=PROXY_REMEDY)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return refusal(cause, url.host, url.port or 443)
        if getattr(cause, "reason", None) == "WRONG_VERSION_NUMBER":
            return InvalidParameters(
                f"{url.netloc.decode()} speaks no TLS: is it http:// there, or another "
                "port?",
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
    """Return the seconds to wait before the next attempt, or None to give up.

    attempt: how many attempts failed, at least 1.
    elapsed, patience: seconds since the first attempt, and after which to give up.
    status: HTTP status; None where no response came at all.
    retry_after: the header of that name, in seconds.
    """
    if status is not None and status not in RETRYABLE:
        return None
    delay = min(_BASE_SECONDS * 2.0 ** min(attempt - 1, 8), _CEILING_SECONDS)
    if retry_after is not None and retry_after.isdecimal():
        delay = max(delay, float(retry_after))
    return None if elapsed + delay > patience else delay

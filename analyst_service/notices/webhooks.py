"""Sending webhooks, signed as the Standard Webhooks specification says.

https://github.com/standard-webhooks/standard-webhooks, version 1: the signature covers
id, time and body. Nothing is taken from the environment (no proxy), no redirect is
followed, and of the answer no more than the status is used.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any, Final

import httpcore
import httpx

from analyst_service.configuration.notice_settings import Network
from analyst_service.configuration.settings import Settings
from analyst_service.notices import addresses
from analyst_service.notices.messages import Notification, Undelivered, as_json
from clustering_protocols.wire.notices import Failure

SECONDS: Final = 15.0
"""For how long a receiver may take, from the connection to its status."""

_ANSWER_BYTES: Final = 64 << 10
_GONE: Final = 410
_Options = Iterable[Any] | None


def build_signed_headers(
    secret: str, notice_id: str, at: datetime, body: bytes
) -> dict[str, str]:
    """Return the headers that show who wrote a webhook, and when.

    secret: ``whsec_`` and the key in base64.
    """
    message_id, stamp = f"msg_{notice_id}", str(int(at.timestamp()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    covered = b".".join([message_id.encode(), stamp.encode(), body])
    mark = base64.b64encode(hmac.digest(key, covered, hashlib.sha256)).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{mark}",
    }


def build_tls_context(settings: Settings) -> ssl.SSLContext:
    """Return which authorities receivers' certificates may be of."""
    if settings.notices_ca_file is None:
        return usual()
    return ssl.create_default_context(cafile=settings.notices_ca_file)


@cache
def usual() -> ssl.SSLContext:
    """Return those of the web; to read them takes longer than most requests."""
    return httpx.create_ssl_context(trust_env=False)


class WebhookSender:
    """Sends webhooks; safe from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._networks = settings.internal_networks
        self._trusted = build_tls_context(settings)

    def send(self, told: Notification, secret: str, at: datetime) -> None:
        """Send a notice; raise :class:`Undelivered` unless it was taken (2xx)."""
        status = self._post(told, secret, at)
        if status // 100 == 3:
            raise Undelivered(Failure.REDIRECTED)
        if status // 100 != 2:
            raise Undelivered(Failure.NOT_TAKEN, is_final=status == _GONE)

    def _post(self, told: Notification, secret: str, at: datetime) -> int:
        url, body = addresses.parse_address(told.address), as_json(told)
        headers = {
            "host": url.netloc.decode(),
            "content-type": "application/json",
            "content-length": str(len(body)),
            "user-agent": "coterie",
            "connection": "close",
            **build_signed_headers(secret, told.notice_id, at, body),
        }
        target = httpcore.URL(
            scheme=url.raw_scheme,
            host=url.raw_host,
            port=url.port,
            target=url.raw_path,
        )
        line = _CheckedLine(self._networks, time.monotonic() + SECONDS)
        pool = httpcore.ConnectionPool(self._trusted, network_backend=line)
        try:
            with (
                pool,
                pool.stream(
                    "POST", target, headers=list(headers.items()), content=body
                ) as answer,
            ):
                return answer.status
        except (
            httpcore.NetworkError,
            httpcore.TimeoutException,
            httpcore.ProtocolError,
            OSError,
        ) as error:
            raise Undelivered(_failure(error)) from None


class _CheckedLine(httpcore.NetworkBackend):
    """Connects to addresses that were looked at, and to no others, until a time."""

    def __init__(self, networks: Sequence[Network], until: float) -> None:
        self._networks = networks
        self._until = until
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: _Options = None,
    ) -> httpcore.NetworkStream:
        """Return a connection to one of the addresses of a host."""
        del timeout
        *others, last = addresses.resolve_host(host, port, self._networks)
        for number in others:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return self._connect(number, port, local_address, socket_options)
        return self._connect(last, port, local_address, socket_options)

    def _connect(
        self, number: str, port: int, local: str | None, options: _Options
    ) -> httpcore.NetworkStream:
        plain = self._plain.connect_tcp(
            number, port, count_seconds_left(self._until), local, options
        )
        return _Hasty(plain, self._until)


class _Hasty(httpcore.NetworkStream):
    """A connection that ends at a time, however slowly bytes drip in."""

    def __init__(self, inner: httpcore.NetworkStream, until: float) -> None:
        self._inner = inner
        self._until = until
        self._room = _ANSWER_BYTES

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what comes; an answer that is too long is one that never ends."""
        del timeout
        read = self._inner.read(
            min(max_bytes, self._room), count_seconds_left(self._until)
        )
        self._room -= len(read)
        if self._room <= 0:
            raise httpcore.ReadError("too long")
        return read

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes."""
        del timeout
        self._inner.write(buffer, count_seconds_left(self._until))

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Return the same connection, encrypted: the certificate is the name's."""
        del timeout
        inner = self._inner.start_tls(
            ssl_context, server_hostname, count_seconds_left(self._until)
        )
        return _Hasty(inner, self._until)

    def get_extra_info(self, info: str) -> Any:
        """Return what the connection beneath knows of itself."""
        return self._inner.get_extra_info(info)


def count_seconds_left(until: float) -> float:
    """Return the seconds that are left, a moment at least."""
    return max(0.001, until - time.monotonic())


def _failure(error: BaseException) -> Failure:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Failure.CERTIFICATE
        cause = cause.__cause__ or cause.__context__
    return Failure.UNREACHABLE

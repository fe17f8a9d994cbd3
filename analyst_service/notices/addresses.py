"""Where a webhook may go: what an address looks like, and what its name stands for.

Anyone who may leave an address could otherwise have this service knock at doors inside the
institution. So a name is resolved once, every address that it stands for has to be
public (or in a network that the administrator allows), and the connection goes to one
of those that were looked at: a name that is resolved again may stand for another.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

import httpx

from analyst_service.configuration.notice_settings import Network
from analyst_service.configuration.settings import Settings
from analyst_service.notices.messages import Undelivered
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.wire.notices import Failure
from coterie_http.public_addresses import Address, is_public

_PORTS: Final = range(1, 1 << 16)


def check_webhook_address(address: str, settings: Settings) -> str:
    """Return the address of a webhook in its usual form.

    Raises InvalidParameters if it is none, goes without TLS, holds a password, or names
        a number inside.
    """
    url = parse_address(address)
    schemes = ["https", "http"] if settings.notices_http else ["https"]
    if url.scheme not in schemes or not url.host:
        raise InvalidParameters(
            f"it begins with {schemes[0]}:// and a host.", field="address"
        )
    if url.port is not None and url.port not in _PORTS:
        raise InvalidParameters("there is no such port.", field="address")
    if url.userinfo or url.fragment:
        raise InvalidParameters("it holds neither a user nor a '#'.", field="address")
    try:
        number = ip_address(url.host)
    except ValueError:
        return str(url)
    if not is_allowed(number, settings.internal_networks):
        raise InvalidParameters(
            "it is inside; the administrator allows which (COTERIE_NOTICES_INTERNAL).",
            field="address",
        )
    return str(url)


def parse_address(address: str) -> httpx.URL:
    """Return the parts of an address; :class:`InvalidParameters` if it is none."""
    try:
        return httpx.URL(address)
    except httpx.InvalidURL:
        raise InvalidParameters(
            "this is no address of the web.", field="address"
        ) from None


def mask_address(address: str) -> str:
    """Return what of a webhook's address is no secret."""
    url = parse_address(address)
    return f"{url.scheme}://{url.netloc.decode()}/…"


def resolve_host(host: str, port: int, internal: Iterable[Network]) -> list[str]:
    """Return the addresses that a name stands for, all of which may be called.

    Raises Undelivered if there is none, or one of them may not be called.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise Undelivered(Failure.UNKNOWN_HOST) from None
    numbers = list(dict.fromkeys(str(each[4][0]) for each in found))
    allowed = list(internal)
    if not all(is_allowed(ip_address(number), allowed) for number in numbers):
        raise Undelivered(Failure.INTERNAL_ADDRESS)
    return numbers


def is_allowed(address: Address, internal: Iterable[Network]) -> bool:
    """Return whether an address is public, or in one of these networks."""
    return any(address in network for network in internal) or is_public(address)

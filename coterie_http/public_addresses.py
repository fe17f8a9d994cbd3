"""Which numbers of machines are public: others lead inside an institution."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Address = IPv4Address | IPv6Address

# addresses of version 4 travel in these: what they stand for is what counts
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
# not public either, though not every Python says so
_ODD: Final = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),  # relays of 6to4, which are no more
    IPv6Network("64:ff9b:1::/48"),
    IPv6Network("3fff::/20"),  # for documentation
    IPv6Network("fec0::/10"),
)


def is_public(address: Address) -> bool:
    """Return whether an address, and the one that travels in it, is public."""
    meant = _meant(address)
    return (
        meant.is_global
        and not (meant.is_multicast or meant.is_reserved)
        and not any(meant in network for network in _ODD)
    )


def _meant(address: Address) -> Address:
    """Return the address that travels in another one; else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    inside = address.ipv4_mapped
    if address in _TRANSLATED:
        inside = IPv4Address(int(address) & 0xFFFF_FFFF)
    elif address.sixtofour is not None:
        inside = address.sixtofour
    elif address.teredo is not None:
        inside = address.teredo[1]
    return inside or address

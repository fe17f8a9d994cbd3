"""Validate and compare the analyst addresses that people type."""

from __future__ import annotations

from urllib.parse import urlsplit

_MISLEADING = {
    "@": "a user or a password: the host is what follows the '@'",
    "?": "a query",
    "#": "a part after '#'",
    "\\": "a backslash",
    "%": "a '%'",
}


def address_advice(url: str) -> str:
    """Return the error in an analyst's address; empty if the address is valid.

    For an address without a scheme, the advice is https: http must be typed explicitly.
    """
    if "#coterie-" in url:
        return "This is an invitation. Write only the address before its '#'."
    scheme, separator, address = url.partition("://")
    if not separator:
        scheme, address = "", url
    try:
        parts = urlsplit(f"https://{address}")
        host, _ = parts.hostname, parts.port  # raises if the port is not a number
    except ValueError:
        host = None
    if not host or any(letter.isspace() for letter in url):
        return f"{url!r} is not an address: write it like https://analyst.example."
    if advice := _find_deception(address, host):
        return advice
    if scheme.lower() in {"https", "http"}:
        return ""
    return f"{url}: write https://{address}."


def are_same_analyst(url: str, other_url: str) -> bool:
    """Return whether two addresses lead to the same analyst, however they are spelled."""
    return _identity_of(url) == _identity_of(other_url)


def host_of(url: str) -> str:
    """Return the host of an address, with its port if one is given."""
    return urlsplit(url).netloc


def _identity_of(url: str) -> tuple[str, str | None, int | None, str]:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port, parts.path.rstrip("/")


def _find_deception(address: str, host: str) -> str:
    for sign, part in _MISLEADING.items():
        if sign in address:
            return f"An analyst's address has no {sign!r}; this one contains {part}."
    if host.isascii():
        return ""
    try:
        plain = host.encode("idna").decode()
    except UnicodeError:
        return "The host contains characters that are not allowed in a host name."
    return (
        f"The host is {plain!r}, which may look like another one. If it is the one that you "
        "mean, write it in this form."
    )

"""Addresses of an analyst as people write them."""

from __future__ import annotations

from urllib.parse import urlsplit

_MISLEADING = {
    "@": "a user or a password: the host is what stands behind the '@'",
    "?": "a query",
    "#": "a part behind '#'",
    "\\": "a backslash",
    "%": "a '%'",
}


def mistaken(url: str) -> str:
    """Return what to write instead of an address, as a sentence; empty if it is one.

    Nobody guesses http: it is taken from who writes it.
    """
    if "#coterie-" in url:
        return "This is an invitation. Write only the address before its '#'."
    scheme, found, rest = url.partition("://")
    if not found:
        scheme, rest = "", url
    try:
        parts = urlsplit(f"https://{rest}")
        host, _ = parts.hostname, parts.port  # a port that is no number raises
    except ValueError:
        host = None
    if not host or any(letter.isspace() for letter in url):
        return f"{url!r} is no address: write it like https://analyst.example."
    if wrong := _find_deception(rest, host):
        return wrong
    if scheme.lower() in {"https", "http"}:
        return ""
    return f"{url}: write https://{rest}."


def are_same(url: str, other: str) -> bool:
    """Return whether two addresses name one analyst, however they are written."""
    return _place(url) == _place(other)


def host_of(url: str) -> str:
    """Return host and port of an address, to be shown."""
    return urlsplit(url).netloc


def _place(url: str) -> tuple[str, str | None, int | None, str]:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port, parts.path.rstrip("/")


def _find_deception(rest: str, host: str) -> str:
    """Return what makes an address look like another one's; empty if nothing does."""
    for sign, what in _MISLEADING.items():
        if sign in rest:
            return f"An address of an analyst has no {sign!r}; this one holds {what}."
    if host.isascii():
        return ""
    try:
        plain = host.encode("idna").decode()
    except UnicodeError:
        return "The host holds signs that no name of a machine has."
    return (
        f"The host is {plain!r} and looks like another one. Write it so, if that is the "
        "one that you mean."
    )

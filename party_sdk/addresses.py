"""Addresses of an analyst as people write them."""

from __future__ import annotations

from urllib.parse import urlsplit


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
    if scheme.lower() in {"https", "http"}:
        return ""
    return f"{url}: write https://{rest}."

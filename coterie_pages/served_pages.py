"""HTTP headers, scripts and styles for the served pages.

Scripts and styles are served as files by the same server, so that the content security
policy can forbid inline ones. The desk and the analyst send :data:`HEADERS` with each
page.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # no-referrer would remove a form's Origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
"""Headers of every page: no external resources, no framing and no caching."""

_ASSETS: Final = {
    "style.css": ("templates/style.css", "text/css; charset=utf-8"),
    "app.css": ("static/app.css", "text/css; charset=utf-8"),
    "htmx.js": ("static/htmx.min.js", "text/javascript; charset=utf-8"),
}


class Asset(NamedTuple):
    """A script or style; its ``tag``, taken from the SHA-256, is part of its URL."""

    content: bytes
    media_type: str
    tag: str

    @property
    def headers(self) -> dict[str, str]:
        """Return the response headers; the URL contains a digest, so caching is allowed."""
        cache_control = "public, max-age=31536000, immutable"
        return {
            **HEADERS,
            "Content-Type": self.media_type,
            "Cache-Control": cache_control,
        }


def find_asset(name: str) -> Asset | None:
    """Return the script or style with this name, or None if the name is unknown."""
    return read_asset("coterie_pages", *_ASSETS[name]) if name in _ASSETS else None


@cache
def read_asset(package: str, path: str, media_type: str) -> Asset:
    """Read a file of a package as an asset."""
    content = files(package).joinpath(path).read_bytes()
    return Asset(content, media_type, sha256(content).hexdigest()[:12])


def asset_url(root: str, name: str) -> str:
    """Return the URL path of a script or style. Raises KeyError if the name is unknown."""
    tag = read_asset("coterie_pages", *_ASSETS[name]).tag
    return f"{root}/static/{name}?v={tag}"

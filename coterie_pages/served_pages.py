"""Headers and assets of pages that a browser asks for.

Scripts and styles are files from the pages' own server, so the content security policy
forbids inline ones. Desk and analyst send :data:`HEADERS` with each page.
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
    "Referrer-Policy": "same-origin",  # a form's Origin goes to its own site only
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
"""Headers of every page: it loads nothing from elsewhere, and is not framed or cached."""

_ASSETS: Final = {
    "style.css": ("templates/style.css", "text/css; charset=utf-8"),
    "app.css": ("static/app.css", "text/css; charset=utf-8"),
    "htmx.js": ("static/htmx.min.js", "text/javascript; charset=utf-8"),
    "waiting.js": ("static/waiting.js", "text/javascript; charset=utf-8"),
}


class Asset(NamedTuple):
    """A script or a style; its ``tag``, from the SHA-256, is part of its address."""

    content: bytes
    media_type: str
    tag: str

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers: cacheable, because the address changes with the content."""
        cache_control = "public, max-age=31536000, immutable"
        return {
            **HEADERS,
            "Content-Type": self.media_type,
            "Cache-Control": cache_control,
        }


def asset(name: str) -> Asset | None:
    """Return the asset of a name; None for an unknown name."""
    return asset_in("coterie_pages", *_ASSETS[name]) if name in _ASSETS else None


@cache
def asset_in(package: str, path: str, media_type: str) -> Asset:
    """Return a file of a package as an asset."""
    content = files(package).joinpath(path).read_bytes()
    return Asset(content, media_type, sha256(content).hexdigest()[:12])


def address_of(root: str, name: str) -> str:
    """Return the address of a script or style; raise KeyError for an unknown name."""
    tag = asset_in("coterie_pages", *_ASSETS[name]).tag
    return f"{root}/static/{name}?v={tag}"

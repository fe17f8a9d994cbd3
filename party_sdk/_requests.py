"""Building requests and parsing responses, without sending anything."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import httpx

from clustering_protocols.codec import MEDIA_TYPE
from clustering_protocols.errors import (
    CoterieError,
    Internal,
    InvalidParameters,
    SessionOver,
    Unauthenticated,
)
from clustering_protocols.problems import Problem
from clustering_protocols.wire.resuming import digest_field

_PROBLEM = "application/problem+json"


def content_digest(content: bytes, digest: str = "") -> str:
    """Return the Content-Digest of a body (RFC 9530), whose SHA-256 may be known."""
    return digest_field(digest or sha256(content).hexdigest())


def contribution_headers(content: bytes, digest: str = "") -> dict[str, str]:
    """Return the headers of an upload, whose SHA-256 (hex) may be known."""
    announced = content_digest(content, digest)
    return {"Content-Type": MEDIA_TYPE, "Content-Digest": announced}


def bearer(secret: str | None) -> dict[str, str]:
    """Return the header that says who is asking.

    Raises :class:`Unauthenticated` of what can be no key: it would not travel.
    """
    if not secret:
        return {}
    if not (secret.isascii() and secret.isprintable()):
        raise Unauthenticated("What was given holds characters that no key has.")
    return {"Authorization": f"Bearer {secret}"}


def raise_problem(response: httpx.Response) -> None:
    """Raise the exception of the same name, where a response is a problem.

    A page of a proxy, even under a status of success, is a problem too.
    """
    if response.is_success and (_is_ours(response) or not response.content):
        return
    document = _document(response)
    detail = str(document.get("detail", f"HTTP status {response.status_code}."))
    try:
        problem = Problem.of_slug(str(document.get("type")))
    except KeyError:
        # to ask again changes nothing where there is no such page
        kind = (
            InvalidParameters
            if response.status_code == httpx.codes.NOT_FOUND
            else Internal
        )
        raise kind(f"{detail} This is not an analyst of coterie.") from None
    if problem is Problem.SESSION_OVER:
        raise SessionOver(detail, document.get("state", ""), document.get("reason"))
    raise CoterieError.of(problem, detail)


def _is_ours(response: httpx.Response) -> bool:
    return _media_type(response) in {"application/json", MEDIA_TYPE}


def _media_type(response: httpx.Response) -> str:
    media_type: str = response.headers.get("content-type", "")
    return media_type.partition(";")[0].strip()


def _document(response: httpx.Response) -> Mapping[str, Any]:
    if _media_type(response) != _PROBLEM:
        return {}
    try:
        document = response.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}

"""Building requests and parsing responses, without sending anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import (
    CoterieError,
    Internal,
    InvalidParameters,
    SessionOver,
    Unauthenticated,
    VersionMismatch,
)
from clustering_protocols.common.values import explain
from clustering_protocols.records.codec import MEDIA_TYPE
from clustering_protocols.wire.http_headers import digest_field

if TYPE_CHECKING:  # answers from files need none
    import httpx

PROBLEM_TYPE: Final = "application/problem+json"
_OURS: Final = frozenset({"application/json", MEDIA_TYPE})

_MOST_READ: Final = 4000
"""Characters of a problem's text that are shown."""

_M = TypeVar("_M", bound=BaseModel)


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


def media_type_of(response: httpx.Response) -> str:
    """Return the media type of a response; empty where it names none."""
    media_type: str = response.headers.get("content-type", "")
    return media_type


def raise_problem(status: int, media_type: str, content: bytes) -> None:
    """Raise the exception of the same name, where an answer is a problem.

    A page of a proxy, even under a status of success, is a problem too.

    status: of HTTP.
    """
    kind = media_type.partition(";")[0].strip()
    is_success = HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES
    if is_success and (kind in _OURS or not content):
        return
    document = _read_document(content) if kind == PROBLEM_TYPE else {}
    detail = _text_in(document, "detail") or f"HTTP status {status}."
    try:
        problem = Problem.of_slug(str(document.get("type")))
    except KeyError:
        # to ask again changes nothing where there is no such page
        error = InvalidParameters if status == HTTPStatus.NOT_FOUND else Internal
        raise error(f"{detail} This is not an analyst of coterie.") from None
    if problem is Problem.SESSION_OVER:
        state, reason = _text_in(document, "state"), _text_in(document, "reason")
        raise SessionOver(detail, state, reason or None)
    raise CoterieError.of(problem, detail)


def parse_answer(model: type[_M], content: bytes) -> _M:
    """Return what an answer says.

    Raises VersionMismatch if it is none that this release reads, a state of a newer one
        for example.
    """
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise VersionMismatch(f"The analyst's answer: {explain(error)}") from None


def _read_document(content: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _text_in(document: Mapping[str, Any], name: str) -> str:
    """Return a text of a problem as far as somebody reads it; empty if it is none."""
    text = document.get(name)
    return text[:_MOST_READ] if isinstance(text, str) else ""

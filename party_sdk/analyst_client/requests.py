"""Build HTTP requests and parse responses, without any network access."""

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
from clustering_protocols.common.values import explain_validation_error
from clustering_protocols.records.codec import MEDIA_TYPE
from clustering_protocols.wire.http_headers import digest_field

if TYPE_CHECKING:
    import httpx

PROBLEM_TYPE: Final = "application/problem+json"
_MEDIA_TYPES: Final = frozenset({"application/json", MEDIA_TYPE})

_MAX_TEXT_LENGTH: Final = 4000
"""The maximum number of characters shown of a problem's text."""

_M = TypeVar("_M", bound=BaseModel)


def contribution_headers(content: bytes, digest: str = "") -> dict[str, str]:
    """Return the headers of an upload, reusing the SHA-256 in hex if it is given."""
    announced = digest_field(digest or sha256(content).hexdigest())
    return {"Content-Type": MEDIA_TYPE, "Content-Digest": announced}


def bearer_header(secret: str | None) -> dict[str, str]:
    """Return the Authorization header for a bearer token; empty without a secret.

    Raises Unauthenticated if the secret contains characters that a header cannot carry.
    """
    if not secret:
        return {}
    if not (secret.isascii() and secret.isprintable()):
        raise Unauthenticated("The key contains invalid characters.")
    return {"Authorization": f"Bearer {secret}"}


def raise_problem(response: httpx.Response) -> None:
    """Raise the exception that a problem document describes; return if there is none.

    An HTML page of a proxy is treated as a problem even if its status is a success.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if response.is_success and (kind in _MEDIA_TYPES or not response.content):
        return
    document = _read_document(response.content) if kind == PROBLEM_TYPE else {}
    detail = _text_in(document, "detail") or f"HTTP status {response.status_code}."
    try:
        problem = Problem.from_slug(str(document.get("type")))
    except KeyError:
        # retrying helps with Internal, but not with a missing page
        is_missing = response.status_code == HTTPStatus.NOT_FOUND
        error = InvalidParameters if is_missing else Internal
        raise error(f"{detail} This is not a Coterie analyst.") from None
    if problem is Problem.SESSION_OVER:
        state, reason = _text_in(document, "state"), _text_in(document, "reason")
        raise SessionOver(detail, state, reason or None)
    raise CoterieError.of(problem, detail)


def parse_answer(model: type[_M], content: bytes) -> _M:
    """Parse a JSON response into a model.

    Raises VersionMismatch if the response is invalid, e.g. contains an unknown state.
    """
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise VersionMismatch(
            f"The analyst's answer: {explain_validation_error(error)}"
        ) from None


def _read_document(content: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _text_in(document: Mapping[str, Any], name: str) -> str:
    text = document.get(name)
    return text[:_MAX_TEXT_LENGTH] if isinstance(text, str) else ""

"""Canonical JSON (RFC 8785) of the values on which parties agree."""

from __future__ import annotations

import unicodedata
from hashlib import sha256
from typing import Any, TypeVar

import rfc8785
from pydantic import BaseModel, ValidationError

from clustering_protocols.common.errors import InvalidParameters, Malformed
from clustering_protocols.common.values import Value

_V = TypeVar("_V", bound=Value)


def digest(content: bytes) -> str:
    """Return the SHA-256 (hex) of the exact bytes of terms or an agreement."""
    return sha256(content).hexdigest()


def canonical_json(value: BaseModel) -> bytes:
    """Serialise a value as canonical JSON (RFC 8785), with its text in NFC.

    Raises InvalidParameters for integers beyond 2^53 and for invalid Unicode.
    """
    try:
        return rfc8785.dumps(_to_nfc(value.model_dump(mode="json")))
    except rfc8785.CanonicalizationError:
        raise InvalidParameters(
            "Terms may contain integers only up to 2^53, and only valid Unicode."
        ) from None


def _to_nfc(value: Any) -> Any:
    """Return a JSON value with all its text in NFC.

    Text is normalised before it is escaped, as otherwise an accent after an escaped
    character would be combined with the last letter of the escape sequence.
    """
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        return {_to_nfc(key): _to_nfc(item) for key, item in value.items()}
    return [_to_nfc(item) for item in value] if isinstance(value, list) else value


def parse_as(model: type[_V], text: bytes, noun: str) -> _V:
    """Parse received bytes as a model; raise Malformed if they are not ``noun``."""
    try:
        return model.model_validate_json(text)
    except ValidationError:
        raise Malformed(f"These bytes are not {noun}.") from None

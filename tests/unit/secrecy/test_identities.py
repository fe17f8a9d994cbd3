"""Institutions: their keys, and the cards by which others know them."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from clustering_protocols.common.errors import KeyNotAuthentic, Malformed
from clustering_protocols.secrecy.identities import (
    Card,
    Institution,
    _StoredIdentity,
    check_signature,
    fingerprint,
)

OWN = Institution("St. Mary's", bytes(range(32)))
OTHER = Institution("Analyst Ltd", bytes(32))


def test_a_signature_holds_for_its_key_and_its_bytes_alone() -> None:
    signature = OWN.sign(b"content")
    check_signature(OWN.key, b"content", signature, "a text")
    for key, content, made in (
        (OTHER.key, b"content", signature),
        (OWN.key, b"contents", signature),
        (OWN.key, b"content", OTHER.sign(b"content")),
        (OWN.key, b"content", signature[:-2] + "ff"),
        ("ff" * 32, b"content", signature),  # no point of the curve
    ):
        with pytest.raises(KeyNotAuthentic):
            check_signature(key, content, made, "a text")


def test_a_fingerprint_is_the_key_in_groups_of_four_and_a_refusal_names_four() -> None:
    assert fingerprint("0123456789abcdef" * 4) == " ".join(
        ["0123", "4567", "89ab", "cdef"] * 4
    )
    named = " ".join(fingerprint(OWN.key).split()[:4])
    with pytest.raises(KeyNotAuthentic, match=f"The key {named} … did not sign a text"):
        check_signature(OWN.key, b"content", OTHER.sign(b"content"), "a text")


def test_no_repr_shows_the_private_key() -> None:
    kept = _StoredIdentity.model_validate_json(OWN.to_bytes())
    for shown in (repr(OWN), str(OWN), f"{OWN}", repr(kept), str(kept)):
        assert OWN.key_bytes.hex() not in shown
        assert "St. Mary's" in shown


def test_a_card_is_read_back_and_holds_no_secret() -> None:
    text = OWN.card.model_dump_json().encode()
    read = Card.read(text)
    assert (read.name, read.key) == (OWN.name, OWN.key)
    assert OWN.key_bytes.hex().encode() not in text


@pytest.mark.parametrize(
    "change",
    [
        {"name": "St. Marys"},
        {"key": OTHER.key},
        {"key": OTHER.key, "name": OTHER.name},
        {"signature": OTHER.card.signature},
        {"signature": OWN.sign(b"")},
    ],
    ids=str,
)
def test_a_card_that_was_changed_is_refused(change: dict[str, Any]) -> None:
    changed = json.dumps(OWN.card.model_dump() | change)
    with pytest.raises(KeyNotAuthentic, match="did not sign this card"):
        Card.read(changed.encode())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        json.dumps(OWN.card.model_dump() | {"coterie_card": 2}).encode(),
        json.dumps(OWN.card.model_dump() | {"more": 1}).encode(),
        json.dumps(OWN.card.model_dump() | {"key": OWN.key.upper()}).encode(),
        Institution("", bytes(32)).sign(b"").encode(),
    ],
    ids=["nothing", "object", "list", "version", "more", "capitals", "text"],
)
def test_what_is_no_card_is_malformed(text: bytes) -> None:
    with pytest.raises(Malformed):
        Card.read(text)


@pytest.mark.parametrize("name", ["", "a\x1b[8mb", "a\u202eb", "x" * 101])
def test_a_card_has_a_name_that_can_be_shown(name: str) -> None:
    with pytest.raises(ValidationError):
        Institution(name, bytes(32)).card  # noqa: B018  it is made when it is asked for

"""Keys, marks, envelopes and the agreement: what is changed on the way is refused."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from pydantic import ValidationError

from clustering_protocols.common.errors import EnvelopeRefused, KeyNotAuthentic
from clustering_protocols.secrecy.envelopes import Binding, open_envelope, seal
from clustering_protocols.secrecy.keys import PartyKeys, PublicKeys, safety_number

ENTROPY = bytes(range(32))


def keys(slot: str, session: str = "s", entropy: bytes = ENTROPY) -> PartyKeys:
    return PartyKeys(entropy, session, slot)


def changed(digits: str) -> str:
    return f"{int(digits[0], 16) ^ 8:x}{digits[1:]}"


def test_another_entropy_session_or_slot_gives_other_keys() -> None:
    drawn = [
        keys("a"),
        keys("b"),
        keys("a", session="t"),
        keys("a", entropy=bytes(32)),
        keys("", session="sa"),
        keys("sa", session=""),
    ]
    halves = [half for k in drawn for half in (k.public.x25519, k.public.ed25519)]
    halves += [k.opening.private_bytes_raw().hex() for k in drawn]
    halves += [k.signing.private_bytes_raw().hex() for k in drawn]
    assert len(set(halves)) == 4 * len(drawn)


def test_public_keys_are_lower_case_hex_of_the_private_ones() -> None:
    own = keys("a")
    assert (
        bytes.fromhex(own.public.x25519) == own.opening.public_key().public_bytes_raw()
    )
    assert own.public.sealing_key == own.opening.public_key()
    own.public.verifying_key.verify(own.signing.sign(b"text"), b"text")


@pytest.mark.parametrize(
    "text", ["", "ab" * 31, "ab" * 33, "AB" * 32, "xy" * 32, "ab" * 32 + "\n", None]
)
def test_public_keys_of_another_form_are_refused(text: Any) -> None:
    good = keys("a").public.model_dump()
    for half in good:
        with pytest.raises(ValidationError):
            PublicKeys.model_validate({**good, half: text})


def test_a_repr_of_private_keys_shows_nothing() -> None:
    own = keys("a")
    shown = repr(own) + str(own)
    for half in (own.opening.private_bytes_raw(), own.signing.private_bytes_raw()):
        assert half.hex() not in shown
        assert repr(half) not in shown


def test_a_safety_number_is_twelve_groups_of_five_digits() -> None:
    for agreement in range(50):  # a tenth of all groups begins with a zero
        number = safety_number(bytes([agreement]))
        assert re.fullmatch(r"[0-9]{5}( [0-9]{5}){11}", number)
        assert number == safety_number(bytes([agreement]))


def test_a_safety_number_is_known() -> None:
    """Of SHA-512 over two parts, each after its length in 8 bytes: the label, the bytes."""
    assert safety_number(b"an agreement") == (
        "93001 71850 99796 63498 06270 22616 05474 46770 17742 07290 20049 58104"
    )


@pytest.mark.threat(34)
def test_a_safety_number_changes_with_any_byte() -> None:
    content = b"an agreement"
    variants = {content, content[:-1], content + b" ", b""}
    variants |= {
        content[:i] + bytes([content[i] ^ 1 << bit]) + content[i + 1 :]
        for i in range(len(content))
        for bit in range(8)
    }
    numbers = [safety_number(variant) for variant in variants]
    assert len(set(numbers)) == len(variants) == 8 * len(content) + 4
    last_groups = {number[-5:] for number in numbers}
    assert len(last_groups) > 90  # every group depends on all bytes


ADDRESS = Binding(
    transcript="0" * 64,
    session="s",
    stage="secrets",
    round=1,
    attempt=2,
    sender="a",
    receiver="b",
    kind="group-secret",
)
CONTENT = b"32 bytes"
SENDER, RECEIVER, STRANGER = keys("a"), keys("b"), keys("c")
ENVELOPE = seal(CONTENT, ADDRESS, SENDER, RECEIVER.public)


def opened(
    envelope: bytes = ENVELOPE,
    address: Binding = ADDRESS,
    receiver: PartyKeys = RECEIVER,
    sender: PartyKeys = SENDER,
) -> bytes:
    return open_envelope(envelope, address, receiver, sender.public)


@pytest.mark.parametrize("content", [b"", b"x", CONTENT, bytes(100_000)])
def test_an_envelope_adds_112_bytes_to_its_content(content: bytes) -> None:
    envelope = seal(content, ADDRESS, SENDER, RECEIVER.public)
    assert len(envelope) == len(content) + 64 + 32 + 16
    assert opened(envelope) == content


def test_an_envelope_hides_its_content_and_never_repeats() -> None:
    content = b"something long enough to be found"
    envelopes = [seal(content, ADDRESS, SENDER, RECEIVER.public) for _ in range(2)]
    assert len(set(envelopes)) == 2
    assert all(content[i : i + 4] not in e for e in envelopes for i in range(29))


def test_an_envelope_is_a_signature_before_hpke_in_base_mode() -> None:
    suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
    sealed = ENVELOPE[64:]
    context = ADDRESS.context
    assert suite.decrypt(sealed, RECEIVER.opening, info=context) == CONTENT
    signed = b"".join(
        len(part).to_bytes(8, "big") + part
        for part in (context, sha256(sealed).hexdigest().encode())
    )
    SENDER.public.verifying_key.verify(ENVELOPE[:64], signed)


@pytest.mark.parametrize("field", list(Binding.model_fields))
def test_an_envelope_does_not_open_under_another_address(field: str) -> None:
    value = getattr(ADDRESS, field)
    other = value + 1 if isinstance(value, int) else f"{value}x"
    with pytest.raises(EnvelopeRefused):
        opened(address=ADDRESS.model_copy(update={field: other}))


def test_an_envelope_with_exchanged_fields_does_not_open() -> None:
    for changes in (
        {"sender": "b", "receiver": "a"},
        {"round": 2, "attempt": 1},
        {"session": "secrets", "stage": "s"},
        {"session": "ss", "stage": "ecrets"},
    ):
        with pytest.raises(EnvelopeRefused):
            opened(address=ADDRESS.model_copy(update=changes))


@pytest.mark.parametrize("place", range(len(ENVELOPE)))
def test_an_envelope_with_one_bit_changed_does_not_open(place: int) -> None:
    for bit in (0, 7):
        damaged = bytearray(ENVELOPE)
        damaged[place] ^= 1 << bit
        with pytest.raises(EnvelopeRefused):
            opened(bytes(damaged))


@pytest.mark.parametrize("length", range(len(ENVELOPE)))
def test_a_truncated_envelope_does_not_open(length: int) -> None:
    with pytest.raises(EnvelopeRefused):
        opened(ENVELOPE[:length])


def test_an_envelope_opens_for_its_receiver_alone() -> None:
    for other in (SENDER, STRANGER):
        with pytest.raises(EnvelopeRefused):
            opened(receiver=other)


def test_an_envelope_of_another_sender_does_not_open() -> None:
    with pytest.raises(EnvelopeRefused):
        opened(sender=STRANGER)
    # signed again by a stranger who has the sealed part but not the sender's key
    sealed = ENVELOPE[64:]
    for signer in (STRANGER, RECEIVER):
        forged = seal(CONTENT, ADDRESS, signer, RECEIVER.public)
        for envelope in (forged, forged[:64] + sealed, ENVELOPE[:64] + forged[64:]):
            with pytest.raises(EnvelopeRefused):
                opened(envelope)


@pytest.mark.parametrize("point", [0, 1, 2**255 - 20])
def test_nothing_is_sealed_to_a_key_that_shares_nothing(point: int) -> None:
    low_order = point.to_bytes(32, "little").hex()
    peer = RECEIVER.public.model_copy(update={"x25519": low_order})
    with pytest.raises(KeyNotAuthentic, match="'b'"):
        seal(CONTENT, ADDRESS, SENDER, peer)


def test_a_refused_envelope_names_its_address_without_content() -> None:
    with pytest.raises(EnvelopeRefused) as refused:
        opened(ENVELOPE[:-1])
    assert "from 'a' to 'b', stage 'secrets', round 1, attempt 2" in str(refused.value)
    assert CONTENT.decode() not in str(refused.value)

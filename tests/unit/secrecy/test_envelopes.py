"""Keys, marks, envelopes and the agreement: what is changed on the way is refused."""

import re
from typing import Any

import pytest
from pydantic import ValidationError

from clustering_protocols.common.errors import EnvelopeRefused
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


def test_a_refused_envelope_names_its_address_without_content() -> None:
    with pytest.raises(EnvelopeRefused) as refused:
        opened(ENVELOPE[:-1])
    assert "from 'a' to 'b', stage 'secrets', round 1, attempt 2" in str(refused.value)
    assert CONTENT.decode() not in str(refused.value)

"""The identity of an institution in all its sessions: a name and an Ed25519 key pair.

Every signed message begins with a label that states its purpose. Other institutions
learn the public key from a *card*, a small file that does not pass through the analyst,
or from the terms of a session, in which the coordinator names the key that must join in
a slot.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Final, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clustering_protocols.common.errors import KeyNotAuthentic, Malformed
from clustering_protocols.common.limits import CONTROLS
from clustering_protocols.numerics.randomness import derive_key, length_prefixed

Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Signature = Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]
InstitutionName = Annotated[str, Field(max_length=100, pattern=rf"^[^{CONTROLS}]*$")]

_GROUP: Final = 4


class Card(BaseModel):
    """An institution's public file: its name and public key, with its signature.

    The signature proves that the author of the card holds the private key. The name is
    only as certain as the channel through which the card came.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    coterie_card: Literal[1] = 1
    name: InstitutionName = Field(min_length=1)
    key: Key
    signature: Signature

    @classmethod
    def read(cls, text: bytes) -> Card:
        """Parse a card, and check its signature.

        Raises Malformed if the bytes are not a card. Raises KeyNotAuthentic if the name
        or the key was changed after the card was signed.
        """
        try:
            card = cls.model_validate_json(text)
        except ValidationError:
            raise Malformed("This is not the card of an institution.") from None
        content = _build_card_bytes(card.name, card.key)
        check_signature(card.key, content, card.signature, "this card")
        return card


class _StoredIdentity(BaseModel):
    name: InstitutionName
    private_key: Key = Field(repr=False)


class Institution:
    """The private part of an identity: the institution's name and private key."""

    def __init__(self, name: str, key_bytes: bytes) -> None:
        self.name = name
        self.key_bytes = key_bytes
        self._private = Ed25519PrivateKey.from_private_bytes(key_bytes)

    @classmethod
    def derive(cls, entropy: bytes) -> Institution:
        """Return a nameless institution whose key is derived from 32 bytes of entropy.

        It serves only runs that must be reproducible bit for bit. Any other institution
        generates its key once, and stores it.
        """
        return cls("", derive_key(entropy, "coterie/identity/1"))

    @classmethod
    def read(cls, text: bytes) -> Institution:
        """Parse the file of an identity; raise :class:`Malformed` if it is not one."""
        try:
            stored = _StoredIdentity.model_validate_json(text)
        except ValidationError:
            raise Malformed("This is not the file of an identity.") from None
        return cls(stored.name, bytes.fromhex(stored.private_key))

    def to_bytes(self) -> bytes:
        """Return the content of the identity's file, which nobody else may read."""
        stored = _StoredIdentity(name=self.name, private_key=self.key_bytes.hex())
        return stored.model_dump_json().encode()

    @cached_property
    def key(self) -> str:
        """Return the public key in hex."""
        return self._private.public_key().public_bytes_raw().hex()

    @property
    def card(self) -> Card:
        """Return the institution's card."""
        return Card(
            name=self.name,
            key=self.key,
            signature=self.sign(_build_card_bytes(self.name, self.key)),
        )

    def sign(self, content: bytes) -> str:
        """Return the signature (hex) of bytes that begin with a label of their purpose."""
        return self._private.sign(content).hex()

    def __repr__(self) -> str:
        return f"<Institution {self.name!r}>"


def check_signature(key: str, content: bytes, signature: str, subject: str) -> None:
    """Raise :class:`KeyNotAuthentic` unless the holder of the key signed these bytes.

    subject: what the bytes are, for the error's sentence.
    """
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(signature), content)
    except (InvalidSignature, ValueError):
        raise KeyNotAuthentic(
            f"The key {fingerprint(key)[:19]} … did not sign {subject}."
        ) from None


def fingerprint(key: str) -> str:
    """Format a public key for comparison by people: 16 groups of four hex digits."""
    return " ".join(key[i : i + _GROUP] for i in range(0, len(key), _GROUP))


def _build_card_bytes(name: str, key: str) -> bytes:
    return length_prefixed("coterie/card/1", name, key)

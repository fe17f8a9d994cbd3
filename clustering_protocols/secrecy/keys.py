"""A party's keys for one session, and how other parties verify that they are authentic.

An X25519 and an Ed25519 key pair are derived from the party's entropy. The public keys
pass through the analyst, who could exchange them. So each party's institution signs the
public keys, together with the sizes of its data (:mod:`.identities`), and the party
authenticates the keys by an HMAC under the *session secret*, which the invitations
contain and the analyst never sees.
"""

from __future__ import annotations

import hmac
from functools import cached_property, lru_cache
from hashlib import sha256, sha512

from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from pydantic import BaseModel, ConfigDict, Field

from clustering_protocols.common.errors import KeyNotAuthentic
from clustering_protocols.numerics.randomness import (
    KeyedStream,
    derive_key,
    length_prefixed,
)

_HEX_KEY = Field(pattern=r"^[0-9a-f]{64}$")


class PublicKeys(BaseModel):
    """The public keys of both key pairs (32 bytes each, lower-case hex)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    x25519: str = _HEX_KEY
    ed25519: str = _HEX_KEY

    @property
    def sealing_key(self) -> X25519PublicKey:
        """Return the key with which others seal envelopes to this party."""
        return X25519PublicKey.from_public_bytes(bytes.fromhex(self.x25519))

    @property
    def verifying_key(self) -> Ed25519PublicKey:
        """Return the key with which others check this party's signatures."""
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.ed25519))


class PartyKeys:
    """The private keys, derived from 32 bytes of entropy for one session and slot."""

    def __init__(self, entropy: bytes, session: str, slot: str) -> None:
        key = derive_key(entropy, "coterie/keys/1", session, slot)
        stream = KeyedStream(key)
        self.opening = X25519PrivateKey.from_private_bytes(stream.take(32))
        self.signing = Ed25519PrivateKey.from_private_bytes(stream.take(32))
        self._exchanged: dict[str, bytes] = {}

    @cached_property
    def public(self) -> PublicKeys:
        """Return the public keys."""
        return PublicKeys(
            x25519=self.opening.public_key().public_bytes_raw().hex(),
            ed25519=self.signing.public_key().public_bytes_raw().hex(),
        )

    def exchange(self, peer: PublicKeys) -> bytes:
        """Return the 32-byte X25519 secret that this party shares with a peer.

        Raises :class:`KeyNotAuthentic` if the peer's key is a point of small order.
        """
        if peer.x25519 not in self._exchanged:
            try:
                shared = self.opening.exchange(peer.sealing_key)
            except ValueError:
                raise KeyNotAuthentic("A public key is of small order.") from None
            self._exchanged[peer.x25519] = shared
        return self._exchanged[peer.x25519]

    def __repr__(self) -> str:
        return "<PartyKeys>"


@lru_cache(
    maxsize=512
)  # cached for simulations, which need the keys of all their parties
def party_keys(entropy: bytes, session: str, slot: str) -> PartyKeys:
    """Return a party's keys, which are the same in every round."""
    return PartyKeys(entropy, session, slot)


def compute_mark(session_secret: bytes, line: bytes) -> str:
    """Return the HMAC-SHA256 (hex) that authenticates a party's roster line."""
    content = length_prefixed("coterie/mark/2", line)
    return hmac.new(session_secret, content, sha256).hexdigest()


def check_mark(session_secret: bytes, slot: str, line: bytes, received: str) -> None:
    """Raise :class:`KeyNotAuthentic` unless the mark of a roster line is correct."""
    expected = compute_mark(session_secret, line)
    if not hmac.compare_digest(expected.encode(), received.encode()):
        raise KeyNotAuthentic(
            f"The line of slot {slot!r} has a mark that was not made with the session secret."
        )


def safety_number(agreement: bytes) -> str:
    """Return 60 digits (12 groups of five, 199 bits) computed from an agreement.

    The members compare these digits by telephone. Equal digits mean equal terms, names,
    identities, session keys and sizes. Each program computes the digits from an
    agreement that it has checked, and never accepts digits from the analyst.
    """
    digest = sha512(length_prefixed("coterie/safety/1", agreement)).digest()
    groups = [int.from_bytes(digest[5 * i : 5 * i + 5], "big") for i in range(12)]
    return " ".join(f"{group % 100_000:05d}" for group in groups)

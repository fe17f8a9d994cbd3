"""Envelopes: authenticated encryption from one party to another through the analyst.

HPKE (RFC 9180: X25519, HKDF-SHA256, AES-128-GCM) hides the content. An Ed25519
signature proves who the sender is, which HPKE's base mode does not. Encryption and
signature are bound to the address: transcript, session, stage, round, attempt, sender,
receiver and kind. An envelope that is replayed, sent to another party, or changed in a
single bit does not open.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from clustering_protocols.common.errors import EnvelopeRefused, KeyNotAuthentic
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records.rounds import RoundRef
from clustering_protocols.secrecy.keys import PartyKeys, PublicKeys

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
_SIGNATURE_BYTES: Final = 64


class Binding(RoundRef):
    """The address to which an envelope is bound."""

    transcript: str
    session: str
    sender: str
    receiver: str
    kind: str

    @property
    def context(self) -> bytes:
        """Return the bytes that HPKE takes as ``info``, and that the signature covers."""
        return length_prefixed(
            "coterie/envelope/3",
            self.transcript,
            self.session,
            self.stage,
            self.round,
            self.attempt,
            self.sender,
            self.receiver,
            self.kind,
        )

    def __str__(self) -> str:
        return f"{self.kind!r} from {self.sender!r} to {self.receiver!r}, {self.when}"


def seal(content: bytes, address: Binding, own: PartyKeys, peer: PublicKeys) -> bytes:
    """Seal content to a peer, and sign it. This adds 112 bytes to the content.

    Raises :class:`KeyNotAuthentic` if the peer's key is a point of low order, which no
    honest party generates.
    """
    try:
        sealed = _SUITE.encrypt(content, peer.sealing_key, info=address.context)
    except ValueError:
        raise KeyNotAuthentic(
            f"The public key of {address.receiver!r} cannot hide anything."
        ) from None
    return own.signing.sign(_build_signed_bytes(address, sealed)) + sealed


def open_envelope(
    envelope: bytes, address: Binding, own: PartyKeys, peer: PublicKeys
) -> bytes:
    """Open an envelope, and return its content.

    Raises :class:`EnvelopeRefused` if content, signature, keys or address do not match.
    """
    signature, sealed = envelope[:_SIGNATURE_BYTES], envelope[_SIGNATURE_BYTES:]
    try:
        peer.verifying_key.verify(signature, _build_signed_bytes(address, sealed))
        return _SUITE.decrypt(sealed, own.opening, info=address.context)
    except (InvalidSignature, InvalidTag, ValueError):
        raise EnvelopeRefused(f"Envelope {address}.") from None


def _build_signed_bytes(address: Binding, sealed: bytes) -> bytes:
    return length_prefixed(address.context, sha256(sealed).hexdigest())

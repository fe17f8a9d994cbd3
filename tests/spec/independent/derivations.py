"""What spec/derivations.md says, written from it with numpy and cryptography alone."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256
from statistics import NormalDist
from typing import Final

import numpy as np
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

P: Final = 2**61 - 1
_QUANTILE: Final = NormalDist().inv_cdf
Words = NDArray[np.uint64]
Part = bytes | str | int


class Refusal(Exception):
    """Section 14: a call fails, with the code of a problem."""

    def __init__(self, problem: str) -> None:
        """Section 14: the code."""
        super().__init__(problem)
        self.problem = problem


def lp(*parts: Part) -> bytes:
    """Section 1: parts, each behind its length."""
    written = [_bytes_of(part) for part in parts]
    return b"".join(len(part).to_bytes(8, "big") + part for part in written)


def _bytes_of(part: Part) -> bytes:
    """Section 1: texts, numbers and bytes."""
    if isinstance(part, int):
        return part.to_bytes(8, "big")
    return part.encode() if isinstance(part, str) else part


def derive(secret: bytes, salt: bytes, *info: Part) -> bytes:
    """Section 2: a key."""
    return HKDF(SHA256(), 32, salt=salt or None, info=lp(*info)).derive(secret)


class Stream:
    """Section 2: the stream of a key."""

    def __init__(self, key: bytes) -> None:
        """Section 2: begin it."""
        self._cipher = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()

    def words(self, size: int) -> Words:
        """Section 2: words."""
        return np.frombuffer(self._cipher.update(bytes(8 * size)), "<u8")

    def uniform(self, size: int) -> NDArray[np.float64]:
        """Section 2: uniform numbers."""
        shifted = (self.words(size) >> np.uint64(12)).astype(np.float64)
        return (shifted + 0.5) * 2.0**-52

    def permutation(self, size: int) -> list[int]:
        """Section 2: a permutation."""
        words = self.words(size).tolist()
        return sorted(range(size), key=words.__getitem__)

    def normal(self, *shape: int) -> NDArray[np.float64]:
        """Section 2: normal numbers."""
        drawn = self.uniform(int(np.prod(shape))).tolist()
        return np.array([_QUANTILE(each) for each in drawn]).reshape(shape)

    def rotation(self, size: int) -> NDArray[np.float64]:
        """Section 2, own chance: a rotation."""
        Q, T = np.linalg.qr(self.normal(size, size))
        return Q * np.where(np.diagonal(T) < 0, -1.0, 1.0)

    def residues(self, size: int) -> list[int]:
        """Section 2: residues."""
        drawn = [int(word) & P for word in self.words(size)]
        while rejected := [place for place, each in enumerate(drawn) if each == P]:
            again = self.words(len(rejected)).tolist()
            for place, word in zip(rejected, again, strict=True):
                drawn[place] = word & P
        return drawn


def exchange(own: X25519PrivateKey, public: str) -> bytes:
    """Section 2: what two keys share."""
    try:
        return own.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(public)))
    except ValueError:
        raise Refusal("key-not-authentic") from None


def own_stream(
    entropy: bytes, transcript: str, purpose: str, session: str, slot: str, stage: str
) -> Stream:
    """Section 2: a party's own chance, of one attempt or of all."""
    labels: tuple[str, ...] = ("coterie/draw/2", transcript, purpose)
    if not transcript:
        labels = ("coterie/lasting-draw/1", purpose)
    return Stream(derive(entropy, b"", *labels, session, slot, stage))


def party_keys(
    entropy: bytes, session: str, slot: str
) -> tuple[X25519PrivateKey, Ed25519PrivateKey]:
    """Section 2: the keys of a party in one session."""
    stream = Stream(derive(entropy, b"", "coterie/keys/1", session, slot))
    drawn = stream.words(8).tobytes()
    return (
        X25519PrivateKey.from_private_bytes(drawn[:32]),
        Ed25519PrivateKey.from_private_bytes(drawn[32:]),
    )


def group_mark(
    secret: bytes, agreement: str, purpose: str, names: Sequence[str]
) -> str:
    """Section 11: the digest of ids or names under a group's key."""
    digest = hmac.new(group_key(secret, agreement, purpose), digestmod=sha256)
    for name in names:
        digest.update(lp(name))
    return digest.hexdigest()


def mark(session_secret: bytes, written_line: bytes) -> str:
    """Section 5: the mark of a written line."""
    bound = lp("coterie/mark/2", written_line)
    return hmac.new(session_secret, bound, sha256).hexdigest()


def signed_line(session: str, terms: str, line: bytes) -> bytes:
    """Section 5: a written line."""
    return lp("coterie/line/1", session, terms, line)


_SUITE: Final = hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)


def open_envelope(
    envelope: bytes, info: bytes, own: X25519PrivateKey, sender: Ed25519PublicKey
) -> bytes:
    """Section 8: the content of an envelope."""
    signature, sealed = envelope[:64], envelope[64:]
    try:
        sender.verify(signature, lp(info, sha256(sealed).hexdigest()))
        return _SUITE.decrypt(sealed, own, info=info)
    except (InvalidSignature, InvalidTag, ValueError):
        raise Refusal("envelope-refused") from None


def seal_envelope(
    content: bytes, info: bytes, own: Ed25519PrivateKey, receiver: X25519PublicKey
) -> bytes:
    """Section 8: an envelope."""
    sealed = _SUITE.encrypt(content, receiver, info=info)
    return own.sign(lp(info, sha256(sealed).hexdigest())) + sealed


def group_key(secret: bytes, agreement: str, purpose: str) -> bytes:
    """Section 9: the key of a purpose."""
    return derive(secret, bytes.fromhex(agreement), "coterie/group/1", purpose)


def sum_label(transcript: str, name: str, members: Sequence[str]) -> str:
    """Section 10, 1: the label of a sum."""
    return sha256(lp(transcript, name, *members)).hexdigest()


def tag(words: Words, stream: Stream) -> int:
    """Section 10, 2: the tag of words."""
    weights, (base,) = stream.residues(1024), stream.residues(1)
    terms = (
        weights[place % 1024] * pow(base, place // 1024, P) * word
        for place, word in enumerate(words.view(np.int64).tolist())
    )
    return sum(terms) % P


def fixed_point(
    bounds: NDArray[np.float64], bits: int, numbers: NDArray[np.float64]
) -> tuple[NDArray[np.float64], Words]:
    """Section 10: units, and real numbers as words."""
    units = 2.0 ** np.minimum(bits - np.frexp(bounds)[1], 900).astype(np.float64)
    whole = np.rint(numbers * units)
    if not (np.abs(whole) <= bounds * units + 2.0**20).all():
        raise Refusal("guard-refused")
    return units, whole.astype(np.int64).view(np.uint64)


def share(
    words: Words,
    label: str,
    transcript: str,
    slot: str,
    keys: tuple[X25519PrivateKey, Mapping[str, str]],
    group: tuple[bytes, str],
    *,
    blind: bool = True,
    least: int = 3,
) -> Words:
    """Section 10, 2 to 6: the share of a sum.

    keys: the slot's own, and those of all members in the order of slots.
    group: secret, and digest of the agreement.
    least: of members.
    """
    order = list(keys[1])
    if len(order) < least or slot not in order:
        raise Refusal("guard-refused")
    masked, residue = mask(words, label, transcript, slot, keys)
    tagged = tag(words, Stream(group_key(*group, f"tag/{label}"))) + residue
    if slot == order[0]:
        if blind:
            masked += Stream(group_key(*group, f"blind/{label}")).words(len(words))
        tagged += Stream(group_key(*group, f"blind-tag/{label}")).residues(1)[0]
    return np.append(masked, np.uint64(tagged % P))


def mask(
    words: Words,
    label: str,
    transcript: str,
    slot: str,
    keys: tuple[X25519PrivateKey, Mapping[str, str]],
) -> tuple[Words, int]:
    """Section 10, 5: words under pairwise masks, and what goes to the tag."""
    own, members = keys
    order, hidden, tagged = list(members), words.copy(), 0
    for peer in order:
        if peer != slot:
            earlier, later = sorted((slot, peer), key=order.index)
            stream = Stream(
                derive(
                    exchange(own, members[peer]),
                    bytes.fromhex(transcript),
                    *("coterie/pair/3", earlier, later, "coterie/mask/2", label),
                )
            )
            drawn = stream.words(len(words))
            hidden = hidden + drawn if slot == earlier else hidden - drawn
            residue = stream.residues(1)[0]
            tagged += residue if slot == earlier else -residue
    return hidden, tagged


def read_total(
    total: Words,
    label: str,
    group: tuple[bytes, str],
    largest: NDArray[np.float64] | float,
    *,
    blind: bool = True,
) -> Words:
    """Section 10, 7 and 8: the words of a total.

    largest: what no word exceeds, in units.
    """
    words, told = total[:-1].copy(), int(total[-1])
    if blind:
        words -= Stream(group_key(*group, f"blind/{label}")).words(len(words))
    small = np.abs(words.view(np.int64).astype(np.float64))
    if told >= P or not ((small < 2.0**60) & (small <= largest)).all():
        raise Refusal("protocol-failed")
    shift = Stream(group_key(*group, f"blind-tag/{label}")).residues(1)[0]
    expected = tag(words, Stream(group_key(*group, f"tag/{label}")))
    if (told - shift) % P != expected:
        raise Refusal("protocol-failed")
    return words

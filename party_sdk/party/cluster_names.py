"""What people call the clusters of a session, at home and in letters to others.

A letter is a file. Anyone who carries it reads from whom to whom it is, and no name. Sender
and receiver have one key for it, from the keys that the agreement names: AES-SIV (RFC
5297). The sender's institution signs.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from pydantic import Field, TypeAdapter

from clustering_protocols.common.errors import EnvelopeRefused, InvalidParameters
from clustering_protocols.common.values import Value
from clustering_protocols.numerics.randomness import derive_key, length_prefixed
from clustering_protocols.secrecy.envelopes import Binding
from clustering_protocols.secrecy.identities import (
    Institution,
    Signature,
    check_signature,
)
from clustering_protocols.secrecy.keys import PartyKeys
from clustering_protocols.terms.agreements import read_agreement
from clustering_protocols.terms.canonical import read_as
from clustering_protocols.terms.terms import Name, Terms
from party_sdk.home.encryption import SecretFiles

LONGEST: Final = 40
_FILE: Final = "cluster-names.json"
_KEYS: Final = "cluster-name-keys.json"
_LETTERS: Final = "cluster-name-letters.json"
_REMEDY: Final = "Name a cluster by its number: --name 3=SIDD; --name 3= takes it back."


LARGEST: Final = 1 << 22
"""Bytes of a letter at most: ten thousand names of forty characters fit."""

_NAMES: Final = TypeAdapter(dict[int, str])
_STAGE: Final = "names"
_KIND: Final = "cluster-names"


class NameLetter(Value):
    """A letter as it travels.

    number: of the sender's letters, counted from 1: an earlier one is not read again.
    sealed: base64.
    signature: of the sender's institution, hex.
    """

    coterie: Literal["cluster-names/1"] = "cluster-names/1"
    session: Name
    sender: Name
    receiver: Name
    number: int = Field(ge=1, lt=2**31)
    sealed: str = Field(max_length=LARGEST)
    signature: Signature


class LetterWriter(NamedTuple):
    """Who writes letters: the slot, its institution, and its keys by reader."""

    slot: str
    institution: Institution
    keys: Mapping[str, bytes]


class SentNames(NamedTuple):
    """What one party calls the clusters, and the number of its letter."""

    sender: str
    number: int
    names: dict[int, str]


@dataclass(frozen=True, slots=True)
class ClusterNames:
    """The names that a party keeps in its folder: its own, and those of letters."""

    folder: Path
    files: SecretFiles

    def read(self) -> tuple[str, ...]:
        """Return the own name of each cluster, '' for none; empty where none is kept."""
        return _in_order(self._load(_FILE))

    def change(self, names: Mapping[int, str], n_clusters: int) -> tuple[str, ...]:
        """Keep new names beside the others, and return all; an empty one is taken back.

        Raises InvalidParameters if a cluster does not exist, a name is no line of 1 to
            40 printable characters, or two clusters have the same.
        """
        check_names(names, n_clusters)
        kept = dict(enumerate(self.read()))
        kept |= {cluster: name.strip() for cluster, name in names.items()}
        given = {c: name for c, name in kept.items() if name}
        if len(set(given.values())) < len(given):
            raise InvalidParameters("Two clusters have the same name.", remedy=_REMEDY)
        self._keep(_FILE, given)
        return self.read()

    def keep_keys(self, keys: Mapping[str, bytes]) -> None:
        """Keep the keys of letters, by slot; those of the session go."""
        if keys:
            self._keep(_KEYS, {slot: key.hex() for slot, key in keys.items()})

    def keys(self) -> dict[str, bytes]:
        """Return the keys of letters, by slot; empty where nobody reads the profile."""
        return {slot: bytes.fromhex(key) for slot, key in self._load(_KEYS).items()}

    def number_letters(self) -> int:
        """Return the number of the letters that are written now: one above the last."""
        kept = self._load(_LETTERS)
        kept["sent"] = kept.get("sent", 0) + 1
        self._keep(_LETTERS, kept)
        number: int = kept["sent"]
        return number

    def receive(self, letter: SentNames, n_clusters: int) -> None:
        """Keep the names of an opened letter in place of the sender's earlier ones.

        Raises EnvelopeRefused if a later letter of this sender was read before.
        Raises InvalidParameters if a name or a number does not fit.
        """
        kept = self._load(_LETTERS)
        received = kept.setdefault("received", {})
        last = received.get(letter.sender, {}).get("number", 0)
        if letter.number < last:
            raise EnvelopeRefused(
                f"Letter {letter.number} of {letter.sender!r} comes after letter {last}: "
                "an earlier one is not read again."
            )
        check_names(letter.names, n_clusters)
        received[letter.sender] = {"number": letter.number, "names": letter.names}
        self._keep(_LETTERS, kept)

    def read_received(self) -> dict[str, tuple[str, ...]]:
        """Return what other parties call each cluster, by slot; '' for no name."""
        received = self._load(_LETTERS).get("received", {})
        return {slot: _in_order(each["names"]) for slot, each in received.items()}

    def _load(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        kept: dict[str, Any] = (
            json.loads(self.files.read(path)) if path.exists() else {}
        )
        return kept

    def _keep(self, name: str, kept: Mapping[Any, Any]) -> None:
        self.files.write(self.folder / name, json.dumps(kept).encode())


def check_names(names: Mapping[int, str], n_clusters: int) -> None:
    """Refuse names that are no line of text: what controls or turns a line is none.

    Raises InvalidParameters.
    """
    for cluster, name in names.items():
        if not 0 <= cluster < n_clusters:
            raise InvalidParameters(
                f"There is no cluster {cluster}: they are 0 to {n_clusters - 1}.",
                remedy=_REMEDY,
            )
        if len(name) > LONGEST or not name.isprintable():
            raise InvalidParameters(
                f"A name has 1 to {LONGEST} printable characters; that of cluster "
                f"{cluster} has others, or {len(name)}.",
                remedy=_REMEDY,
            )


def _in_order(kept: Mapping[str, str]) -> tuple[str, ...]:
    names = {int(cluster): name for cluster, name in kept.items()}
    return tuple(names.get(c, "") for c in range(1 + max(names, default=-1)))


def profile_readers(terms: Terms, slot: str) -> tuple[str, ...]:
    """Return who reads the profile that a slot reads, without the slot itself."""
    layout, release = terms.layout, terms.release
    if release is None:
        return ()
    column = layout.slot(slot).column
    if release.profiles == "everybody":
        adds_up = any(map(layout.adds_up, range(layout.n_column_groups)))
        readers = layout.names if adds_up else ()
    else:
        readers = layout.column_group(column) if layout.adds_up(column) else ()
    return tuple(each for each in readers if each != slot)


def pair_keys(agreement: bytes, keys: PartyKeys, slot: str) -> dict[str, bytes]:
    """Return a key for each who reads the profile, 32 bytes by slot.

    Both compute the same from their keys of the session. These go at its end; from what
    is kept nobody computes them.
    """
    agreed, terms = read_agreement(agreement)
    return {
        peer: derive_key(
            keys.exchange(agreed.member(peer).keys),
            "coterie/names/1",
            sha256(agreement).hexdigest(),
            *sorted((slot, peer)),
        )
        for peer in profile_readers(terms, slot)
    }


def write_letters(
    names: Mapping[int, str], number: int, agreement: bytes, sender: LetterWriter
) -> dict[str, bytes]:
    """Return a letter to each who reads the profile, by slot.

    Raises InvalidParameters if nobody else does.
    """
    _, terms = read_agreement(agreement)
    content = json.dumps(dict(names), sort_keys=True).encode()
    letters = {}
    for receiver, key in sender.keys.items():
        address = _address(agreement, terms, sender.slot, receiver, number)
        sealed = AESSIV(key).encrypt(content, [address.context])
        letter = NameLetter(
            session=terms.session,
            sender=sender.slot,
            receiver=receiver,
            number=number,
            sealed=b64encode(sealed).decode(),
            signature=sender.institution.sign(_build_signed_bytes(address, sealed)),
        )
        letters[receiver] = letter.model_dump_json(indent=1).encode()
    if not letters:
        raise InvalidParameters(
            "Nobody else reads the profile of this session: names go to nobody.",
            remedy="Names stay in your own reports. Terms with --profiles release more.",
        )
    return letters


def read_letter(
    text: bytes, agreement: bytes, keys: Mapping[str, bytes], slot: str
) -> SentNames:
    """Return what a letter to this slot says.

    keys: of the reader, see :func:`pair_keys`.

    Raises Malformed if the bytes are no letter.
    Raises EnvelopeRefused if it is too large, of another session, to another party,
        changed, of a party that does not read this profile, or not sealed by whom it
        names.
    Raises KeyNotAuthentic if that party's institution did not sign it.
    """
    if len(text) > LARGEST:
        raise EnvelopeRefused("This is too large for a letter.")
    letter = read_as(NameLetter, text)
    agreed, terms = read_agreement(agreement)
    if letter.session != terms.session or letter.receiver != slot:
        raise EnvelopeRefused(
            f"The letter is to {letter.receiver!r} of session {letter.session!r}, not to "
            f"{slot!r} of {terms.session!r}."
        )
    if letter.sender not in keys:
        raise EnvelopeRefused(
            f"{letter.sender!r} is no other party that reads this profile."
        )
    address = _address(agreement, terms, letter.sender, slot, letter.number)
    try:
        sealed = b64decode(letter.sealed, validate=True)
        content = AESSIV(keys[letter.sender]).decrypt(sealed, [address.context])
        names = _NAMES.validate_json(content)
    except (InvalidTag, ValueError):
        raise EnvelopeRefused(f"The letter of {letter.sender!r}.") from None
    signer = agreed.member(letter.sender).identity
    check_signature(signer, _build_signed_bytes(address, sealed), letter.signature)
    return SentNames(letter.sender, letter.number, names)


def _build_signed_bytes(address: Binding, sealed: bytes) -> bytes:
    return length_prefixed(address.context, sha256(sealed).hexdigest())


def _address(
    agreement: bytes, terms: Terms, sender: str, receiver: str, number: int
) -> Binding:
    """Return what a letter is bound to: who agreed to what, from whom, to whom, which."""
    return Binding(
        transcript=sha256(agreement).hexdigest(),
        session=terms.session,
        stage=_STAGE,
        round=number,
        attempt=1,
        sender=sender,
        receiver=receiver,
        kind=_KIND,
    )

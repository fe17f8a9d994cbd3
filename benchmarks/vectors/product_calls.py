"""Calls of the vectors, answered by the product: chance, statements, sums, envelopes.

Each takes the input of a case and returns its output. spec/conformance.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from benchmarks.vectors.known_parties import KnownParties
from clustering_protocols.numerics.randomness import (
    KeyedStream,
    derive_key,
    length_prefixed,
)
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy import envelopes, field, tags
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import PartyKeys, PublicKeys, mark, safety_number
from clustering_protocols.shared_stages.alignment.digests import digest_names
from clustering_protocols.shared_stages.alignment.identifiers import normalise_id
from clustering_protocols.shared_stages.masked_sums import read, share
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member, RosterEntry
from clustering_protocols.terms.canonical import canonical_json, digest
from party_sdk.analyst_client.invitations import Invitation

Input = dict[str, Any]
Output = dict[str, Any]
_NO_KEY: Final = "00" * 32


def _parts(given: Input, name: str) -> list[bytes | str | int]:
    """Return parts: texts, numbers, and bytes as {"hex": …}."""
    return [
        bytes.fromhex(part["hex"]) if isinstance(part, dict) else part
        for part in given[name]
    ]


def _stream(given: Input) -> KeyedStream:
    return KeyedStream(bytes.fromhex(given["key"]))


def as_words(text: list[str]) -> WordArray:
    """Return words that are written as decimal text."""
    return np.array([int(word) for word in text], dtype=np.uint64)


def as_text(words: WordArray) -> list[str]:
    """Return words as decimal text."""
    return [str(word) for word in words.tolist()]


# Sections 1 and 2


def join_parts(given: Input) -> Output:
    """Join parts, each behind its length."""
    return {"bytes": length_prefixed(*_parts(given, "parts")).hex()}


def derive(given: Input) -> Output:
    """Derive a key."""
    secret, salt = bytes.fromhex(given["secret"]), bytes.fromhex(given["salt"])
    return {"key": derive_key(secret, *_parts(given, "info"), salt=salt).hex()}


def draw_words(given: Input) -> Output:
    """Draw several lists of words from one stream."""
    stream = _stream(given)
    return {"words": [as_text(stream.words(size)) for size in given["sizes"]]}


def draw_uniform(given: Input) -> Output:
    """Draw uniform numbers."""
    return {"numbers": _stream(given).uniform(given["size"]).tolist()}


def draw_normal(given: Input) -> Output:
    """Draw normal numbers."""
    return {"numbers": _stream(given).normal(given["size"]).tolist()}


def draw_permutation(given: Input) -> Output:
    """Draw a permutation."""
    return {"order": _stream(given).permutation(given["size"]).tolist()}


class _WordsInTurn(KeyedStream):
    """A stream of words that are given."""

    def __init__(self, words: list[str]) -> None:
        self._left = words

    def fill(self, out: WordArray) -> None:
        """Take the next words."""
        out[:] = as_words(self._left[: out.size])
        self._left = self._left[out.size :]


def draw_residues(given: Input) -> Output:
    """Draw residues from the words of a stream, which are given."""
    return {
        "residues": as_text(field.draw(_WordsInTurn(given["words"]), given["size"]))
    }


def exchange(given: Input) -> Output:
    """Return what two X25519 keys share."""
    own = PartyKeys(bytes(32), "", "")
    own.opening = X25519PrivateKey.from_private_bytes(bytes.fromhex(given["private"]))
    peer = PublicKeys(x25519=given["public"], ed25519=_NO_KEY)
    return {"shared": own.exchange(peer).hex()}


def draw_party_keys(given: Input) -> Output:
    """Return a party's keys of a session."""
    keys = PartyKeys(bytes.fromhex(given["entropy"]), given["session"], given["slot"])
    return {
        "x25519_private": keys.opening.private_bytes_raw().hex(),
        "ed25519_private": keys.signing.private_bytes_raw().hex(),
        **keys.public.model_dump(),
    }


def draw_own_words(given: Input) -> Output:
    """Draw words that are a party's own, for a purpose of one attempt or of all."""
    bound = (given["session"], given["slot"], given["stage"])
    labels: tuple[str, ...] = ("coterie/draw/2", given["transcript"], given["purpose"])
    if not given["transcript"]:
        labels = ("coterie/lasting-draw/1", given["purpose"])
    key = derive_key(bytes.fromhex(given["entropy"]), *labels, *bound)
    return {"words": as_text(KeyedStream(key).words(given["size"]))}


# Section 5


def write_line(given: Input) -> Output:
    """Write, mark and sign a line of the roster."""
    line = RosterEntry.model_validate(given["line"])
    written = length_prefixed(
        "coterie/line/1", given["session"], given["terms"], canonical_json(line)
    )
    institution = Institution("", bytes.fromhex(given["private"]))
    return {
        "written": written.hex(),
        "mark": mark(bytes.fromhex(given["session_secret"]), written),
        "signature": institution.sign(written),
    }


def prove_join(given: Input) -> Output:
    """Sign the proof of a join."""
    member = Member.model_validate(given["member"])
    proof = roster_entries.prove(
        bytes.fromhex(given["entropy"]),
        *(given["session"], member, given["code"], given["joins"]),
    )
    return {"proof": proof}


def read_invitation(given: Input) -> Output:
    """Read an invitation."""
    found = Invitation.parse(given["text"])
    names = ("url", "session", "slot", "code", "terms", "coordinator")
    return {name: getattr(found, name) for name in names} | {
        "session_secret": found.secret.hex()
    }


def check_agreement(given: Input) -> Output:
    """Check an agreement; return its digest."""
    own = given.get("own")
    roster_entries.check_agreement(
        given["agreement"].encode(),
        given["terms"].encode(),
        bytes.fromhex(given["session_secret"]),
        None if own is None else Member.model_validate(own),
    )
    return {"digest": digest(given["agreement"].encode())}


def number_agreement(given: Input) -> Output:
    """Return the safety number of an agreement."""
    return {"digits": safety_number(given["agreement"].encode())}


# Section 8


def open_envelope(given: Input) -> Output:
    """Open an envelope."""
    own = PartyKeys(bytes(32), "", "")
    own.opening = X25519PrivateKey.from_private_bytes(bytes.fromhex(given["private"]))
    peer = PublicKeys(x25519=_NO_KEY, ed25519=given["sender_ed25519"])
    names = ("transcript", "session", "stage", "round", "attempt", "sender", "receiver")
    binding = envelopes.Binding(**{name: given[name] for name in (*names, "kind")})
    sealed = bytes.fromhex(given["envelope"])
    return {"content": envelopes.open_envelope(sealed, binding, own, peer).hex()}


# Sections 9 to 11


def bring_into_form(given: Input) -> Output:
    """Return the normal form of an id."""
    return {"form": normalise_id(given["id"], given["steps"])}


def compare_group(given: Input) -> Output:
    """Return the HMAC of names under a group's key."""
    key = _group_key(given, f"alignment/{given['scope']}")
    return {"digest": digest_names(key, given["names"])}


def order_rows(given: Input) -> Output:
    """Return the order in which a row group's rows travel."""
    key = _group_key(given, "row-order")
    return {"order": KeyedStream(key).permutation(given["size"]).tolist()}


def _group_key(given: Input, purpose: str) -> bytes:
    secret, salt = bytes.fromhex(given["secret"]), bytes.fromhex(given["agreement"])
    return derive_key(secret, "coterie/group/1", purpose, salt=salt)


def take_tag(given: Input) -> Output:
    """Return the tag of words."""
    return {"tag": str(tags.tag(as_words(given["words"]), _stream(given)))}


def encode_numbers(given: Input) -> Output:
    """Write real numbers as words."""
    point = FixedPoint.of(np.array(given["bounds"], dtype=np.float64), given["bits"])
    words = point.encode(np.array(given["numbers"], dtype=np.float64))
    return {"units": point.unit.tolist(), "words": as_text(words)}


def make_share(given: Input) -> Output:
    """Return a share of a sum."""
    parties = KnownParties(len(given["members"]))
    context = parties.context(given["slot"], given["transcript"])
    of = parties.check(given).masked_sum(context, given)
    words = as_words(given["words"])
    made = share(context, words, of, "column", blinded=given["blind"])
    return {"label": of.label, "share": as_text(made)}


def read_total(given: Input) -> Output:
    """Read the total of a sum."""
    parties = KnownParties(len(given["members"]))
    context = parties.context(given["slot"], given["transcript"])
    of = parties.check(given).masked_sum(context, given)
    largest = int(given["largest"])

    def fits(words: WordArray) -> bool:
        return bool((np.abs(words.view(np.int64)) <= largest).all())

    total = as_words(given["total"])
    words = read(context, total, of, "column", fits, blinded=given["blind"])
    return {"words": as_text(words)}


CALLS: Final[dict[str, Callable[[Input], Output]]] = {
    "lp": join_parts,
    "derive": derive,
    "words": draw_words,
    "uniform": draw_uniform,
    "normal": draw_normal,
    "permutation": draw_permutation,
    "residues": draw_residues,
    "exchange": exchange,
    "party-keys": draw_party_keys,
    "own-words": draw_own_words,
    "line": write_line,
    "join-proof": prove_join,
    "invitation": read_invitation,
    "agreement": check_agreement,
    "safety-number": number_agreement,
    "open-envelope": open_envelope,
    "normal-form": bring_into_form,
    "alignment-digest": compare_group,
    "row-order": order_rows,
    "tag": take_tag,
    "fixed-point": encode_numbers,
    "share": make_share,
    "total": read_total,
}

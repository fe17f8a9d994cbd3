"""Sections 4, 5 and 7: what a party checks before it answers, and what it signs."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256, sha512
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from .derivations import Refusal, lp, mark, signed_line
from .records import canonical

_NAME: Final = r"[a-z0-9][a-z0-9-]{0,62}"
_INVITATION: Final = re.compile(
    rf"(?P<url>https?://[^\s#]+)#coterie-2/(?P<session>{_NAME})/(?P<slot>{_NAME})/"
    r"(?P<code>[\w-]+)/(?P<session_secret>[0-9a-f]{64})/(?P<terms>[0-9a-f]{64})/"
    r"(?P<coordinator>[0-9a-f]{64})/(?P<signature>[0-9a-f]{128})"
)


def is_signed(key: str, signature: str, content: bytes) -> bool:
    """Section 1: whether the holder of an Ed25519 key signed these bytes."""
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(signature), content)
    except (InvalidSignature, ValueError):
        return False
    return True


def read_invitation(text: str) -> dict[str, str]:
    """Section 4: an invitation, as a mail may have wrapped it."""
    before, sign, after = text.rpartition("#coterie-2/")
    address = before.split()[-1].lstrip("<(\"'") if before.split() else ""
    found = _INVITATION.match(address + sign + re.sub(r"[\s>]+", "", after))
    if found is None:
        raise Refusal("invitation-unreadable")
    said = found.groupdict()
    signature = said.pop("signature")
    if not is_signed(
        said["coordinator"], signature, lp("coterie/terms/1", said["terms"])
    ):
        raise Refusal("invitation-unreadable")
    return said


def line_of(member: Mapping[str, Any]) -> dict[str, Any]:
    """Section 5: a line without mark and signature."""
    return {k: v for k, v in member.items() if k not in {"mark", "signature"}}


def write_line(
    line: Mapping[str, Any], session: str, terms: str, secret: bytes, private: bytes
) -> dict[str, str]:
    """Section 5: the written line, its mark and its signature."""
    written = signed_line(session, terms, canonical(line).encode())
    key = Ed25519PrivateKey.from_private_bytes(private)
    return {
        "written": written.hex(),
        "mark": mark(secret, written),
        "signature": key.sign(written).hex(),
    }


def prove_join(
    private: bytes, session: str, member: Mapping[str, Any], code: str, joins: int
) -> str:
    """Section 5: the proof of a join."""
    digest = sha256(code.encode()).hexdigest()
    said = lp("coterie/join/3", session, canonical(member), digest, joins)
    return Ed25519PrivateKey.from_private_bytes(private).sign(said).hex()


def check_agreement(
    agreement: str, terms: str, secret: bytes, own: Mapping[str, Any] | None
) -> str:
    """Section 5: the digest of an agreement that was checked."""
    read = json.loads(agreement)
    agreed = json.loads(read["terms"])
    roster = read["roster"]
    slots = [slot["name"] for slot in agreed["layout"]["slots"]]
    if [member["slot"] for member in roster] != slots:
        raise Refusal("malformed")
    if read["terms"] != terms:
        raise Refusal("agreement-mismatch")
    if own is not None and roster[slots.index(own["slot"])] != own:
        raise Refusal("agreement-mismatch")
    digest = sha256(terms.encode()).hexdigest()
    named = agreed.get("identities", {}).get("slots", {})
    for member in roster:
        written = signed_line(
            agreed["session"], digest, canonical(line_of(member)).encode()
        )
        good = (
            hmac.compare_digest(mark(secret, written), member["mark"])
            and member["identity"] == named.get(member["slot"], member["identity"])
            and is_signed(member["identity"], member["signature"], written)
        )
        if not good:
            raise Refusal("key-not-authentic")
    return sha256(agreement.encode()).hexdigest()


def safety_number(agreement: str) -> str:
    """Section 5: the number that people compare."""
    digest = sha512(lp("coterie/safety/1", agreement)).digest()
    groups = [int.from_bytes(digest[5 * n : 5 * n + 5], "big") for n in range(12)]
    return " ".join(f"{group % 100_000:05d}" for group in groups)


def digest_line(line: str) -> str:
    """Section 7: the transcript up to a line."""
    return sha256(line.encode()).hexdigest()


_SAID: Final = {"stage", "round", "attempt", "asks", "left_out", "told"}


def follow(
    lines: Sequence[str], agreement: str, number: int, digest: str
) -> list[tuple[dict[str, Any], str]]:
    """Section 7: the attempts that follow a known line, each with its transcript."""
    found = []
    for line in lines:
        try:
            said = json.loads(line)
        except ValueError:
            raise Refusal("task-refused") from None
        first = set(said) == {"number", "previous", "agreement"} and said["number"] == 1
        if not first and set(said) != _SAID | {"number", "previous"}:
            raise Refusal("task-refused")
        if first and said["agreement"] != agreement:
            raise Refusal("task-refused")
        if said["number"] <= number:
            known = digest_line(line)
            if said["number"] == number and known != digest:
                raise Refusal("task-refused")
            continue
        if said["number"] != number + 1 or said["previous"] != digest:
            raise Refusal("task-refused")
        number, digest = said["number"], digest_line(line)
        if not first:
            found.append((said, digest))
    return found


def sign_transcript(private: Ed25519PrivateKey, stage: str, transcript: str) -> str:
    """Section 7: the signature of the opening or the closing."""
    return private.sign(lp("coterie/transcript/1", stage, transcript)).hex()


def check_signatures(
    stage: str,
    transcript: str,
    keys: Mapping[str, str],
    signatures: Sequence[str],
    least: int,
) -> None:
    """Section 7: the signatures of all slots; zeros of those that are absent."""
    came = [each for each in signatures if int(each, 16)]
    if len(signatures) != len(keys) or len(came) < least:
        raise Refusal("protocol-failed")
    said = lp("coterie/transcript/1", stage, transcript)
    for key, signature in zip(keys.values(), signatures, strict=True):
        if int(signature, 16) and not is_signed(key, signature, said):
            raise Refusal("protocol-failed")

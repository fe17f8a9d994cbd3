"""Calls of the vectors, answered by the product: records, packets and the transcript."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import RootModel

from clustering_protocols.engine import packets, signatures, transcript
from clustering_protocols.records import codec, hash_chain, json_form
from clustering_protocols.secrecy.keys import PublicKeys
from clustering_protocols.terms.canonical import canonical_json

Input = dict[str, Any]
Output = dict[str, Any]


def to_base64(content: bytes) -> str:
    """Return bytes as text."""
    return base64.b64encode(content).decode()


def write_canonical(given: Input) -> Output:
    """Write a JSON value in its canonical form."""
    return {"text": canonical_json(RootModel[Any](given["value"])).decode()}


def write_record(given: Input) -> Output:
    """Write header and arrays as bytes."""
    return {"bytes": to_base64(json_form.to_bytes(json.dumps(given).encode()))}


def read_record(given: Input) -> Output:
    """Read header and arrays from bytes."""
    return json_form.of_bytes(base64.b64decode(given["bytes"]))


def read_packet(given: Input) -> Output:
    """Read a packet."""
    packet = packets.read(base64.b64decode(given["bytes"]))
    arrays = json_form.of_bytes(codec.encode({}, packet.arrays))["arrays"]
    header = packet.header.model_dump(mode="json")
    sealed = [envelope.sealed.hex() for envelope in packet.envelopes]
    return {
        **header,
        "record": packet.header.record,
        "arrays": arrays,
        "own": list(packet.own),
        "sealed": sealed,
        "content_digest": packet.content_digest,
        "lines": list(packet.history),
        "signatures": [bytes(row).hex() for row in packet.signatures],
    }


def follow_lines(given: Input) -> Output:
    """Follow lines of the transcript."""
    known = given["known"]
    found = transcript.follow(
        given["lines"], given["agreement"], known["number"], known["digest"]
    )
    last = hash_chain.digest(given["lines"][-1])
    return {
        "attempts": [each.model_dump(mode="json") for each, _ in found],
        "transcript": last,
    }


def sign_transcript(given: Input) -> Output:
    """Sign the transcript of the opening or the closing."""
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(given["private"]))
    said = signatures.statement(given["stage"], given["transcript"])
    return {"signature": key.sign(said).hex()}


def check_signatures(given: Input) -> Output:
    """Check the signatures of all slots."""
    keys = given["keys"]
    session: Any = SimpleNamespace(
        slots=list(keys),
        member=lambda slot: SimpleNamespace(
            keys=PublicKeys(x25519="00" * 32, ed25519=keys[slot])
        ),
    )
    rows = [list(bytes.fromhex(each)) for each in given["signatures"]]
    told = np.array(rows, np.uint8).reshape(len(rows), packets.SIGNATURE_BYTES)
    signatures.check(session, given["stage"], given["transcript"], told, given["least"])
    return {}


CALLS: Final[dict[str, Callable[[Input], Output]]] = {
    "canonical": write_canonical,
    "write-record": write_record,
    "read-record": read_record,
    "read-packet": read_packet,
    "follow": follow_lines,
    "sign-transcript": sign_transcript,
    "check-signatures": check_signatures,
}

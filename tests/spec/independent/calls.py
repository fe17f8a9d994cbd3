"""Section 14: calls of the vectors, answered by the independent party."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from . import derivations as d, linkage, records, ristretto, roster
from .ids import normal_form, read_alignment
from .intersection import bind, point_of, token_of
from .match_keys import find_values
from .party import Party

Input = dict[str, Any]


def _parts(parts: list[Any]) -> list[d.Part]:
    """Section 14: parts, where bytes are {"hex": …}."""
    return [bytes.fromhex(p["hex"]) if isinstance(p, dict) else p for p in parts]


def _key(given: Input) -> d.Stream:
    """Section 14: the stream of the key of a case."""
    return d.Stream(bytes.fromhex(given["key"]))


def _words(text: list[str]) -> d.Words:
    """Section 14: words from text."""
    return np.array([int(word) for word in text], np.uint64)


def _text(words: d.Words) -> list[str]:
    """Section 14: words as text."""
    return [str(word) for word in words.tolist()]


class _Given(d.Stream):
    """Section 14: a stream of words that are given."""

    def __init__(self, words: list[str]) -> None:
        """Section 14: keep them."""
        self._left = _words(words)

    def words(self, size: int) -> d.Words:
        """Section 14: the next words."""
        found, self._left = self._left[:size], self._left[size:]
        return found


def _party_keys(given: Input) -> dict[str, Any]:
    """Section 2: keys of a party."""
    x25519, ed25519 = d.party_keys(
        bytes.fromhex(given["entropy"]), given["session"], given["slot"]
    )
    return {
        "x25519_private": x25519.private_bytes_raw().hex(),
        "ed25519_private": ed25519.private_bytes_raw().hex(),
        "x25519": x25519.public_key().public_bytes_raw().hex(),
        "ed25519": ed25519.public_key().public_bytes_raw().hex(),
    }


def _own_words(given: Input) -> dict[str, Any]:
    """Section 2: a party's own chance."""
    names = ("transcript", "purpose", "session", "slot", "stage")
    stream = d.own_stream(
        bytes.fromhex(given["entropy"]), *(given[name] for name in names)
    )
    return {"words": _text(stream.words(given["size"]))}


def _open(given: Input) -> dict[str, Any]:
    """Section 8: open an envelope."""
    names = ("transcript", "session", "stage", "round", "attempt", "sender", "receiver")
    info = d.lp("coterie/envelope/3", *(given[n] for n in names), given["kind"])
    content = d.open_envelope(
        bytes.fromhex(given["envelope"]),
        info,
        X25519PrivateKey.from_private_bytes(bytes.fromhex(given["private"])),
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(given["sender_ed25519"])),
    )
    return {"content": content.hex()}


def _fixed_point(given: Input) -> dict[str, Any]:
    """Section 10: fixed point."""
    bounds, numbers = np.array(given["bounds"]), np.array(given["numbers"])
    units, words = d.fixed_point(bounds, given["bits"], numbers)
    return {"units": units.tolist(), "words": _text(words)}


def _group(given: Input) -> tuple[bytes, str]:
    """Section 9: a group's secret, and the digest of the agreement."""
    return bytes.fromhex(given["secret"]), given["agreement"]


def _label(given: Input) -> str:
    """Section 10: the label of the sum of a case."""
    members = [member["slot"] for member in given["members"]]
    return d.sum_label(given["transcript"], given["name"], members)


def _share(given: Input) -> dict[str, Any]:
    """Section 10: a share."""
    keys = {member["slot"]: member["x25519"] for member in given["members"]}
    own = X25519PrivateKey.from_private_bytes(bytes.fromhex(given["private"]))
    label = _label(given)
    made = d.share(
        *(_words(given["words"]), label, given["transcript"], given["slot"]),
        (own, keys),
        _group(given),
        blind=given["blind"],
    )
    return {"label": label, "share": _text(made)}


def _total(given: Input) -> dict[str, Any]:
    """Section 10: a total."""
    words = d.read_total(
        *(_words(given["total"]), _label(given), _group(given)),
        float(given["largest"]),
        blind=given["blind"],
    )
    return {"words": _text(words)}


def _read_packet(given: Input) -> dict[str, Any]:
    """Section 3: a packet."""
    packet = records.read_packet(base64.b64decode(given["bytes"]))
    return {
        **packet.header,
        "record": packet.record,
        "arrays": records.to_form({}, packet.arrays)["arrays"],
        "own": packet.own,
        "sealed": [each.hex() for each in packet.sealed],
        "content_digest": packet.content_digest,
        "lines": packet.lines,
        "signatures": [each.hex() for each in packet.signatures],
    }


def _follow(given: Input) -> dict[str, Any]:
    """Section 7: lines of the transcript."""
    known = given["known"]
    found = roster.follow(
        given["lines"], given["agreement"], known["number"], known["digest"]
    )
    last = roster.digest_line(given["lines"][-1])
    return {"attempts": [said for said, _ in found], "transcript": last}


def _sign(given: Input) -> dict[str, Any]:
    """Section 7: sign the transcript."""
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(given["private"]))
    return {
        "signature": roster.sign_transcript(key, given["stage"], given["transcript"])
    }


def _check(given: Input) -> dict[str, Any]:
    """Section 7: check the signatures of all."""
    names = ("stage", "transcript", "keys", "signatures", "least")
    roster.check_signatures(*(given[name] for name in names))
    return {}


def _line(given: Input) -> dict[str, Any]:
    """Section 5: a line."""
    secret, private = (bytes.fromhex(given[n]) for n in ("session_secret", "private"))
    return roster.write_line(
        given["line"], given["session"], given["terms"], secret, private
    )


def _join(given: Input) -> dict[str, Any]:
    """Section 5: the proof of a join."""
    private = bytes.fromhex(given["ed25519_private"])
    names = ("session", "member", "code", "joins")
    return {"proof": roster.prove_join(private, *(given[n] for n in names))}


def _agreement(given: Input) -> dict[str, Any]:
    """Section 5: check an agreement."""
    secret = bytes.fromhex(given["session_secret"])
    return {
        "digest": roster.check_agreement(
            given["agreement"], given["terms"], secret, given["own"]
        )
    }


def _write_record(given: Input) -> dict[str, Any]:
    """Section 3: write a record."""
    return {"bytes": base64.b64encode(records.write(*records.of_form(given))).decode()}


def _scalar(given: Input) -> int:
    """Section 11, intersection: a scalar of 64 bytes."""
    return int.from_bytes(bytes.fromhex(given["scalar"]), "little") % ristretto.ORDER


def _place(given: Input) -> tuple[str, str, int]:
    """Section 11, intersection: what points and tokens are bound to."""
    return given["session"], given["agreement"], given["row"]


def _multiply(given: Input, problem: str, scalar: int) -> bytes:
    """Section 11, intersection: a point of a case, so many times."""
    point = ristretto.read_point(bytes.fromhex(given["point"]), problem)
    return ristretto.write_point(ristretto.multiply(scalar, point))


def _blind_id(given: Input) -> dict[str, Any]:
    """Section 11, intersection: a blinded id."""
    point = point_of(bind(*_place(given)), given["id"])
    made = ristretto.multiply(_scalar(given), point)
    return {"point": ristretto.write_point(made).hex()}


def _unblind_id(given: Input) -> dict[str, Any]:
    """Section 11, intersection: value and token of an id."""
    inverse = pow(_scalar(given), -1, ristretto.ORDER)
    value = _multiply(given, "protocol-failed", inverse)
    token = token_of(bind(*_place(given)), value, given["id"])
    return {"value": value.hex(), "token": token.hex()}


def _find_values(given: Input) -> dict[str, Any]:
    """Section 11, match keys: values of rows."""
    terms = {"protocol": {"params": {"alignment": given["alignment"]}}}
    return {"values": find_values(given["ids"], read_alignment(terms))}


def _mask_value(given: Input) -> dict[str, Any]:
    """Section 11, linkage: the point of a value, times a mask."""
    bound = linkage.context(*_place(given), f"key {given['key']}")
    wide = linkage.point_of(bound, given["value"].encode())
    return {"point": linkage.begin(wide, _scalar(given)).hex()}


def _mask_point(given: Input) -> dict[str, Any]:
    """Section 11, linkage: a point times a mask, and its token."""
    point = linkage.go_on(bytes.fromhex(given["point"]), _scalar(given))
    token = linkage.token_of(linkage.context(*_place(given), "token"), point)
    return {"point": point.hex(), "token": token.hex()}


_PARTY: Final[list[Party]] = []


def _init(given: Input) -> dict[str, Any]:
    """Section 14: begin a session; forget the one before."""
    _PARTY[:] = [Party(given)]
    return {}


def _step(given: Input) -> dict[str, Any]:
    """Section 14: answer a task."""
    contribution = _PARTY[0].step(base64.b64decode(given["task"]))
    return {"contribution": base64.b64encode(contribution).decode()}


def _conclude(given: Input) -> dict[str, Any]:
    """Section 14: read a result."""
    return {"labels": _PARTY[0].conclude(base64.b64decode(given["result"]))}


CALLS: Final[dict[str, Callable[[Input], dict[str, Any]]]] = {
    "lp": lambda g: {"bytes": d.lp(*_parts(g["parts"])).hex()},
    "derive": lambda g: {
        "key": d.derive(
            *(bytes.fromhex(g["secret"]), bytes.fromhex(g["salt"])), *_parts(g["info"])
        ).hex()
    },
    "words": lambda g: {"words": [_text(each) for each in _several(g)]},
    "uniform": lambda g: {"numbers": _key(g).uniform(g["size"]).tolist()},
    "normal": lambda g: {"numbers": _key(g).normal(g["size"]).tolist()},
    "permutation": lambda g: {"order": _key(g).permutation(g["size"])},
    "residues": lambda g: {
        "residues": [str(each) for each in _Given(g["words"]).residues(g["size"])]
    },
    "exchange": lambda g: {
        "shared": d.exchange(
            X25519PrivateKey.from_private_bytes(bytes.fromhex(g["private"])),
            g["public"],
        ).hex()
    },
    "tag": lambda g: {"tag": str(d.tag(_words(g["words"]), _key(g)))},
    "fixed-point": _fixed_point,
    "party-keys": _party_keys,
    "own-words": _own_words,
    "canonical": lambda g: {"text": records.canonical(g["value"])},
    "line": _line,
    "join-proof": _join,
    "invitation": lambda g: roster.read_invitation(g["text"]),
    "agreement": _agreement,
    "safety-number": lambda g: {"digits": roster.safety_number(g["agreement"])},
    "open-envelope": _open,
    "normal-form": lambda g: {"form": normal_form(g["id"], g["steps"])},
    "alignment-digest": lambda g: {
        "digest": d.group_mark(*_group(g), f"alignment/{g['scope']}", g["names"])
    },
    "row-order": lambda g: {
        "order": d.Stream(d.group_key(*_group(g), "row-order")).permutation(g["size"])
    },
    "blind-id": _blind_id,
    "evaluate-id": lambda g: {"point": _multiply(g, "guard-refused", _scalar(g)).hex()},
    "unblind-id": _unblind_id,
    "match-values": _find_values,
    "mask-value": _mask_value,
    "mask-point": _mask_point,
    "share": _share,
    "total": _total,
    "write-record": _write_record,
    "read-record": lambda g: records.to_form(
        *records.read(base64.b64decode(g["bytes"]))
    ),
    "read-packet": _read_packet,
    "follow": _follow,
    "sign-transcript": _sign,
    "check-signatures": _check,
    "init": _init,
    "step": _step,
    "conclude": _conclude,
}


def _several(given: Input) -> list[d.Words]:
    """Section 2: several lists of words of one stream."""
    stream = _key(given)
    return [stream.words(size) for size in given["sizes"]]

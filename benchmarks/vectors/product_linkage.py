"""Calls of the vectors about ids and match keys, answered by the product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from clustering_protocols.numerics.blocks import ONE_THREAD
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import ByteArray
from clustering_protocols.secrecy.joint_mask import JointMask
from clustering_protocols.secrecy.ristretto import RistrettoAsker, RistrettoKey
from clustering_protocols.shared_stages.alignment.intersection.party import (
    bind as bind_ids,
    make_tokens,
)
from clustering_protocols.shared_stages.alignment.linkage.party import (
    bind as bind_keys,
    hash_points,
)
from clustering_protocols.shared_stages.alignment.params import Alignment

Input = dict[str, Any]
Output = dict[str, Any]


class _GivenBytes(KeyedStream):
    """A stream whose next bytes are given."""

    def __init__(self, given: Input) -> None:
        self._left = bytes.fromhex(given["scalar"])

    def take(self, size: int) -> bytes:
        """Take the next bytes."""
        found, self._left = self._left[:size], self._left[size:]
        return found


def _place(given: Input) -> tuple[str, str, int]:
    return given["session"], given["agreement"], given["row"]


def _points(given: Input) -> ByteArray:
    return np.frombuffer(bytes.fromhex(given["point"]), np.uint8).reshape(1, -1)


def blind_id(given: Input) -> Output:
    """Return the point of an id, times a scalar."""
    asker = RistrettoAsker(bind_ids(*_place(given)))
    (point,) = asker.blind([given["id"].encode()], _GivenBytes(given))
    return {"point": point.tobytes().hex()}


def evaluate_id(given: Input) -> Output:
    """Return a point, times a scalar."""
    (point,) = RistrettoKey(_GivenBytes(given), b"").evaluate(_points(given))
    return {"point": point.tobytes().hex()}


def unblind_id(given: Input) -> Output:
    """Return the value and the token of an id, from the answer to its blinded point."""
    bound, ids = bind_ids(*_place(given)), [given["id"].encode()]
    asker = RistrettoAsker(bound)
    values = asker.values(ids, _points(given), _GivenBytes(given))
    (token,) = make_tokens(bound, ids, values).tokens
    return {"value": values[0].hex(), "token": token.tobytes().hex()}


def find_match_values(given: Input) -> Output:
    """Return the values of rows under match keys."""
    alignment = Alignment.model_validate({"method": "ecdh", **given["alignment"]})
    ids = given["ids"]
    data = MatrixSource(np.zeros((len(ids), 1)), ["x"], ids)
    return {"values": [list(key.values) for key in alignment.match(data)]}


def mask_value(given: Input) -> Output:
    """Return the point of a value of a match key, times a mask."""
    bound = bind_keys(*_place(given), f"key {given['key']}")
    mask = JointMask(_GivenBytes(given), ONE_THREAD)
    (point,) = mask.begin([given["value"].encode()], bound, KeyedStream(bytes(32)))
    return {"point": point.tobytes().hex()}


def mask_point(given: Input) -> Output:
    """Return a point times a mask, and its token."""
    points = JointMask(_GivenBytes(given), ONE_THREAD).go_on(_points(given))
    tokens = hash_points(bind_keys(*_place(given), "token"), points[None])
    return {"point": points.tobytes().hex(), "token": tokens.tobytes().hex()}


CALLS: Final[dict[str, Callable[[Input], Output]]] = {
    "blind-id": blind_id,
    "evaluate-id": evaluate_id,
    "unblind-id": unblind_id,
    "match-values": find_match_values,
    "mask-value": mask_value,
    "mask-point": mask_point,
}

"""Section 11, linkage: rows of the same people, by match keys that all hide in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256, sha512
from typing import Any, Final

import numpy as np

from . import ristretto
from .common import Comparison, read_digests, select_common
from .derivations import Refusal, lp
from .kinds import Kind, Record, Rule
from .match_keys import find_values
from .order import Exchange, Memory, Reply, Role, Stage, View
from .session import Session, ring_of

_POINTS: Final = Rule("u1", ("k", "t", 32))
KINDS: Final[Mapping[str, Kind]] = {
    "mask-keys": Kind(),
    "keys-masked": Kind(),
    "masked-keys": Kind({"n_masks": "integer"}, {"points": _POINTS}),
    "pass-keys": Kind(),
    "keys-passed": Kind(),
    "show-tokens": Kind(),
    "key-tokens": Kind(arrays={"tokens": _POINTS}),
    "select-linked": Kind({"n_rows": "object"}, {"rows": Rule("<i8", ("t",), 0)}),
}
Values = Sequence[Sequence[bytes | None]]


def context(session: str, agreement: str, row: int, purpose: str) -> bytes:
    """Section 11, linkage: C."""
    return lp("coterie/linkage/1", purpose, session, agreement, row)


def point_of(context: bytes, value: bytes) -> bytes:
    """Section 11, linkage: the 64 bytes of which a value's point is made."""
    return sha512(lp("coterie/joint-mask/1", context) + value).digest()


def token_of(context: bytes, point: bytes) -> bytes:
    """Section 11, linkage: the token of a point."""
    return sha256(context + point).digest()


@lru_cache(maxsize=1 << 14)
def begin(wide: bytes, mask: int) -> bytes:
    """Section 11, linkage: the point of 64 bytes, times a mask."""
    point = ristretto.hash_to_point(wide)
    return ristretto.write_point(ristretto.multiply(mask, point))


@lru_cache(maxsize=1 << 14)
def go_on(point: bytes, mask: int) -> bytes:
    """Section 11, linkage: a point, times a mask."""
    read = ristretto.read_point(point, "guard-refused")
    return ristretto.write_point(ristretto.multiply(mask, read))


@dataclass(frozen=True)
class Linkage(Role):
    """Section 11, linkage: a party."""

    comparison: Comparison

    def reply(self, view: View, task: Record) -> Reply:
        """Section 11, linkage: answer a task."""
        if task.kind == "mask-keys":
            return self._begin_list(view)
        if task.kind == "select-linked":
            return self._select(view, task)
        held = view.recall("held")
        complete = held["n_masks"] == len(self._ring(view)) - 1
        if task.kind == "pass-keys":
            if complete:
                return Reply(Record("keys-passed"))
            sent = self._hand_on(view, self._multiply(view, held), held["n_masks"] + 1)
            sent.remember["held"] = {**held, "points": None}
            return Reply(
                Record("keys-passed"), sent.envelopes, sent.awaits, sent.remember
            )
        if not complete:
            raise Refusal("protocol-failed")
        bound = self._context(view, "token")
        found = self._multiply(view, held)
        tokens = [token_of(bound, each.tobytes()) for each in found.reshape(-1, 32)]
        shown = np.frombuffer(b"".join(tokens), np.uint8).reshape(found.shape)
        return Reply(
            Record("key-tokens", arrays={"tokens": shown}),
            remember={"held": {**held, "points": None}},
        )

    @staticmethod
    def _ring(view: View) -> list[str]:
        """Section 11, linkage: the ring of this party."""
        return ring_of(view.session.terms, view.session.slot)

    @staticmethod
    def _keys(view: View) -> list[str]:
        """Section 11, linkage: the match keys."""
        return list(view.session.terms["protocol"]["params"]["alignment"]["match_keys"])

    def _context(self, view: View, purpose: str) -> bytes:
        """Section 11, linkage: C of this ring."""
        session, first = view.session, self._ring(view)[0]
        slots = session.terms["layout"]["slots"]
        (row,) = (each["row"] for each in slots if each["name"] == first)
        return context(session.id, session.agreement, row, purpose)

    @staticmethod
    def _mask(view: View) -> int:
        """Section 11, linkage: the mask of this party."""
        return ristretto.draw_scalar(view.session.draw(view.stage, "mask"))

    def _begin_list(self, view: View) -> Reply:
        """Section 11, linkage: mask-keys."""
        session, mask = view.session, self._mask(view)
        said = session.terms["protocol"]["params"]["alignment"]
        own = find_values(session.ids, said)
        size = len(session.rows)
        order = session.draw(view.stage, "list-order").permutation(size)
        filler = session.draw(view.stage, "no-value")
        points = []
        for number, values in enumerate(own):
            bound = self._context(view, f"key {number}")
            listed = [None if v is None else v.encode() for v in values]
            for value in (listed[row] for row in order):
                wide = filler.words(8).tobytes() if value is None else None
                points.append(begin(wide or point_of(bound, value or b""), mask))
        made = np.frombuffer(b"".join(points), np.uint8).reshape(len(own), size, 32)
        sent = self._hand_on(view, made, 1)
        sent.remember["list"] = order
        return Reply(Record("keys-masked"), sent.envelopes, sent.awaits, sent.remember)

    def _hand_on(self, view: View, points: Any, n_masks: int) -> Reply:
        """Section 11, linkage: a list goes to the next neighbour."""
        ring = self._ring(view)
        at = ring.index(view.session.slot)
        sealed = Record("masked-keys", {"n_masks": n_masks}, {"points": points})
        envelopes = [(ring[(at + 1) % len(ring)], sealed)]
        return Reply(Record("keys-masked"), envelopes, [ring[at - 1]])

    def _multiply(self, view: View, held: Mapping[str, Any]) -> Any:
        """Section 11, linkage: what is held, times the mask; once."""
        if held["points"] is None:
            raise Refusal("protocol-failed")
        mask, points = self._mask(view), held["points"]
        found = [go_on(each.tobytes(), mask) for each in points.reshape(-1, 32)]
        return np.frombuffer(b"".join(found), np.uint8).reshape(points.shape)

    def _select(self, view: View, task: Record) -> Reply:
        """Section 11, linkage: the rows of people, and where planted ones stand."""
        n, counts = len(view.session.rows), task.values["n_rows"]
        ring = self._ring(view)
        if len(ring) == 1:
            return select_common(view, self.comparison, range(n), counts, [])
        order, places = view.recall("list"), task.arrays["rows"].tolist()
        if len(set(places)) < len(places) or any(p >= len(order) for p in places):
            raise Refusal("protocol-failed")
        rows = [order[place] for place in places]
        return select_common(view, self.comparison, rows, counts, [])

    def receive(self, view: View, came: list[tuple[str, Record]]) -> Memory:
        """Section 11, linkage: a list in turn, or digests of leaders."""
        digests = read_digests(view, self.comparison, came)
        if digests is not None:
            return digests
        ring = self._ring(view)
        at = ring.index(view.session.slot)
        if [(sender, record.kind) for sender, record in came] != [
            (ring[at - 1], "masked-keys")
        ]:
            raise Refusal("envelope-refused")
        (_, record), held = came[0], view.memory.get("held", {"n_masks": 0})
        n_masks, points = record.values["n_masks"], record.arrays["points"]
        if n_masks != held["n_masks"] + 1 or n_masks >= len(ring):
            raise Refusal("envelope-refused")
        n = view.session.roster[ring[at - n_masks]]["n_rows"]
        if points.shape[:2] != (len(self._keys(view)), n):
            raise Refusal("invalid-array")
        return {"held": {"n_masks": n_masks, "points": points}}


def linkage(session: Session, comparison: Comparison) -> Stage:
    """Section 11, linkage: the stage."""
    rings = [len(ring_of(session.terms, slot)) for slot in session.slots]
    asked = int(len(ring_of(session.terms, session.slot)) > 1)
    passes = max(rings) - 2
    passing = Exchange("pass-keys", "keys-passed", passes * asked, passes)
    exchanges = (
        Exchange("mask-keys", "keys-masked", asked),
        *([passing] if passes > 0 else []),
        Exchange("show-tokens", "key-tokens", asked),
        Exchange("select-linked", "digests", own=frozenset({"rows"})),
    )
    sealed = frozenset({"masked-keys", "digests"})
    return Stage("linkage", exchanges, Linkage(comparison), sealed)

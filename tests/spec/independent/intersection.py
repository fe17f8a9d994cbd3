"""Section 11, intersection: common rows, by ids that nobody else reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256, sha512
from typing import Any, Final

import numpy as np

from . import ristretto
from .common import Comparison, read_digests, select_common
from .derivations import Refusal, lp
from .ids import identify
from .kinds import Kind, Record, Rule
from .order import Exchange, Memory, Reply, Role, Stage, View
from .session import Session

_TOKENS: Final = {"tokens": Rule("u1", ("t", 32))}
_POINTS: Final = {"elements": Rule("u1", ("n", "w"))}
KINDS: Final[Mapping[str, Kind]] = {
    "blind": Kind(),
    "counted": Kind({"n_ids": "integer"}, _TOKENS),
    "blinded-ids": Kind(arrays=_POINTS),
    "evaluate": Kind(),
    "evaluated": Kind(),
    "answers": Kind(arrays=_POINTS),
    "unblind": Kind(),
    "shown": Kind(arrays=_TOKENS),
    "select": Kind({"n_rows": "object"}, {"common": Rule("u1", ("t",), 0, 1)}),
}


def _points(points: Sequence[bytes]) -> Any:
    """Section 11, intersection: points as an array."""
    return np.frombuffer(b"".join(points), np.uint8).reshape(len(points), 32)


def bind(session: str, agreement: str, row: int) -> bytes:
    """Section 11, intersection: C."""
    return lp("coterie/intersection/1", session, agreement, row)


def point_of(bound: bytes, name: str) -> ristretto.Point:
    """Section 11, intersection: the point of an id."""
    wide = lp("coterie/ristretto/1", bound) + name.encode()
    return ristretto.hash_to_point(sha512(wide).digest())


def token_of(bound: bytes, value: bytes, name: str) -> bytes:
    """Section 11, intersection: the token of an id."""
    return sha256(lp("coterie/token/1", bound) + value + name.encode()).digest()


@dataclass(frozen=True)
class Intersection(Role):
    """Section 11, intersection: a party; digests are compared as by alignment."""

    comparison: Comparison

    def reply(self, view: View, task: Record) -> Reply:
        """Section 11, intersection: answer a task."""
        if task.kind == "evaluate":
            return self._evaluate(view)
        found = self._ids(view)
        ids = list(found)
        if task.kind == "blind":
            return self._blind(view, ids)
        if task.kind == "unblind":
            return self._unblind(view, ids)
        return self._select(view, task, list(found.values()))

    @staticmethod
    def _ids(view: View) -> dict[str, int]:
        """Section 11, intersection: own ids in their normal form, and their rows."""
        session = view.session
        if len(view.group("row")) == 1:
            return {str(number): number for number in range(len(session.rows))}
        said = session.terms["protocol"]["params"]["alignment"]
        return identify(session.ids, said, shared=True)

    @staticmethod
    def _context(view: View) -> bytes:
        """Section 11, intersection: what points and tokens are bound to."""
        session = view.session
        (row,) = (
            each["row"]
            for each in session.terms["layout"]["slots"]
            if each["name"] == session.slot
        )
        return bind(session.id, session.agreement, row)

    def _make_tokens(
        self, view: View, ids: Sequence[str], values: Sequence[bytes]
    ) -> tuple[Any, list[int]]:
        """Section 11, intersection: tokens in their order, and whose they are."""
        bound = self._context(view)
        tokens = [
            token_of(bound, value, name)
            for name, value in zip(ids, values, strict=True)
        ]
        order = sorted(range(len(tokens)), key=tokens.__getitem__)
        return _points([tokens[place] for place in order]), order

    def _blind(self, view: View, ids: Sequence[str]) -> Reply:
        """Section 11, intersection: count ids; blind them, or make tokens."""
        leader, *others = view.group("row")
        counted = Record("counted", {"n_ids": len(ids)}, {"tokens": _points([])})
        if not others:
            return Reply(counted)
        bound = self._context(view)
        points = (point_of(bound, name) for name in ids)
        if view.session.slot == leader:
            key = ristretto.draw_scalar(view.session.draw(view.stage, "key"))
            values = [
                ristretto.write_point(ristretto.multiply(key, point))
                for point in points
            ]
            counted.arrays["tokens"], order = self._make_tokens(view, ids, values)
            return Reply(counted, remember={"tokens": order})
        stream = view.session.draw(view.stage, "blinding")
        blinded = [
            ristretto.write_point(
                ristretto.multiply(ristretto.draw_scalar(stream), point)
            )
            for point in points
        ]
        sealed = Record("blinded-ids", arrays={"elements": _points(blinded)})
        return Reply(counted, [(leader, sealed)])

    def _evaluate(self, view: View) -> Reply:
        """Section 11, intersection: the leader evaluates once."""
        if "evaluated" in view.memory:
            raise Refusal("protocol-failed")
        key = ristretto.draw_scalar(view.session.draw(view.stage, "key"))
        sealed = [
            (slot, Record("answers", arrays={"elements": self._times(key, points)}))
            for slot, points in view.recall("blinded").items()
        ]
        return Reply(Record("evaluated"), sealed, remember={"evaluated": True})

    @staticmethod
    def _times(key: int, points: Any) -> Any:
        """Section 11, intersection: points, so many times each."""
        read = (
            ristretto.read_point(each.tobytes(), "guard-refused") for each in points
        )
        found = [ristretto.write_point(ristretto.multiply(key, each)) for each in read]
        return _points(found)

    def _unblind(self, view: View, ids: Sequence[str]) -> Reply:
        """Section 11, intersection: tokens of the answers."""
        answers, values = view.recall("answers"), []
        if answers.shape != (len(ids), 32):
            raise Refusal("invalid-array")
        stream = view.session.draw(view.stage, "blinding")
        for answer in answers:
            point = ristretto.read_point(answer.tobytes(), "protocol-failed")
            inverse = pow(ristretto.draw_scalar(stream), -1, ristretto.ORDER)
            values.append(ristretto.write_point(ristretto.multiply(inverse, point)))
        tokens, order = self._make_tokens(view, ids, values)
        shown = Record("shown", arrays={"tokens": tokens})
        return Reply(shown, remember={"tokens": order})

    def _select(self, view: View, task: Record, rows: Sequence[int]) -> Reply:
        """Section 11, intersection: keep the common rows, compare their digest."""
        common, chosen = task.arrays["common"], list(rows)
        if len(view.group("row")) > 1:
            order = view.recall("tokens")
            if common.size != len(order):
                raise Refusal("invalid-array")
            chosen = [rows[order[place]] for place in np.flatnonzero(common)]
        return select_common(view, self.comparison, chosen, task.values["n_rows"])

    def receive(self, view: View, came: list[tuple[str, Record]]) -> Memory:
        """Section 11, intersection: keep what envelopes brought."""
        digests = read_digests(view, self.comparison, came)
        if digests is not None:
            return digests
        kinds = {record.kind for _, record in came}
        leader, *others = view.group("row")
        if view.session.slot != leader:
            if [sender for sender, _ in came] != [leader] or kinds != {"answers"}:
                raise Refusal("envelope-refused")
            return {"answers": came[0][1].arrays["elements"]}
        sent = {sender: record.arrays.get("elements") for sender, record in came}
        if kinds != {"blinded-ids"} or set(sent) != set(others):
            raise Refusal("envelope-refused")
        for slot, points in sent.items():
            if points is None or points.shape[1] != 32:
                raise Refusal("invalid-array")
            if len(points) > view.session.roster[slot]["n_rows"]:
                raise Refusal("guard-refused")
        return {"blinded": {slot: sent[slot] for slot in others}}


def intersection(session: Session, comparison: Comparison) -> Stage:
    """Section 11, intersection: the stage."""
    leader, *others = session.group("row")
    leads = session.slot == leader
    exchanges = (
        Exchange("blind", "counted"),
        Exchange("evaluate", "evaluated", int(leads and bool(others))),
        Exchange("unblind", "shown", int(not leads)),
        Exchange("select", "digests", own=frozenset({"common"})),
    )
    sealed = frozenset({"blinded-ids", "answers", "digests"})
    return Stage("intersection", exchanges, Intersection(comparison), sealed)

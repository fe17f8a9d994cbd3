"""Section 11, filling: what takes the place of missing values, by blind sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import moments
from .derivations import Refusal, fixed_point
from .kinds import Kind, Record
from .order import Exchange, Memory, Reply, Role, Stage, View
from .powers import Powers
from .preparation import Piece, Plan, read_plan
from .session import Session
from .sums import Sum

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
KINDS: Final[Mapping[str, Kind]] = moments.KINDS
_POWERS: Final = Powers()
_PARTS: Final = 1024
_LAST: Final = 3
_BITS: Final = 59


def _positions(piece: Piece, values: Floats) -> Floats:
    """Section 11, filling: the positions of values in their range."""
    low, high = piece.range
    return (values - low) / (high - low) * _PARTS


def _parts(positions: Floats) -> Counts:
    """Section 11, filling: the parts of positions."""
    return np.clip(np.floor(positions), 0, _PARTS - 1).astype(np.int64)


def _count(places: Counts, size: int) -> Counts:
    """Section 11, filling: how many lie at each place."""
    return np.bincount(places, minlength=size).astype(np.int64)


def _n_levels(piece: Piece) -> int:
    """Section 11, filling: how many levels a field has."""
    return len(piece.field.levels)


def size_of(piece: Piece, phase: int) -> int:
    """Section 11, filling: how many words a field has in a phase."""
    return {
        "mean": (1 + _POWERS.size, 1),
        "median": (_PARTS, 2 * _PARTS),
        "most_frequent": (_n_levels(piece), 0),
    }[piece.missing][phase - 1]


def count_first(piece: Piece, values: Floats) -> Counts:
    """Section 11, filling: the words of phase 1."""
    if piece.missing == "median":
        return _count(_parts(_positions(piece, values)), _PARTS)
    if piece.missing == "most_frequent":
        return _count(values.astype(np.int64), _n_levels(piece))
    return np.append(len(values), _POWERS.count(values[:, None]))


def find_n(piece: Piece, first: Counts) -> int:
    """Section 11, filling: N."""
    return int(first[0] if piece.missing == "mean" else first.sum())


def _bound(piece: Piece, first: Counts) -> tuple[float, float, float]:
    """Section 11, filling: 2^p, and the bound of a sum of values and its unit."""
    power = 2.0 ** float(_POWERS.find_largest(first[1:])[0])
    bound = max(1, find_n(piece, first)) * power
    units, _ = fixed_point(np.array([bound]), _BITS, np.zeros(1))
    return power, bound, float(units[0])


def _middles(piece: Piece, first: Counts) -> list[tuple[int, int]]:
    """Section 11, filling: part, and rank in it, of both middles."""
    n, ends = find_n(piece, first), np.cumsum(first)
    found = []
    for rank in ((n - 1) // 2, n // 2):
        part = int(np.argmax(ends > rank))
        found.append((part, rank - int(ends[part] - first[part])))
    return found


def count_second(piece: Piece, first: Counts, values: Floats) -> Counts:
    """Section 11, filling: the words of phase 2."""
    if piece.missing == "most_frequent":
        return np.empty(0, np.int64)
    if piece.missing == "mean":
        power, _, unit = _bound(piece, first)
        if (np.abs(values) > power).any():
            raise Refusal("protocol-failed")
        return np.array([int(np.rint(values * unit).astype(np.int64).sum())])
    positions, found = _positions(piece, values), []
    for part, _ in _middles(piece, first):
        inside = positions[_parts(positions) == part]
        found.append(_count(_parts((inside - part) * _PARTS), _PARTS))
    return np.concatenate(found)


def check_first(piece: Piece, first: Counts, n_rows: int, members: int) -> None:
    """Section 11, filling: a total of phase 1 that can be."""
    n = find_n(piece, first)
    good = bool((first >= 0).all()) and n <= n_rows
    if piece.missing == "mean":
        good = good and int(first[1:].sum()) == members
    if not good:
        raise Refusal("protocol-failed")


def check_second(piece: Piece, first: Counts, second: Counts) -> None:
    """Section 11, filling: a total of phase 2 that can be."""
    good = True
    if piece.missing == "mean":
        _, bound, unit = _bound(piece, first)
        good = abs(float(second[0])) <= bound * unit + 2.0**20
    elif piece.missing == "median":
        for (part, _), counts in zip(
            _middles(piece, first), second.reshape(2, -1), strict=True
        ):
            same = int(counts.sum()) == int(first[part])
            good = good and bool((counts >= 0).all()) and same
    if not good:
        raise Refusal("protocol-failed")


def find_value(piece: Piece, first: Counts, second: Counts) -> float:
    """Section 11, filling: what fills the gaps of a field."""
    if piece.missing == "mean":
        return float(second[0]) / _bound(piece, first)[2] / find_n(piece, first)
    if piece.missing == "most_frequent":
        return float(max(_rank(piece), key=lambda place: int(first[place])))
    low, high = piece.range
    whole = piece.field.type != "number" and not piece.log1p
    found = []
    for (part, rank), counts in zip(
        _middles(piece, first), second.reshape(2, -1), strict=True
    ):
        w = int(np.argmax(np.cumsum(counts) > rank))
        value = low + ((part + (w + 0.5) / _PARTS) / _PARTS) * (high - low)
        found.append(float(np.rint(value)) if whole and high - low < 2**20 else value)
    return (found[0] + found[1]) / 2


def _rank(piece: Piece) -> list[int]:
    """Section 11, filling: levels, those first that count among equals."""
    levels = piece.field.values
    places = list(range(_n_levels(piece)))
    if not levels or piece.field.ordered:
        return places
    if piece.field.type == "integer":
        return sorted(places, key=lambda place: int(levels[place]))
    return sorted(places, key=levels.__getitem__)


@dataclass(frozen=True)
class Filling(Role):
    """Section 11, filling: a party."""

    plan: Plan

    def reply(self, view: View, task: Record) -> Reply:
        """Section 11, filling: one phase."""
        known = dict(view.memory.get("filling", {"phase": 0}))
        phase, total = task.values["phase"], task.arrays["total"]
        if phase != known["phase"] + 1:
            raise Refusal("protocol-failed")
        if phase == 1 and total.size:
            raise Refusal("invalid-array")
        if phase > 1:
            known[f"total-{phase - 1}"] = self._read(view, known, total)
        known |= {"phase": phase, "transcript": view.transcript}
        words = np.empty(0, np.uint64)
        remember: Memory = {"filling": known}
        if phase == _LAST:
            remember["fillings"] = self._find(known)
        else:
            known["own"] = own = self._add_up(view, known)
            if not self._alone(view):
                words = self._sum(view, phase).hide(own.view(np.uint64))
        return Reply(Record("share", arrays={"words": words}), remember=remember)

    @staticmethod
    def _alone(view: View) -> bool:
        """Section 11, filling: whether nobody else adds up."""
        return len(view.group("column")) == 1

    @staticmethod
    def _sum(view: View, phase: int) -> Sum:
        """Section 11, filling: the sum of a phase."""
        return Sum(view, "column", f"filling-{phase}", least=2)

    def _split(self, words: Counts, phase: int) -> list[Counts]:
        """Section 11, filling: the words of each filled field."""
        sizes = [size_of(piece, phase) for _, piece in self.plan.fills]
        return np.split(words, np.cumsum(sizes)[:-1])

    def _add_up(self, view: View, known: Memory) -> Counts:
        """Section 11, filling: own words of a phase."""
        least = 1
        if not self._alone(view):
            least = view.session.terms.get("guards", {}).get("minimum_rows", 10)
        first = known.get("total-1")
        before = None if first is None else self._split(first, 1)
        found = []
        for number, (at, piece) in enumerate(self.plan.fills):
            column = view.session.rows[:, at]
            values = column[~np.isnan(column)]
            values = values if len(values) >= least else values[:0]
            found.append(
                count_first(piece, values)
                if before is None
                else count_second(piece, before[number], values)
            )
        return np.concatenate(found)

    def _read(self, view: View, known: Mapping[str, Any], total: Any) -> Counts:
        """Section 11, filling: the total of the phase before."""
        phase, pieces = known["phase"], [piece for _, piece in self.plan.fills]
        size = sum(size_of(piece, phase) for piece in pieces)
        if total.size != (0 if self._alone(view) else 1 + size):
            raise Refusal("invalid-array")
        members = view.group("column")
        words = (
            known["own"]
            if self._alone(view)
            else self._sum(view, phase).read(total, known["transcript"], np.inf)
        )
        parts, n_rows = self._split(words, phase), view.session.n_rows(members)
        if phase == 2:
            first = self._split(known["total-1"], 1)
            for piece, counted, part in zip(pieces, first, parts, strict=True):
                check_second(piece, counted, part)
            return words
        for piece, part in zip(pieces, parts, strict=True):
            check_first(piece, part, n_rows, len(members))
        least = view.session.terms.get("guards", {}).get("minimum_rows", 10)
        if any(find_n(p, part) < least for p, part in zip(pieces, parts, strict=True)):
            raise Refusal("guard-refused")
        return words

    def _find(self, known: Mapping[str, Any]) -> list[float]:
        """Section 11, filling: what fills the gaps."""
        first, second = (self._split(known[f"total-{n}"], n) for n in (1, 2))
        pieces = [piece for _, piece in self.plan.fills]
        return [find_value(*three) for three in zip(pieces, first, second, strict=True)]


def with_filling(session: Session, stages: list[Stage]) -> list[Stage]:
    """Section 11, filling: stages, with this one behind those that find rows."""
    plans = [read_plan(session.terms, slot) for slot in session.slots]
    if not any(plan is not None and plan.fills for plan in plans):
        return stages
    before = {"secrets", "alignment", "intersection", "linkage"}
    place = 1 + max(n for n, stage in enumerate(stages) if stage.name in before)
    own = session.plan or Plan([])
    exchange = Exchange("add-up", "share", _LAST, _LAST, "column")
    filling = Stage("filling", (exchange,), Filling(own), asks_us=bool(own.fills))
    return [*stages[:place], filling, *stages[place:]]

"""Section 12, llf: where a member stands: V, and what it reads of totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .centroids import make_equal
from .derivations import Refusal, Words, fixed_point
from .kinds import Record
from .order import View
from .scale import Scale, find_scale
from .stages import group_stream
from .sums import Sum

Floats = NDArray[np.float64]
UPDATE: Final = 52
"""Section 12, llf, sums: bits of an update."""
CLOSING: Final = 59
_NUDGE: Final = 1e-3
_SLACK: Final = 2.0**20


def of_lane(purpose: str, lane: int) -> str:
    """Section 12, llf, start: what a lane is drawn for."""
    return f"{purpose}/{lane}" if lane else purpose


@dataclass(frozen=True)
class Total:
    """Section 12, llf, sums: a total, read; and over whose rows it is."""

    sums: Floats
    counts: Floats
    members: Sequence[str] = ()


@dataclass(frozen=True)
class Known:
    """Section 12, llf: V after an update, how far it moved, and the total behind it.

    own: counts of the update that this party added to last, by its number.
    """

    number: int
    V: Floats
    moved: float | None
    total: Total | None = None
    own: Mapping[int, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class Here:
    """Section 12, llf: a member in a round."""

    view: View
    params: Mapping[str, Any]
    scale: Scale

    @classmethod
    def of(cls, view: View, params: Mapping[str, Any]) -> Here:
        """Section 12, llf: where a member stands."""
        return cls(view, params, find_scale(view, params))

    @property
    def k(self) -> int:
        """Section 12, llf, scale: the number of clusters."""
        return int(self.params["n_clusters"])

    @property
    def n(self) -> int:
        """Section 12, llf, scale: the number of all rows."""
        return self.view.session.n_rows(self.view.session.slots)

    @property
    def fuzzy(self) -> bool:
        """Section 12, llf, degrees: whether rows have degrees."""
        return bool(self.params["algorithm"] == "fuzzy_cmeans")

    def members(self, cohort: NDArray[Any]) -> list[str]:
        """Section 12, llf, quorum: whom a cohort marks."""
        slots = self.view.session.slots
        return [slot for slot, one in zip(slots, cohort, strict=True) if one]

    def rows(self) -> Floats:
        """Section 12, llf, scale: own rows, scaled."""
        if not self.scale.holds(self.view.session.rows):
            raise Refusal("invalid-data")
        return self.scale(self.view.session.rows)

    def units(self, bits: int) -> Floats:
        """Section 12, llf, sums: the units of a sum, of each column."""
        return fixed_point(self.scale.sums, bits, np.zeros(1))[0]

    def degree_unit(self) -> float:
        """Section 12, llf, degrees: the unit of their sums."""
        bound = np.full(1, float(self.n))
        return float(fixed_point(bound, UPDATE, np.zeros(1))[0][0])

    def equal(self, V: Floats) -> Floats:
        """Section 12, llf, update: coordinates that coincide made equal."""
        return make_equal(V, self.scale.step)

    def drawn(self, lane: int = 0) -> Floats:
        """Section 12, llf, start: given, between the ranges, or from a party."""
        if self.params["init"] == "given":
            return self.scale(np.array(self.params["initial_centroids"], np.float64))
        if self.params["init"] != "bounds":
            return np.asarray(self.view.recall("starts")[lane])
        scale, shape = self.scale, (self.k, self.scale.offset.size)
        stream = group_stream(self.view, "column", of_lane("start/0", lane))
        U = stream.uniform(shape[0] * shape[1]).reshape(shape)
        V = scale(scale.low + (scale.high - scale.low) * U)
        return np.clip(V, -scale.limit, scale.limit)

    def may_stop(self, known: Known) -> bool:
        """Section 12, llf, order: whether the first slot may see V at rest."""
        allowed = self.params["tol"] * (1.0 + 1e-9)
        return known.moved is not None and known.moved <= allowed

    def stops(self, known: Known) -> bool:
        """Section 12, llf, order: whether V has come to rest."""
        return known.moved is not None and known.moved <= self.params["tol"]

    def follow(self, task: Record) -> Known:
        """Section 12, llf, update: V after the totals that came."""
        known: Known | None = self.view.memory.get("V")
        known = known or Known(0, self.equal(self.drawn()), None)
        names = ("updates", "cohorts", "totals")
        rows = zip(*(task.arrays[name] for name in names), strict=True)
        for (number, *when), cohort, words in rows:
            if number <= known.number:
                continue
            if number != known.number + 1 or "final" in self.view.memory:
                raise Refusal("protocol-failed")
            of = (f"update/{number}", self.members(cohort), when)
            total = self.read(words, *of, UPDATE)
            if self.view.session.slot in total.members:
                self.check_own(total.counts, known.own.get(int(number)))
            self.check_steady(known, total)
            known = self._learn(known, total)
        return known

    @staticmethod
    def check_own(counts: Floats, own: Floats | None) -> None:
        """Section 12, llf, same rows: no fewer rows than this party's share."""
        if own is not None and (counts < own).any():
            raise Refusal("protocol-failed")

    def of_other_runs(self) -> list[Total]:
        """Section 12, llf, same rows: the total that was read last in each other run."""
        known = self.view.of_other_runs("V")
        return [each.total for each in known if each.total is not None]

    def check_steady(self, known: Known, total: Total) -> None:
        """Section 12, llf, same rows: a total follows those before."""
        before = [known.total] if known.total else []
        for each in [*self.of_other_runs(), *before]:
            if each.members == total.members:
                self.check_same_rows(each, total)
        for each in before:
            if each.members == total.members:
                self._check_no_farther(each, total, known.V)

    @property
    def _slack(self) -> Floats:
        """Section 12, llf, same rows: by how much rounding sets sums apart."""
        return 2.0 * self.n / self.units(UPDATE)

    def check_same_rows(self, before: Total, now: Total) -> None:
        """Section 12, llf, same rows: all clusters together are the same."""
        apart = np.abs(now.sums.sum(axis=0) - before.sums.sum(axis=0))
        if not self.fuzzy and (apart > self._slack).any():
            raise Refusal("protocol-failed")

    def _check_no_farther(self, before: Total, now: Total, V: Floats) -> None:
        """Section 12, llf, same rows: rows went to the nearest."""
        squares = np.square(V).sum(axis=1)
        rise = float((now.counts - before.counts) @ squares)
        rise -= 2.0 * float(((now.sums - before.sums) * V).sum())
        largest = float(now.counts.sum()) * float(squares.max())
        rows = float(self.scale.squares.sum()) + largest
        rounded = 2.0 * float(self._slack @ np.abs(V).sum(axis=0))
        if not self.fuzzy and rise > 1e-9 * rows + rounded:
            raise Refusal("protocol-failed")

    def move(self, V: Floats, total: Total) -> Floats:
        """Section 12, llf, update: means of clusters that are large enough."""
        counts = total.counts
        least = 1 if self.fuzzy else max(self.params["min_cluster_rows"], 1)
        large = counts > 0 if least == 1 else counts >= least
        divisor = np.where(counts > 0, counts, 1.0)[:, None]
        return self.equal(np.where(large[:, None], total.sums / divisor, V))

    def _learn(self, known: Known, total: Total) -> Known:
        """Section 12, llf, update: V(T)."""
        V, number = self.move(known.V, total), known.number + 1
        moved = float(np.sqrt(np.square(V - known.V).sum()))
        stream = self.view.session.public_stream("llf", "nudge", 0, number)
        U = stream.uniform(V.size).reshape(V.shape)
        step = _NUDGE * self.scale.step * (2.0 * U - 1.0)
        V = np.where(total.counts[:, None] > 0, V, V + step)
        return replace(known, number=number, V=V, moved=moved, total=total)

    def _count_unit(self, bits: int) -> float:
        """Section 12, llf, sums and degrees: the unit of counts."""
        return self.degree_unit() if self.fuzzy and bits == UPDATE else 1.0

    def largest(self, bits: int) -> Floats:
        """Section 12, llf, sums: what no word of a total exceeds."""
        sums = self.scale.sums * self.units(bits) + _SLACK
        counts = np.full(self.k, self.n * self._count_unit(bits) + _SLACK)
        return np.append(np.tile(sums, self.k), counts)

    def decode(
        self, words: NDArray[np.int64], members: Sequence[str], bits: int
    ) -> Total:
        """Section 12, llf, sums: sums and counts of a total."""
        k, n = self.k, self.view.session.n_rows(members)
        counts = words[-k:] / self._count_unit(bits)
        much = counts.sum() > n * (1 + 1e-9)
        of_degrees = self.fuzzy and bits == UPDATE
        if (counts < 0).any() or (much if of_degrees else counts.sum() != n):
            raise Refusal("protocol-failed")
        sums = words[:-k].reshape(k, -1) / self.units(bits)
        return Total(sums, counts, tuple(members))

    def read(
        self,
        total: Words,
        name: str,
        members: Sequence[str],
        when: Sequence[int],
        bits: int,
    ) -> Total:
        """Section 12, llf, sums: a total."""
        of = (name, members, when)
        return self.decode(
            self._read_words(total, *of, self.largest(bits)), members, bits
        )

    def _read_words(
        self,
        total: Words,
        name: str,
        members: Sequence[str],
        when: Sequence[int],
        largest: Floats,
    ) -> NDArray[np.int64]:
        """Section 10, 7 and 8: the words of a total, signed."""
        transcript = self.view.told(*map(int, when))
        return self.sum_of(name, members).read(total, transcript, largest)

    def sum_of(self, name: str, members: Sequence[str] = ()) -> Sum:
        """Section 12, llf, sums: a sum of some slots, of all by default."""
        least = 2 if self.params["allow_two_parties"] else 3
        return Sum(self.view, "column", name, least=least, some=members)

    def add(self, kind: str, words: Words, name: str, members: Sequence[str]) -> Record:
        """Section 10: a share, as the record of a contribution."""
        hidden = self.sum_of(name, members).hide(words)
        round_, attempt = self.view.when
        return Record(kind, {"round": round_, "attempt": attempt}, {"words": hidden})

    def means(self, task: Record, known: Known) -> tuple[Floats, Floats]:
        """Section 12, llf, around the means: M and the counts of the closing."""
        members = self.members(task.arrays["closed_by"])
        of = (f"closing/{known.number}", members, task.arrays["closed_in"])
        total = self.read(task.arrays["closing"], *of, CLOSING)
        final = self.view.memory.get("final", np.zeros(0, np.int64))
        self.check_own(total.counts, np.bincount(final, minlength=self.k))
        self.check_steady(known, total)
        filled = total.counts[:, None] > 0
        divisor = np.maximum(total.counts, 1.0)[:, None]
        return np.where(filled, total.sums / divisor, known.V), total.counts

    def bounds(self, means: Floats, V: Floats) -> Floats:
        """Section 12, llf, around the means: bounds of the reals."""
        d, ones = self.scale.farthest(means), [1.0] * self.k
        fuzzy = [self.scale.farthest(V), 1.0] if self.fuzzy else []
        reals = [*(d * np.array(ones)), *(np.sqrt(d) * np.array(ones)), 1.0, *fuzzy]
        return self.n * np.array(reals)

    def around(
        self, task: Record, known: Known, means: Floats
    ) -> tuple[NDArray[np.int64], Floats]:
        """Section 12, llf, around the means: sizes and reals of the total."""
        k, bounds = self.k, self.bounds(means, known.V)
        units, _ = fixed_point(bounds, CLOSING, np.zeros(1))
        largest = np.append(np.full(k, self.n + _SLACK), bounds * units + _SLACK)
        members = self.members(task.arrays["gathered_by"])
        of = (f"gathered/{known.number}", members, task.arrays["gathered_in"])
        words = self._read_words(task.arrays["gathered"], *of, largest)
        sizes, reals = words[:k], words[k:] / units
        negative = (sizes < 0).any() or (np.delete(reals, 2 * k) < 0).any()
        if negative or sizes.sum() != self.view.session.n_rows(members):
            raise Refusal("protocol-failed")
        return sizes, reals

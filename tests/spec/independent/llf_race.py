"""Section 12, llf, race: one update of each start, of which the best goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import degrees
from .derivations import Refusal, Words, fixed_point
from .kinds import Record
from .llf_rows import update_words
from .llf_state import CLOSING, UPDATE, Here, Known, Total
from .moments import KINDS
from .order import Exchange, Reply, Role, Stage, View

Floats = NDArray[np.float64]
_SLACK: Final = 2.0**20
__all__ = ["KINDS", "race"]


def race(params: Mapping[str, Any]) -> Stage:
    """Section 12, llf, race: the stage."""
    exchange = Exchange("add-up", "share", 2, 2, "column")
    return Stage("race", (exchange,), _Racer(params), each_run=True)


@dataclass(frozen=True)
class _Racer(Role):
    """Section 12, llf, race: a party."""

    params: Mapping[str, Any]

    def reply(self, view: View, task: Record) -> Reply:
        """Section 12, llf, race: add up, then choose."""
        here, total = Here.of(view, self.params), task.arrays["total"]
        added = view.memory.get("race")
        if task.values["phase"] != (1 if added is None else 2):
            raise Refusal("protocol-failed")
        lanes = [here.equal(here.drawn(lane)) for lane in range(self._n)]
        if added is not None:
            known = self._choose(here, lanes, added, total)
            nothing = np.empty(0, np.uint64)
            record = Record("share", arrays={"words": nothing})
            return Reply(record, remember={"V": known, "race": None, "starts": None})
        if total.size:
            raise Refusal("invalid-array")
        found = [update_words(here, V) for V in lanes]
        reals = np.array([_objective(here, V) for V in lanes])
        of_lanes = np.concatenate([words for words, _ in found])
        words = np.append(
            of_lanes, fixed_point(_bounds(here, lanes), CLOSING, reals)[1]
        )
        hidden = here.sum_of("race").hide(words)
        own = {"transcript": view.transcript, "own": [own for _, own in found]}
        return Reply(Record("share", arrays={"words": hidden}), remember={"race": own})

    @property
    def _n(self) -> int:
        """Section 12, llf, race: the number of lanes."""
        return int(self.params["n_init"])

    def _choose(
        self, here: Here, lanes: list[Floats], added: Mapping[str, Any], total: Words
    ) -> Known:
        """Section 12, llf, race: the best start, as V(0)."""
        bounds = _bounds(here, lanes)
        units = fixed_point(bounds, CLOSING, np.zeros(1))[0]
        largest = np.append(
            np.tile(here.largest(UPDATE), self._n), bounds * units + _SLACK
        )
        words = here.sum_of("race").read(total, added["transcript"], largest)
        updates = [
            here.decode(part, here.view.session.slots, UPDATE)
            for part in words[: -self._n].reshape(self._n, -1)
        ]
        for own, found in zip(added["own"], updates, strict=True):
            here.check_own(found.counts, own)
            here.check_same_rows(updates[0], found)
        for other in here.of_other_runs():
            here.check_same_rows(other, updates[0])
        reals = words[-self._n :] / units
        values = list(_values(here, lanes, updates, reals))
        best = values.index(min(values))
        return Known(0, lanes[best], None, updates[best])


def _bounds(here: Here, lanes: list[Floats]) -> Floats:
    """Section 12, llf, race: bounds of the reals."""
    return here.n * np.array([here.scale.farthest(V) for V in lanes])


def _objective(here: Here, V: Floats) -> float:
    """Section 12, llf, race: what own rows cost around a start."""
    D = degrees.squared_distances(here.rows(), V)
    if not here.fuzzy:
        return float(D.min(axis=1).sum())
    fuzzifier = here.params["fuzzifier"]
    U = degrees.find_degrees(D, fuzzifier)
    return float((degrees.raise_degrees(U, fuzzifier) * D).sum())


def _values(
    here: Here, lanes: list[Floats], updates: list[Total], reals: Floats
) -> Iterator[float]:
    """Section 12, llf, race: what each start comes to, in nine digits."""
    for V, found, cost in zip(lanes, updates, reals, strict=True):
        gained = np.square(here.move(V, found) - V).sum(axis=1)
        yield float(f"{cost - float(found.counts @ gained):.9g}")

"""Section 11, moments: means and standard deviations by blind sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .derivations import Refusal, fixed_point
from .kinds import Kind, Record, Rule
from .order import Exchange, Memory, Reply, Role, Stage, View
from .powers import Powers
from .session import Session
from .stages import Moments
from .sums import Sum

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
KINDS: Final[Mapping[str, Kind]] = {
    "add-up": Kind({"phase": "integer"}, {"total": Rule("<u8", ("before",))}),
    "share": Kind(arrays={"words": Rule("<u8", ("words",))}),
}
_POWERS: Final = Powers(63)
_LAST: Final = 5
_BITS: Final = 59


class Pooling(Role):
    """Section 11, moments."""

    def reply(self, view: View, task: Record) -> Reply:
        """Section 11, moments: one phase."""
        known = dict(view.memory.get("phases", {"phase": 0}))
        phase = task.values["phase"]
        if phase != known["phase"] + 1:
            raise Refusal("protocol-failed")
        if phase > 1:
            total = self._read(view, known, task.arrays["total"])
            self._learn(view, phase, known, total)
        known |= {"phase": phase, "transcript": view.transcript}
        if phase == _LAST:
            nothing = np.empty(0, np.uint64)
            remember = {"phases": known, "moments": known["moments"]}
            return Reply(Record("share", arrays={"words": nothing}), remember=remember)
        words = self._add_up(view, phase, known)
        hidden = self._sum(view, phase).hide(words)
        return Reply(
            Record("share", arrays={"words": hidden}), remember={"phases": known}
        )

    @staticmethod
    def _sum(view: View, phase: int) -> Sum:
        """Section 10: the sum of a phase."""
        return Sum(view, "column", f"phase-{phase}")

    def _add_up(self, view: View, phase: int, known: Memory) -> Words:
        """Section 11, moments: the words of a phase."""
        rows = view.session.rows
        if phase == 1:
            return _POWERS.count(rows).view(np.uint64)
        if phase == 3:
            apart = rows - known["mean"]
            return _POWERS.count(apart, _POWERS.highest).view(np.uint64)
        if phase == 2:
            return _sum_units(rows, known["p"], _units(view, known["p"]))
        squares = np.square(rows - known["mean"])
        return _sum_units(squares, 2 * known["q"], _units(view, 2 * known["q"]))

    def _read(self, view: View, known: Memory, total: Words) -> Words:
        """Section 11, moments: the total of the phase before."""
        phase, m = known["phase"], len(view.session.columns)
        counts = phase in {1, 3}
        if total.size != 1 + m * (_POWERS.size if counts else 1):
            raise Refusal("invalid-array")
        powers = known["p"] if phase == 2 else 2 * known.get("q", np.zeros(m))
        members = len(view.group("column"))
        largest = members if counts else _bounds(view, powers) * _units(view, powers)
        signed = self._sum(view, phase).read(
            total, known["transcript"], largest if counts else largest + 2.0**20
        )
        words = signed.view(np.uint64)
        if counts:
            good = _POWERS.fit(signed, members)
        else:
            good = phase == 2 or bool((signed >= 0).all())
        if not good:
            raise Refusal("protocol-failed")
        return words

    def _learn(self, view: View, phase: int, known: Memory, words: Words) -> None:
        """Section 11, moments: what the total of the phase before gives."""
        n, signed = view.session.n_rows(view.group("column")), words.view(np.int64)
        if phase == 2:
            known["p"] = _POWERS.find_largest(signed)
        elif phase == 3:
            known["mean"] = signed / _units(view, known["p"]) / n
        elif phase == 4:
            known["q"] = _POWERS.find_largest(signed)
        else:
            deviations = np.maximum(signed / _units(view, 2 * known["q"]), 0.0)
            digit = 4.0 * 2.0**-52 * np.abs(known["mean"])
            step = np.maximum(1.0 / _units(view, known["p"]), digit)
            constant = deviations <= n * np.square(step)
            none = np.empty(0)
            deviations = np.where(constant, 0.0, deviations)
            known["moments"] = Moments(n, known["mean"], deviations, none, none)


def _sum_units(terms: Floats, powers: Floats, units: Floats) -> Words:
    """Section 11, moments: phases 2 and 4."""
    if (np.abs(terms) > 2.0**powers).any():
        raise Refusal("protocol-failed")
    return np.rint(terms * units).astype(np.int64).sum(axis=0).view(np.uint64)


def _bounds(view: View, powers: Floats) -> Floats:
    """Section 11, moments: the bound of a sum over all rows."""
    n = view.session.n_rows(view.group("column"))
    return n * 2.0**powers


def _units(view: View, powers: Floats) -> Floats:
    """Section 11, moments: the unit of that bound."""
    return fixed_point(_bounds(view, powers), _BITS, np.zeros(1))[0]


def moments(session: Session) -> Stage:
    """Section 11, moments: the stage."""
    exchange = Exchange("add-up", "share", _LAST, _LAST, "column")
    asked = len(session.group("column")) >= 3
    return Stage("moments", (exchange,), Pooling(), asks_us=asked)

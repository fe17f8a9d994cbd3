"""A party of `llf` over rows that bends totals, and what it can solve for afterwards."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.protocols.llf.maths import split_sums
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.simulation import Session
from tests.protocols.llf.reading_off import Cells

SLOWLY, QUICKLY = 0.04, 0.2
"""By how much the border turns in a round, in radians: where costs are compared, or not."""


def cells_of(Z: FloatArray, around: Sequence[FloatArray]) -> Cells:
    return [cdist(Z, V).argmin(axis=1) for V in around]


class Keen:
    """Turns the border between two clusters a little in every round.

    Rows between two such borders are what two totals differ by. With a session it knows
    what the others are about to send, which no real party does; without, it takes their
    last sums for the next. It keeps the comparisons that it is told to: the sum of all
    rows; a cost that never rises, by lengthening both centroids as it turns; and counts,
    of which it leaves every cluster its own.
    """

    def __init__(
        self, *, keeps: frozenset[str], seed: int = 0, session: Session | None = None
    ) -> None:
        self.keeps, self.session = keeps, session
        self.answered: dict[str, list[FloatArray]] = {}
        self.scale: Any = None
        self._rng = np.random.default_rng(seed)
        self._others: Any = None
        self._sent: Any = None
        self._direction: FloatArray | None = None
        self._angle = SLOWLY if "cost" in keeps else QUICKLY

    def share(self, here: Any, V: FloatArray, number: int, own: Any) -> Any:
        """Return sums (k, F) and counts (k,) in whole units, instead of own ones."""
        unit = split_sums(here.encoding.unit, len(V))[0]
        sums, counts = own[0] / unit, own[1]
        others = self._expected(here, V)
        if number > 2 and others is not None:
            wanted = self._wanted(V, others[0] + sums, others[1] + counts)
            sums, counts = wanted[0] - others[0], np.rint(wanted[1] - others[1])
        self._sent = sums, counts
        most = split_sums(here.encoding.bound, len(V))[0] * unit
        return np.clip(np.rint(sums * unit), -most, most), counts

    def read(self, number: int, sums: FloatArray, counts: FloatArray) -> None:
        del number
        if self._sent is not None:
            self._others = sums - self._sent[0], counts - self._sent[1]

    def _expected(self, here: Any, V: FloatArray) -> Any:
        if self.session is None:
            return self._others
        sums, counts = np.zeros_like(V), np.zeros(len(V))
        for slot, data in self.session.data.items():
            if slot != here.context.slot.name:
                Z = here.scale(matrix(data))
                labels = cdist(Z, V).argmin(axis=1)
                np.add.at(sums, labels, Z)
                counts += np.bincount(labels, minlength=len(V))
        return sums, counts

    def _wanted(self, V: FloatArray, sums: FloatArray, counts: FloatArray) -> Any:
        """Return the total with which the border between clusters 0 and 1 has turned."""
        sums, counts = np.array(sums), np.array(counts)
        pair, n = sums[:2].sum(axis=0), counts[:2].sum()
        if "rows" not in self.keeps:
            pair = pair + 0.05 * n * np.sign(V[0])
        middle, apart = pair / n, (V[0] - V[1]) / 2
        length = float(np.linalg.norm(apart)) or 1.0
        to = self._turned(apart / length)
        length *= 1.0 / np.cos(self._angle) + 1e-6 if "cost" in self.keeps else 1.0
        length = min(max(length, 0.3), 1.9)
        n_first = np.rint(n / 2) if "counts" not in self.keeps else counts[0]
        n_second = n - n_first
        first = middle + to * length * 2.0 * n_second / n
        sums[0], counts[:2] = n_first * first, (n_first, n_second)
        sums[1] = pair - sums[0]
        return sums, counts

    def _turned(self, u: FloatArray) -> FloatArray:
        if self._direction is None or self._rng.random() < 0.05:
            self._direction = self._rng.normal(size=u.size)
        w = self._direction - (self._direction @ u) * u
        w /= np.linalg.norm(w) + 1e-12
        turned: FloatArray = np.cos(self._angle) * u + np.sin(self._angle) * w
        return turned


def solved_rows(session: Session, liar: Keen, slots: Sequence[str]) -> int:
    """Return how many rows follow from sums over some parties' rows, by pseudoinverse."""
    n_answered = min(len(liar.answered.get(slot, [])) for slot in slots)
    Z = np.vstack([liar.scale(matrix(session.data[slot])) for slot in slots])
    rows = [np.zeros(len(Z))]
    for labels in cells_of(Z, liar.answered[slots[0]][:n_answered]):
        rows += [labels == cluster for cluster in range(labels.max() + 1)]
    M = np.unique(np.array(rows, dtype=np.float64), axis=0)
    leverage = np.einsum("ij,ji->i", np.linalg.pinv(M), M)
    return int(np.count_nonzero(leverage > 1 - 1e-7))

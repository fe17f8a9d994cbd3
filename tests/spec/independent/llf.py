"""Section 12: llf over rows, with a start that the terms give."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from math import floor, log10
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import figures, moments as sums, stages as shared
from .derivations import Refusal, fixed_point, group_key
from .kinds import Kind, Record, Rule
from .order import Exchange, Memory, Reply, Role, Stage, View
from .session import Session
from .sums import Sum

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
VERSION: Final = 2
ALIGNED: Final = True
RESULT: Final = "closed"
RESULTS_TO: Final = "all"
_OWN: Final = frozenset({"updates", "cohorts", "totals"})
_TOTALS: Final = {
    "updates": Rule("<i8", ("h", 3), 1),
    "cohorts": Rule("u1", ("h", "slots"), 0, 1),
    "totals": Rule("<u8", ("h", "w")),
}
_CLOSED: Final = {
    **_TOTALS,
    "closed_in": Rule("<i8", (2,), 1),
    "closed_by": Rule("u1", ("slots",), 0, 1),
    "closing": Rule("<u8", ("closing",)),
}
_GATHERED: Final = {
    **_CLOSED,
    "gathered_in": Rule("<i8", (2,), 1),
    "gathered_by": Rule("u1", ("slots",), 0, 1),
    "gathered": Rule("<u8", ("gathered",)),
}
_MEMBERS: Final = {"members": "list of string"}
KINDS: Final[Mapping[str, Kind]] = {
    **shared.KINDS,
    **sums.KINDS,
    "update": Kind({"number": "integer", **_MEMBERS}, _TOTALS),
    "close": Kind(_MEMBERS, _TOTALS),
    "gather": Kind(_MEMBERS, _CLOSED),
    "tell": Kind(_MEMBERS, _GATHERED),
    "closed": Kind({}, _GATHERED),
}
_KNOWN: Final[Mapping[str, Any]] = {
    "n_clusters": None,
    "initial_centroids": None,
    "init": "given",
    "max_iter": 100,
    "tol": 1e-5,
    "min_cluster_rows": 10,
    "publish": "centroids",
}
_COINCIDE: Final = 1e-11
_NUDGE: Final = 1e-3


def stages(session: Session) -> Sequence[Stage]:
    """Section 12, llf: its stages."""
    params = session.terms["protocol"]["params"]
    if set(params) - set(_KNOWN) or params.get("init") != "given":
        raise Refusal("version-mismatch")
    most = {**_KNOWN, **params}["max_iter"]
    exchanges = (
        Exchange("update", "sums", 1, most, own=_OWN),
        Exchange("close", "closing", own=_OWN),
        Exchange("gather", "gathered", own=_OWN),
        Exchange("tell", "told", own=_OWN),
    )
    updates = Stage("updates", exchanges, _Member({**_KNOWN, **params}))
    return (shared.secrets(), shared.alignment(), sums.moments(session), updates)


@dataclass(frozen=True)
class _Known:
    """Section 12, llf: V after an update, and how far it moved."""

    number: int
    V: Floats
    moved: float | None


@dataclass(frozen=True)
class _Member(Role):
    """Section 12, llf: a member of the sums."""

    params: Mapping[str, Any]

    def reply(self, view: View, task: Record) -> Reply:
        """Section 12, llf: answer a task."""
        if task.values["members"] != view.session.slots:
            raise Refusal("protocol-failed")
        known = self._follow(view, task)
        here = {"V": known}
        if task.kind == "update":
            if task.values["number"] != known.number + 1:
                raise Refusal("protocol-failed")
            return Reply(self._update(view, known), remember=here)
        if not self._stops(known) and known.number < self.params["max_iter"]:
            raise Refusal("protocol-failed")
        if task.kind == "close":
            labels = _nearest(self._rows(view), known.V)
            words = self._closing_words(view, known)
            record = self._add(view, "closing", words, f"closing/{known.number}")
            return Reply(record, remember={**here, "final": labels})
        if task.kind == "gather":
            words = self._around(view, task, known)
            return Reply(self._add(view, "gathered", words, f"gathered/{known.number}"))
        return Reply(self._tell(view, task, known), remember=here)

    def _rows(self, view: View) -> Floats:
        """Section 12, llf, scale: own rows, scaled."""
        mean, inverse = self._scale(view)
        return (view.session.rows - mean) * inverse

    @staticmethod
    def _scale(view: View) -> tuple[Floats, Floats]:
        """Section 12, llf, scale: mean, and 1 / sd."""
        pooled = view.recall("moments")
        deviation = pooled.deviation
        return pooled.mean, 1.0 / np.where(deviation > 0, deviation, 1.0)

    def _stops(self, known: _Known) -> bool:
        """Section 12, llf, order: whether the centroids have come to rest."""
        return known.moved is not None and known.moved <= self.params["tol"]

    def _follow(self, view: View, task: Record) -> _Known:
        """Section 12, llf, update: V after the totals that came."""
        known = view.memory.get("V") or self._start(view)
        rows = zip(task.arrays["updates"], task.arrays["totals"], strict=True)
        for (number, *when), total in rows:
            if number <= known.number:
                continue
            if number != known.number + 1:
                raise Refusal("protocol-failed")
            found, counts = self._read(view, total, f"update/{number}", when, 52)
            known = self._move(view, known, found, counts)
        return known

    def _start(self, view: View) -> _Known:
        """Section 12, llf, scale: V(0)."""
        mean, inverse = self._scale(view)
        given = np.array(self.params["initial_centroids"], np.float64)
        return _Known(0, _make_equal((given - mean) * inverse), None)

    def _move(self, view: View, known: _Known, found: Floats, counts: Floats) -> _Known:
        """Section 12, llf, update: V(T)."""
        large = counts >= max(self.params["min_cluster_rows"], 1)
        divisor = np.where(counts > 0, counts, 1.0)[:, None]
        V = _make_equal(np.where(large[:, None], found / divisor, known.V))
        moved = float(np.sqrt(np.square(V - known.V).sum()))
        number = known.number + 1
        stream = view.session.public_stream("llf", "nudge", 0, number)
        step = _NUDGE * (2.0 * stream.uniform(V.size).reshape(V.shape) - 1.0)
        return _Known(number, np.where(counts[:, None] > 0, V, V + step), moved)

    def _n(self, view: View) -> int:
        """Section 12, llf, sums: the number of all rows."""
        return view.session.n_rows(view.session.slots)

    def _read(
        self, view: View, total: Words, name: str, when: Sequence[int], bits: int
    ) -> tuple[Floats, Floats]:
        """Section 12, llf, sums: sums and counts of a total."""
        k, F, n = self.params["n_clusters"], len(view.session.columns), self._n(view)
        units = self._unit(view, bits)
        largest = np.append(
            np.full(k * F, 1.001 * n * units[0] + 2.0**20), np.full(k, n + 2.0**20)
        )
        words = self._read_words(view, total, name, when, largest)
        counts = words[k * F :].astype(np.float64)
        if (counts < 0).any() or counts.sum() != n:
            raise Refusal("protocol-failed")
        return words[: k * F].reshape(k, F) / units, counts

    @staticmethod
    def _read_words(
        view: View, total: Words, name: str, when: Sequence[int], largest: Floats
    ) -> NDArray[np.int64]:
        """Section 10, 7 and 8: the words of a total, signed."""
        transcript = view.told(*map(int, when))
        return Sum(view, "column", name).read(total, transcript, largest)

    def _update(self, view: View, known: _Known) -> Record:
        """Section 12, llf, sums: the contribution to an update."""
        Z, number = self._rows(view), known.number + 1
        labels = _nearest(Z, known.V)
        whole = self._add_up(np.rint(Z * self._unit(view, 52)), labels)
        words = _words(whole, labels)
        record = self._add(view, "sums", words, f"update/{number}")
        leads = view.leads("column")
        record.values |= {"moved": None, "stop": leads and self._stops(known)}
        if leads and known.moved is not None:
            record.values["moved"] = float(f"{known.moved:.2g}")
        record.arrays["start"] = np.zeros((0, Z.shape[1]))
        return record

    def _closing_words(self, view: View, known: _Known) -> Words:
        """Section 12, llf, sums: the words of the closing."""
        Z, units = self._rows(view), self._unit(view, 59)
        labels = _nearest(Z, known.V)
        return _words(self._add_up(Z, labels) * units, labels)

    def _add_up(self, terms: Floats, labels: NDArray[Any]) -> Floats:
        """Section 12, llf, sums: sums by cluster."""
        k = self.params["n_clusters"]
        return np.array([terms[labels == c].sum(axis=0) for c in range(k)])

    def _unit(self, view: View, bits: int) -> Floats:
        """Section 12, llf, sums: the unit of a sum."""
        return fixed_point(np.full(1, 1.001 * self._n(view)), bits, np.zeros(1))[0]

    @staticmethod
    def _add(view: View, kind: str, words: Words, name: str) -> Record:
        """Section 10: a share, as the record of a contribution."""
        hidden = Sum(view, "column", name).hide(words)
        round_, attempt = view.when
        return Record(kind, {"round": round_, "attempt": attempt}, {"words": hidden})

    def _means(self, view: View, task: Record, known: _Known) -> tuple[Floats, Floats]:
        """Section 12, llf, around the means: M and the counts of the closing."""
        found, counts = self._read(
            view,
            task.arrays["closing"],
            f"closing/{known.number}",
            task.arrays["closed_in"],
            59,
        )
        filled = counts[:, None] > 0
        divisor = np.maximum(counts, 1.0)[:, None]
        return np.where(filled, found / divisor, known.V), counts

    def _bounds(self, view: View, means: Floats) -> Floats:
        """Section 12, llf, around the means: bounds of the reals."""
        k, n = self.params["n_clusters"], self._n(view)
        limit = 1.001 * np.sqrt(n)
        d = float(np.square(limit + np.abs(means).max(axis=0)).sum())
        return n * np.array([*[d] * k, *[np.sqrt(d)] * k, 1.0])

    def _around(self, view: View, task: Record, known: _Known) -> Words:
        """Section 12, llf, around the means: the words."""
        means, counts = self._means(view, task, known)
        Z, k = self._rows(view), self.params["n_clusters"]
        labels = _nearest(Z, known.V)
        squares, far, total = np.zeros(k), np.zeros(k), 0.0
        for row, label in zip(Z, labels, strict=True):
            D = np.square(row - means).sum(axis=1)
            squares[label] += D[label]
            far[label] += np.sqrt(D[label])
            others = [np.sqrt(D[c]) for c in range(k) if c != label and counts[c] > 0]
            a, b = np.sqrt(D[label]), min(others, default=np.inf)
            if counts[label] > 1 and max(a, b) > 0 and np.isfinite(b):
                total += (b - a) / max(a, b)
        reals = np.array([*squares, *far, total])
        _, words = fixed_point(self._bounds(view, means), 59, reals)
        sizes = np.bincount(labels, minlength=k).astype(np.uint64)
        return np.append(sizes, words)

    def _tell(self, view: View, task: Record, known: _Known) -> Record:
        """Section 12, llf, mark: the digest, and what the first slot publishes."""
        means, counts = self._means(view, task, known)
        k, n = self.params["n_clusters"], self._n(view)
        bounds = self._bounds(view, means)
        units, _ = fixed_point(bounds, 59, np.zeros(1))
        largest = np.append(np.full(k, n + 2.0**20), bounds * units + 2.0**20)
        name, when = f"gathered/{known.number}", task.arrays["gathered_in"]
        words = self._read_words(view, task.arrays["gathered"], name, when, largest)
        sizes, reals = words[:k], words[k:] / units
        if (sizes < 0).any() or sizes.sum() != n or (reals[: 2 * k] < 0).any():
            raise Refusal("protocol-failed")
        said = known.number.to_bytes(8, "big") + known.V.astype("<f8").tobytes()
        mark = sha256(said).digest() + sizes.astype("<i8").tobytes()
        secret = bytes.fromhex(view.recall("secret/column"))
        key = group_key(secret, view.session.agreement, "told")
        values: Memory = {
            "digest": hmac.new(key, mark, sha256).hexdigest(),
            "n_updates": known.number,
            "n_coinciding": None,
            "figures": None,
        }
        shown = np.zeros(0, np.int64)
        if view.leads("column"):
            shown = np.flatnonzero(sizes >= self.params["min_cluster_rows"])
            found = figures.describe(
                sizes.astype(np.float64),
                reals[:k],
                reals[k : 2 * k],
                float(reals[2 * k]),
                means,
            )
            ran = {"n_iter": known.number, "converged": self._stops(known)}
            values["figures"] = {**found, **ran}
            values["n_coinciding"] = k - len(np.unique(known.V, axis=0))
        arrays = {
            "clusters": shown.astype(np.int64),
            "centroids": self._publish(view, means[shown], counts[shown]),
            "sizes": np.maximum(5 * np.rint(sizes[shown] / 5), 5).astype(np.int64),
        }
        return Record("told", values, arrays)

    def _publish(self, view: View, means: Floats, counts: Floats) -> Floats:
        """Section 12, llf, mark: means of large clusters, in round steps."""
        mean, inverse = self._scale(view)
        shares = np.maximum(1 / 20, 5 / np.maximum(counts, 1))[:, None]
        steps = np.vectorize(_round_up, otypes=[np.float64])(shares / inverse)
        return np.rint((means / inverse + mean) / steps) * steps


def _round_up(number: float) -> float:
    """Section 12, llf, mark: the least round number that reaches another."""
    power = floor(log10(number))
    tries = (
        float(f"{f}e{p}") for p in (power - 1, power, power + 1) for f in (1, 2, 5)
    )
    return min(each for each in tries if each >= number)


def _words(sums_of_units: Floats, labels: NDArray[Any]) -> Words:
    """Section 12, llf, sums: sums of whole units, then counts."""
    counts = np.bincount(labels, minlength=len(sums_of_units))
    words = np.append(np.rint(sums_of_units).reshape(-1), counts)
    return words.astype(np.int64).view(np.uint64)


def _nearest(Z: Floats, V: Floats) -> NDArray[Any]:
    """Section 12, llf, sums: the nearest centroid."""
    D = np.zeros((len(Z), len(V)))
    for f in range(Z.shape[1]):
        D += np.square(Z[:, f, None] - V[None, :, f])
    return D.argmin(axis=1)


def _make_equal(V: Floats) -> Floats:
    """Section 12, llf, update: coordinates that coincide become equal."""
    found = V.copy()
    for f in range(V.shape[1]):
        order = np.argsort(V[:, f], kind="stable")
        run = [order[0]]
        for before, after in pairwise(order):
            if V[after, f] - V[before, f] > _COINCIDE:
                found[run, f] = V[min(run), f]
                run = []
            run.append(after)
        found[run, f] = V[min(run), f]
    return found


def conclude(view: View, _result: Record) -> Any:
    """Section 12, llf, result: labels by the nearest centroid."""
    return view.recall("final")

"""Section 12: llf over rows, with a start that the terms give."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import degrees, figures, moments as sums, stages as shared
from .centroids import make_equal, nearest, round_up, sums_and_counts
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
    "algorithm": "cmeans",
    "fuzzifier": "auto",
    "small_cohorts": "refuse",
}
_UPDATES: Final = 52
"""Section 12, llf, sums: bits of an update."""
_NUDGE: Final = 1e-3


def stages(session: Session) -> Sequence[Stage]:
    """Section 12, llf: its stages."""
    params = session.terms["protocol"]["params"]
    if set(params) - set(_KNOWN) or params.get("init") != "given":
        raise Refusal("version-mismatch")
    params = {**_KNOWN, **params}
    n, F = session.n_rows(session.slots), len(session.columns)
    _check_cohorts(session, params)
    params["fuzzifier"] = degrees.find_fuzzifier(params, n, F)
    exchanges = (
        Exchange("update", "sums", 1, params["max_iter"], own=_OWN),
        Exchange("close", "closing", own=_OWN),
        Exchange("gather", "gathered", own=_OWN),
        Exchange("tell", "told", own=_OWN),
    )
    updates = Stage("updates", exchanges, _Member(params))
    return (shared.secrets(), shared.alignment(session), sums.moments(session), updates)


def _check_cohorts(session: Session, params: Mapping[str, Any]) -> None:
    """Section 12, llf, degrees: as few rows of others as their totals give away."""
    if params["algorithm"] == "cmeans" or params["small_cohorts"] == "allow":
        return
    rows, F = [session.n_rows([slot]) for slot in session.slots], len(session.columns)
    unknown = 2 * (params["max_iter"] + 2) * params["n_clusters"] * (F + 1) / F
    if len(rows) > 1 and sum(rows) - max(rows) < unknown:
        raise Refusal("protocol-failed")


@dataclass(frozen=True)
class _Known:
    """Section 12, llf: V after an update, and how far it moved."""

    number: int
    V: Floats
    moved: float | None
    sums: Floats | None = None
    counts: Floats | None = None


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
            record, own = self._update(view, known)
            return Reply(record, remember={**here, "own": own})
        if known.number < self.params["max_iter"] and not self._may_stop(known):
            raise Refusal("protocol-failed")
        if task.kind == "close":
            labels = nearest(self._rows(view), known.V)
            words = self._closing_words(view, known)
            record = self._add(view, "closing", words, f"closing/{known.number}")
            return Reply(record, remember={**here, "final": labels})
        if task.kind == "gather":
            words = self._around(view, task, known)
            return Reply(self._add(view, "gathered", words, f"gathered/{known.number}"))
        return Reply(self._tell(view, task, known), remember=here)

    @property
    def _fuzzy(self) -> bool:
        """Section 12, llf, degrees: whether rows have degrees."""
        return bool(self.params["algorithm"] == "fuzzy_cmeans")

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

    def _may_stop(self, known: _Known) -> bool:
        """Section 12, llf, order: whether the first slot may see them at rest."""
        allowed = self.params["tol"] * (1.0 + 1e-9)
        return known.moved is not None and known.moved <= allowed

    def _follow(self, view: View, task: Record) -> _Known:
        """Section 12, llf, update: V after the totals that came."""
        known = view.memory.get("V") or self._start(view)
        rows = zip(task.arrays["updates"], task.arrays["totals"], strict=True)
        for (number, *when), total in rows:
            if number <= known.number:
                continue
            if number != known.number + 1:
                raise Refusal("protocol-failed")
            found, counts = self._read(view, total, f"update/{number}", when, _UPDATES)
            own = view.memory.get("own")
            if own is not None and own[0] == number and (counts < own[1]).any():
                raise Refusal("protocol-failed")
            self._check_steady(view, known, found, counts)
            known = self._move(view, known, found, counts)
        return known

    def _check_steady(
        self, view: View, known: _Known, found: Floats, counts: Floats
    ) -> None:
        """Section 12, llf, same rows: a total follows the one before."""
        if self._fuzzy or known.sums is None or known.counts is None:
            return
        n, V = self._n(view), known.V
        slack = 2.0 * n / float(self._unit(view, _UPDATES)[0])
        if (np.abs(found.sum(axis=0) - known.sums.sum(axis=0)) > slack).any():
            raise Refusal("protocol-failed")
        squares = np.square(V).sum(axis=1)
        rise = float((counts - known.counts) @ squares)
        rise -= 2.0 * float(((found - known.sums) * V).sum())
        rows = 1.001 * n * V.shape[1] + n * float(squares.max())
        if rise > 1e-9 * rows + 2.0 * slack * float(np.abs(V).sum()):
            raise Refusal("protocol-failed")

    def _start(self, view: View) -> _Known:
        """Section 12, llf, scale: V(0)."""
        mean, inverse = self._scale(view)
        given = np.array(self.params["initial_centroids"], np.float64)
        return _Known(0, make_equal((given - mean) * inverse), None)

    def _move(self, view: View, known: _Known, found: Floats, counts: Floats) -> _Known:
        """Section 12, llf, update: V(T)."""
        least = 1 if self._fuzzy else max(self.params["min_cluster_rows"], 1)
        large = counts > 0 if least == 1 else counts >= least
        divisor = np.where(counts > 0, counts, 1.0)[:, None]
        V = make_equal(np.where(large[:, None], found / divisor, known.V))
        moved = float(np.sqrt(np.square(V - known.V).sum()))
        number = known.number + 1
        stream = view.session.public_stream("llf", "nudge", 0, number)
        step = _NUDGE * (2.0 * stream.uniform(V.size).reshape(V.shape) - 1.0)
        V = np.where(counts[:, None] > 0, V, V + step)
        return _Known(number, V, moved, found, counts)

    def _n(self, view: View) -> int:
        """Section 12, llf, sums: the number of all rows."""
        return view.session.n_rows(view.session.slots)

    def _read(
        self, view: View, total: Words, name: str, when: Sequence[int], bits: int
    ) -> tuple[Floats, Floats]:
        """Section 12, llf, sums: sums and counts of a total."""
        k, F, n = self.params["n_clusters"], len(view.session.columns), self._n(view)
        units = self._unit(view, bits)
        of_degrees = self._fuzzy and bits == _UPDATES
        unit = self._degree_unit(view) if of_degrees else 1.0
        largest = np.append(
            np.full(k * F, 1.001 * n * units[0] + 2.0**20),
            np.full(k, n * unit + 2.0**20),
        )
        words = self._read_words(view, total, name, when, largest)
        counts = words[k * F :] / unit
        much = counts.sum() > n * (1 + 1e-9) if of_degrees else counts.sum() != n
        if (counts < 0).any() or much:
            raise Refusal("protocol-failed")
        return words[: k * F].reshape(k, F) / units, counts

    @staticmethod
    def _read_words(
        view: View, total: Words, name: str, when: Sequence[int], largest: Floats
    ) -> NDArray[np.int64]:
        """Section 10, 7 and 8: the words of a total, signed."""
        transcript = view.told(*map(int, when))
        return Sum(view, "column", name).read(total, transcript, largest)

    def _update(self, view: View, known: _Known) -> tuple[Record, Any]:
        """Section 12, llf, sums: the contribution to an update."""
        Z, number = self._rows(view), known.number + 1
        words, own = self._update_words(view, Z, known)
        record = self._add(view, "sums", words, f"update/{number}")
        leads = view.leads("column")
        record.values |= {"moved": None, "stop": leads and self._stops(known)}
        if leads and known.moved is not None:
            record.values["moved"] = float(f"{known.moved:.2g}")
        record.arrays["start"] = np.zeros((0, Z.shape[1]))
        return record, (number, own)

    def _update_words(self, view: View, Z: Floats, known: _Known) -> tuple[Words, Any]:
        """Section 12, llf, sums and degrees: the words of an update; own counts."""
        unit = self._unit(view, _UPDATES)
        if not self._fuzzy:
            labels = nearest(Z, known.V)
            words = sums_and_counts(self._add_up(np.rint(Z * unit), labels), labels)
            return words, np.bincount(labels, minlength=len(known.V))
        k, F = known.V.shape
        fuzzifier = self.params["fuzzifier"]
        if len(Z) <= k * (F + 1) / F:
            raise Refusal("guard-refused")
        D = degrees.squared_distances(Z, known.V)
        W = degrees.raise_degrees(degrees.find_degrees(D, fuzzifier), fuzzifier)
        of_sums = np.rint(W[:, :, None] * Z[:, None] * unit).sum(axis=0)
        own = np.rint(W * self._degree_unit(view)).sum(axis=0)
        words = np.append(of_sums.reshape(-1), own).astype(np.int64).view(np.uint64)
        return words, own / self._degree_unit(view)

    def _degree_unit(self, view: View) -> float:
        """Section 12, llf, degrees: the unit of their sums."""
        bound = np.full(1, float(self._n(view)))
        return float(fixed_point(bound, _UPDATES, np.zeros(1))[0][0])

    def _closing_words(self, view: View, known: _Known) -> Words:
        """Section 12, llf, sums: the words of the closing."""
        Z, units = self._rows(view), self._unit(view, 59)
        labels = nearest(Z, known.V)
        return sums_and_counts(self._add_up(Z, labels) * units, labels)

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
        final = view.memory.get("final")
        if (
            final is not None
            and (counts < np.bincount(final, minlength=len(counts))).any()
        ):
            raise Refusal("protocol-failed")
        self._check_steady(view, known, found, counts)
        filled = counts[:, None] > 0
        divisor = np.maximum(counts, 1.0)[:, None]
        return np.where(filled, found / divisor, known.V), counts

    def _bounds(self, view: View, means: Floats, V: Floats) -> Floats:
        """Section 12, llf, around the means: bounds of the reals."""
        k, n = self.params["n_clusters"], self._n(view)
        limit = 1.001 * np.sqrt(n)
        d, around = (
            float(np.square(limit + np.abs(each).max(axis=0)).sum())
            for each in (means, V)
        )
        fuzzy = [around, 1.0] if self._fuzzy else []
        return n * np.array([*[d] * k, *[np.sqrt(d)] * k, 1.0, *fuzzy])

    def _around(self, view: View, task: Record, known: _Known) -> Words:
        """Section 12, llf, around the means: the words."""
        means, counts = self._means(view, task, known)
        Z, k = self._rows(view), self.params["n_clusters"]
        labels = nearest(Z, known.V)
        squares, far, total = np.zeros(k), np.zeros(k), 0.0
        for row, label in zip(Z, labels, strict=True):
            D = np.square(row - means).sum(axis=1)
            squares[label] += D[label]
            far[label] += np.sqrt(D[label])
            others = [np.sqrt(D[c]) for c in range(k) if c != label and counts[c] > 0]
            a, b = np.sqrt(D[label]), min(others, default=np.inf)
            if counts[label] > 1 and max(a, b) > 0 and np.isfinite(b):
                total += (b - a) / max(a, b)
        reals = np.array([*squares, *far, total, *self._around_centroids(Z, known.V)])
        _, words = fixed_point(self._bounds(view, means, known.V), 59, reals)
        sizes = np.bincount(labels, minlength=k).astype(np.uint64)
        return np.append(sizes, words)

    def _around_centroids(self, Z: Floats, V: Floats) -> list[float]:
        """Section 12, llf, degrees: the reals that fuzzy c-means adds."""
        if not self._fuzzy:
            return []
        D = degrees.squared_distances(Z, V)
        U = np.square(degrees.find_degrees(D, self.params["fuzzifier"]))
        return [float((U * D).sum()), float(U.sum())]

    def _tell(self, view: View, task: Record, known: _Known) -> Record:
        """Section 12, llf, mark: the digest, and what the first slot publishes."""
        means, counts = self._means(view, task, known)
        k, n = self.params["n_clusters"], self._n(view)
        bounds = self._bounds(view, means, known.V)
        units, _ = fixed_point(bounds, 59, np.zeros(1))
        largest = np.append(np.full(k, n + 2.0**20), bounds * units + 2.0**20)
        name, when = f"gathered/{known.number}", task.arrays["gathered_in"]
        words = self._read_words(view, task.arrays["gathered"], name, when, largest)
        sizes, reals = words[:k], words[k:] / units
        if (sizes < 0).any() or sizes.sum() != n or (np.delete(reals, 2 * k) < 0).any():
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
        shown, centres = np.zeros(0, np.int64), known.V if self._fuzzy else means
        if view.leads("column"):
            shown = np.flatnonzero(sizes >= self.params["min_cluster_rows"])
            found = figures.describe(
                sizes.astype(np.float64),
                reals[:k],
                reals[k : 2 * k],
                float(reals[2 * k]),
                means,
                (known.V, *reals[2 * k + 1 :]) if self._fuzzy else None,
            )
            ran = {"n_iter": known.number, "converged": self._stops(known)}
            values["figures"] = {**found, **ran}
            values["n_coinciding"] = k - len(np.unique(known.V, axis=0))
        arrays = {
            "clusters": shown.astype(np.int64),
            "centroids": self._publish(view, centres[shown], counts[shown]),
            "sizes": np.maximum(5 * np.rint(sizes[shown] / 5), 5).astype(np.int64),
        }
        return Record("told", values, arrays)

    def _publish(self, view: View, means: Floats, counts: Floats) -> Floats:
        """Section 12, llf, mark: means of large clusters, in round steps."""
        mean, inverse = self._scale(view)
        shares = np.maximum(1 / 20, 5 / np.maximum(counts, 1))[:, None]
        steps = np.vectorize(round_up, otypes=[np.float64])(shares / inverse)
        return np.rint((means / inverse + mean) / steps) * steps


def conclude(view: View, _result: Record) -> Any:
    """Section 12, llf, result: labels by the nearest centroid."""
    return view.recall("final")

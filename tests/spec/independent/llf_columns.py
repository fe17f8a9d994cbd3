"""Section 12, llf over columns: distances out, labels in, centroids stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import degrees, stages as shared
from .centroids import make_equal, order_clusters
from .derivations import Refusal, Words, fixed_point
from .kinds import Kind, Record, Rule
from .llf import DEFAULTS
from .llf_state import of_lane
from .order import Exchange, Memory, Reply, Role, Stage, View
from .scale import Scale, find_limits, find_scale
from .session import Session
from .sums import Sum

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
VERSION: Final = 2
ALIGNED: Final = True
RESULTS: Final = ("grouped",)
RESULTS_TO: Final = "all"
_LABELS: Final = Rule("<i8", ("n_labels",), 0)
_MEMBERSHIPS: Final = Rule("<f8", ("n_memberships", "k"), 0, 1)
_UPDATES: Final[Mapping[str, Kind]] = {
    "measure": Kind(
        {"number": "integer"}, {"labels": _LABELS, "memberships": _MEMBERSHIPS}
    ),
    "scatter": Kind(arrays={"labels": _LABELS}),
}
KINDS: Final[Mapping[str, Kind]] = {
    **shared.KINDS,
    "measure-groups": Kind(),
    "start-from": Kind(arrays={"labels": _LABELS}),
    "grouped": Kind(
        {"n_updates": "integer", "n_coinciding": "integer", "figures": "object"},
        {
            "labels": Rule("<i8", ("n",), 0),
            "memberships": _MEMBERSHIPS,
            "cluster_sizes": Rule("<i8", ("clusters",), 0),
        },
    ),
}
_STARTS: Final = {"careful", "given", "bounds", "random_rows"}
_NUDGE: Final = 1e-3
_FEW: Final = 5
_SAMPLE: Final = 20_000
_MOST_GROUPS: Final = 128
_MOST_WORDS: Final = 1 << 21


def stages(session: Session) -> Sequence[Stage]:
    """Section 12, llf over columns: its stages."""
    params = _read_params(session)
    pooled = []
    if params["scaling"] == "standard":
        pooled = [shared.statistics(session, moments=True, ranges=False)]
    start = (
        Exchange("measure-groups", "group-distances"),
        Exchange("start-from", "confirmed"),
    )
    if params["init"] == "careful":
        pooled.append(Stage("start", start, _Starter(params), each_run=True))
    exchanges = [Exchange("measure", "distances", 1, params["max_iter"] + 1)]
    if params["publish"] != "nothing":
        exchanges.append(Exchange("scatter", "scattered", 0, 1))
    updates = Stage(
        "updates", tuple(exchanges), _Measurer(params), each_run=True, kinds=_UPDATES
    )
    return (shared.secrets(), shared.alignment(session), *pooled, updates)


def _read_params(session: Session) -> dict[str, Any]:
    """Section 12, llf over columns: parameters of terms that fit the roster."""
    said = session.terms["protocol"]["params"]
    params = {**DEFAULTS, **said}
    params["init"] = params["init"] or "careful"
    if set(said) - set(DEFAULTS) or params["init"] not in _STARTS:
        raise Refusal("version-mismatch")
    width = sum(_widths(session))
    if any(len(row) != width for row in params["initial_centroids"] or []):
        raise Refusal("invalid-parameters")
    n = session.n_rows(session.slots[:1])
    params["fuzzifier"] = degrees.find_fuzzifier(params, n, width)
    return params


def _widths(session: Session) -> list[int]:
    """Section 12, llf over columns: how many columns each column group has."""
    firsts = [group[0] for group in session.groups("column")]
    return [int(session.roster[slot]["n_columns"]) for slot in firsts]


@dataclass(frozen=True)
class _Here:
    """Section 12, llf over columns: a party in a round."""

    view: View
    params: Mapping[str, Any]
    scale: Scale

    @classmethod
    def of(cls, view: View, params: Mapping[str, Any]) -> _Here:
        """Section 12, llf over columns: where a party stands."""
        return cls(view, params, find_scale(view, params))

    @property
    def k(self) -> int:
        """Section 12, llf over columns: the number of clusters."""
        return int(self.params["n_clusters"])

    @property
    def column(self) -> int:
        """Section 12, llf over columns: the number of the own column group."""
        groups = self.view.session.groups("column")
        return groups.index(self.view.group("column"))

    def rows(self) -> Floats:
        """Section 12, llf over columns: own rows, scaled, in the row order."""
        X = self.view.session.rows
        if not self.scale.holds(X):
            raise Refusal("invalid-data")
        drawn = self.params["init"] in {"careful", "random_rows"}
        if drawn and len(X) < self.k:
            raise Refusal("invalid-data")
        return self.scale(X[self.view.recall("order")])

    def _limits(self, which: int) -> Floats:
        """Section 12, llf over columns: L or Q of all columns of all parties."""
        session = self.view.session
        firsts = [group[0] for group in session.groups("column")]
        limits = [find_limits(session, self.params, slot)[which] for slot in firsts]
        return np.concatenate(limits)

    def distances(self, Z: Floats, V: Floats) -> Words:
        """Section 12, llf over columns: squared distances as words, row by row."""
        D = degrees.squared_distances(Z, V)
        bound = np.full(1, np.square(2.01 * self._limits(0)).sum())
        if D.max(initial=0.0) > bound[0]:
            raise Refusal("guard-refused")
        return fixed_point(bound, 59, D)[1].reshape(D.shape)

    def scatter(self, reals: Floats) -> Words:
        """Section 12, llf over columns: how columns scatter, as words."""
        return fixed_point(np.full(1, self._limits(2).sum()), 59, reals)[1]

    def hide(self, words: Words, name: str, *, shifted: bool = False) -> Words:
        """Section 12, llf over columns: a share; shifted alike in each row."""
        least = 2 if self.params["allow_two_parties"] else 3
        of = Sum(self.view, "row", name, blind=False, least=least)
        if shifted and self.view.session.slot == self.view.session.slots[0]:
            stream = shared.group_stream(self.view, "row", f"shift/{of.label}")
            words = words + stream.words(len(words))[:, None]
        return of.mask(words.reshape(-1)).reshape(words.shape)


@dataclass(frozen=True)
class _Sample:
    """Section 12, llf over columns, start: the rows that are measured."""

    n_rows: int
    n_groups: int

    @classmethod
    def of(cls, session: Session) -> _Sample:
        """Section 12, llf over columns, start: that of a session."""
        rows = min(session.n_rows(session.slots[:1]), _SAMPLE)
        width = sum(_widths(session))
        groups = max(2, min(width + 1, rows // _FEW, _MOST_GROUPS))
        return cls(min(rows, _MOST_WORDS // groups), groups)


@dataclass(frozen=True)
class _Starter(Role):
    """Section 12, llf over columns, start: a party."""

    params: Mapping[str, Any]

    def reply(self, view: View, task: Record) -> Reply:
        """Section 12, llf over columns, start: answer a task."""
        here, sample = _Here.of(view, self.params), _Sample.of(view.session)
        Z = here.rows()[: sample.n_rows]
        if task.kind == "measure-groups":
            groups = np.arange(sample.n_rows) % sample.n_groups
            words = here.distances(Z, _means(Z, groups, sample.n_groups))
            hidden = here.hide(words, "groups", shifted=True)
            return Reply(Record("group-distances", arrays={"words": hidden}))
        labels = task.arrays["labels"]
        least = max(1, min(_FEW, sample.n_rows // here.k))
        if len(labels) != sample.n_rows or labels.max() >= here.k:
            raise Refusal("protocol-failed")
        if np.bincount(labels, minlength=here.k).min() < least:
            raise Refusal("protocol-failed")
        start = _means(Z, labels, here.k)
        return Reply(Record("confirmed"), remember={"start": start})


def _means(Z: Floats, labels: Labels, k: int) -> Floats:
    """Section 12, llf over columns, start: means of groups."""
    return np.array([Z[labels == c].mean(axis=0) for c in range(k)])


@dataclass(frozen=True)
class _Measurer(Role):
    """Section 12, llf over columns: a party."""

    params: Mapping[str, Any]

    def reply(self, view: View, task: Record) -> Reply:
        """Section 12, llf over columns: answer a task."""
        here = _Here.of(view, self.params)
        Z = here.rows()
        if task.kind == "scatter":
            return self._scatter(here, task.arrays["labels"], Z)
        number, known = task.values["number"], view.memory.get("V")
        due = 1 if known is None else known[0] + 1
        if number != due or number > self.params["max_iter"] + 1:
            raise Refusal("protocol-failed")
        remember: Memory = {}
        if known is None:
            V = make_equal(self._start(here, Z), here.scale.step)
        else:
            U = self._degrees(here, task)
            V = self._move(here, Z, U, known)
            remember = {"told": U.argmax(axis=1)}
        fuzzy = self.params["algorithm"] == "fuzzy_cmeans"
        words = here.hide(here.distances(Z, V), "distances", shifted=not fuzzy)
        record = Record("distances", arrays={"words": words})
        return Reply(record, remember={**remember, "V": (number, V)})

    def _start(self, here: _Here, Z: Floats) -> Floats:
        """Section 12, llf over columns, start: own columns of V(0)."""
        init, scale, view = self.params["init"], here.scale, here.view
        if init == "careful":
            return np.asarray(view.recall("start"))
        if init == "random_rows":
            stream = shared.group_stream(view, "row", "start")
            return Z[stream.permutation(len(Z))[: here.k]]
        if init == "given":
            widths = _widths(view.session)
            begin = sum(widths[: here.column])
            given = np.array(self.params["initial_centroids"], np.float64)
            return scale(given[:, begin : begin + widths[here.column]])
        stream = shared.group_stream(view, "row", of_lane(f"start/{here.column}", 0))
        U = stream.uniform(here.k * Z.shape[1]).reshape(here.k, -1)
        V = scale(scale.low + (scale.high - scale.low) * U)
        return np.clip(V, -scale.limit, scale.limit)

    def _degrees(self, here: _Here, task: Record) -> Floats:
        """Section 12, llf over columns: what rows weigh in clusters."""
        n, k = len(here.view.session.rows), here.k
        labels, U = task.arrays["labels"], task.arrays["memberships"]
        if self.params["algorithm"] == "fuzzy_cmeans":
            if U.shape != (n, k):
                raise Refusal("invalid-array")
            return U
        if len(labels) != n:
            raise Refusal("invalid-array")
        if labels.max() >= k:
            raise Refusal("protocol-failed")
        return np.eye(k)[labels]

    def _move(
        self, here: _Here, Z: Floats, U: Floats, known: tuple[int, Floats]
    ) -> Floats:
        """Section 12, llf over columns: own columns of V after an update."""
        number, before = known
        W = U
        if self.params["algorithm"] == "fuzzy_cmeans":
            W = degrees.raise_degrees(U, self.params["fuzzifier"])
        weights = W.sum(axis=0)[:, None]
        there = weights > 0
        V = np.where(there, W.T @ Z / np.where(there, weights, 1.0), before)
        V = make_equal(V, here.scale.step)
        purpose = f"nudge/{here.column}/{number}"
        stream = shared.group_stream(here.view, "row", purpose)
        drawn = stream.uniform(V.size).reshape(V.shape)
        step = _NUDGE * here.scale.step * (2.0 * drawn - 1.0)
        return np.where(there, V, V + step)

    @staticmethod
    def _scatter(here: _Here, labels: Labels, Z: Floats) -> Reply:
        """Section 12, llf over columns: how own columns scatter."""
        check_told(here.view, labels)
        means = np.zeros((here.k, Z.shape[1]))
        for c in set(labels.tolist()):
            means[c] = Z[labels == c].mean(axis=0)
        within = float(np.square(Z - means[labels]).sum())
        apart = np.square(means - Z.mean(axis=0)).sum(axis=1)
        between = float(np.bincount(labels, minlength=here.k) @ apart)
        reals = np.array([within, between])
        words = here.hide(here.scatter(reals), "scatter")
        return Reply(Record("scattered", arrays={"words": words}))


def check_told(view: View, labels: Labels) -> None:
    """Section 12, llf over columns: labels are those that were told last."""
    told = view.memory.get("told")
    if told is None or not np.array_equal(told, labels):
        raise Refusal("protocol-failed")


def conclude(view: View, result: Record) -> Any:
    """Section 12, llf over columns, result: labels in the order of own rows."""
    order, labels = view.recall("order"), result.arrays["labels"]
    if len(labels) != len(order):
        raise Refusal("invalid-array")
    if result.values["figures"]["inertia"] is not None:
        check_told(view, labels)
    sizes = result.arrays["cluster_sizes"]
    numbers = list(range(len(sizes)))
    if view.session.terms["protocol"]["params"].get("init") != "given":
        numbers = order_clusters(numbers, sizes, np.zeros((len(sizes), 0)))
    found = np.empty_like(labels)
    found[order] = np.argsort(numbers)[labels]
    return found

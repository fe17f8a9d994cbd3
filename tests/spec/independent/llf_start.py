"""Section 12, llf, starts from rows of parties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .centroids import nearest, round_means
from .degrees import squared_distances
from .derivations import Refusal, Stream
from .kinds import Kind, Record, Rule
from .llf_state import Here, of_lane
from .order import Exchange, Memory, Reply, Role, Stage, View

Floats = NDArray[np.float64]
KINDS: Final[Mapping[str, Kind]] = {
    "propose": Kind(),
    "proposed": Kind(),
    "settle": Kind(),
    "settled": Kind(),
    "confirm": Kind(),
    "confirmed": Kind(),
    "candidates": Kind(
        arrays={"centroids": Rule("<f8", ("k", "m")), "sizes": Rule("<i8", ("k",))}
    ),
    "start-centroids": Kind(arrays={"centroids": Rule("<f8", ("k", "m"))}),
    "lane-starts": Kind(arrays={"centroids": Rule("<f8", ("lanes", "k", "m"))}),
}
_FEW: Final = 5
_SAMPLE: Final = 20_000
_LARGEST: Final = 1e100
_TRIES: Final = 5
_MOST: Final = 300
_ANSWERS: Final = {"propose": "proposed", "settle": "settled", "confirm": "confirmed"}


def start(params: Mapping[str, Any]) -> Stage:
    """Section 12, llf, starts: the stage."""
    asked = ("propose", "settle", "confirm")
    asked = asked if params["init"] == "careful" else asked[1:]
    exchanges = tuple(Exchange(task, _ANSWERS[task]) for task in asked)
    sealed = frozenset({"candidates", _settled(params)})
    return Stage("start", exchanges, _Starter(params), sealed, each_run=True)


def _settled(params: Mapping[str, Any]) -> str:
    """Section 12, llf, starts: what the first slot seals."""
    return "lane-starts" if params["n_init"] > 1 else "start-centroids"


@dataclass(frozen=True)
class _Starter(Role):
    """Section 12, llf, starts: a party."""

    params: Mapping[str, Any]

    def reply(self, view: View, task: Record) -> Reply:
        """Section 12, llf, starts: answer a task."""
        record, here = Record(_ANSWERS[task.kind]), Here.of(view, self.params)
        leader, *others = view.session.slots
        leads = view.session.slot == leader
        if task.kind == "propose":
            own = self._propose(here)
            if leads:
                return Reply(record, remember={"candidates": {leader: own}})
            return Reply(record, [(leader, Record("candidates", arrays=own))])
        if task.kind == "confirm":
            return Reply(record)
        here.rows()
        if not leads:
            return Reply(record)
        starts = np.array([self._settle(here, lane) for lane in self._lanes])
        kind = _settled(self.params)
        told = starts if self.params["n_init"] > 1 else starts[0]
        sealed = Record(kind, arrays={"centroids": told})
        return Reply(
            record, [(slot, sealed) for slot in others], remember={"starts": starts}
        )

    def receive(self, view: View, came: list[tuple[str, Record]]) -> Memory:
        """Section 12, llf, starts: candidates of all, or the start."""
        leader, *others = view.session.slots
        kinds = {record.kind for _, record in came}
        if view.session.slot == leader:
            if {slot for slot, _ in came} != set(others):
                raise Refusal("protocol-failed")
            if kinds != {"candidates"}:
                raise Refusal("envelope-refused")
            found = {slot: self._check(view, record) for slot, record in came}
            return {"candidates": {**view.recall("candidates"), **found}}
        if [slot for slot, _ in came] != [leader] or kinds != {_settled(self.params)}:
            raise Refusal("envelope-refused")
        starts = self._check(view, came[0][1])["centroids"]
        shape = (self.params["n_init"], self.params["n_clusters"], -1)
        return {"starts": starts.reshape(shape)}

    @property
    def _lanes(self) -> range:
        """Section 12, llf, starts: the numbers of lanes."""
        return range(self.params["n_init"])

    def _check(self, view: View, record: Record) -> dict[str, NDArray[Any]]:
        """Section 12, llf, starts: shapes and sizes of what came."""
        lanes, k = self.params["n_init"], self.params["n_clusters"]
        F = len(view.session.columns)
        shapes = {
            "candidates": (lanes * k, F),
            "start-centroids": (k, F),
            "lane-starts": (lanes, k, F),
        }
        if (record.arrays.get("sizes", np.zeros(1)) < 0).any():
            raise Refusal("envelope-refused")
        centroids = record.arrays["centroids"]
        large = (np.abs(centroids) > _LARGEST).any()
        if centroids.shape != shapes[record.kind] or large:
            raise Refusal("invalid-array")
        return record.arrays

    def _draw(self, here: Here, purpose: str, lane: int = 0) -> Stream:
        """Section 2: a lasting stream of this stage."""
        view = here.view
        return view.session.draw(view.stage, of_lane(purpose, lane))

    def _sample(self, here: Here) -> Floats:
        """Section 12, llf, starts: at most 20,000 own rows."""
        Z = here.rows()
        if len(Z) < here.k:
            raise Refusal("invalid-data")
        return Z[sorted(self._draw(here, "sample").permutation(len(Z))[:_SAMPLE])]

    def _propose(self, here: Here) -> dict[str, NDArray[Any]]:
        """Section 12, llf, starts: own candidates, lane below lane."""
        Z, centroids, sizes = self._sample(here), [], []
        for lane in self._lanes:
            stream = self._draw(here, "candidates", lane)
            k = max(1, min(here.k, len(Z) // _FEW))
            labels = _cluster(Z, np.ones(len(Z)), k, stream)[1]
            for c in range(here.k):
                members = Z[labels == c]
                many = len(members) >= _FEW
                centroids.append(_describe(members) if many else 0.0 * Z[0])
                sizes.append(len(members) // _FEW * _FEW)
        return {"centroids": np.array(centroids), "sizes": np.array(sizes, np.int64)}

    def _settle(self, here: Here, lane: int) -> Floats:
        """Section 12, llf, starts: the start of a lane."""
        if self.params["init"] == "careful":
            return self._merge(here, lane)
        Z, found = self._sample(here), []
        for row in self._draw(here, "start", lane).permutation(len(Z))[: here.k]:
            D = squared_distances(Z, Z[row : row + 1])[:, 0]
            near = sorted(np.argsort(D, kind="stable")[:_FEW])
            found.append(sum(Z[near], 0.0 * Z[0]) / len(near))
        return np.array(found)

    def _merge(self, here: Here, lane: int) -> Floats:
        """Section 12, llf, starts: the centroids of all parties' candidates."""
        session, k = here.view.session, here.k
        centroids, weights = [], []
        proposed = here.view.recall("candidates")
        for slot in session.slots:
            own = slice(lane * k, (lane + 1) * k)
            sizes = proposed[slot]["sizes"][own]
            rows = session.roster[slot]["n_rows"]
            weights.append(sizes / max(sizes.sum(), 1) * rows)
            centroids.append(proposed[slot]["centroids"][own])
        weight = np.concatenate(weights)
        found = np.concatenate(centroids)[weight > 0]
        if not len(found):
            raise Refusal("invalid-data")
        if len(found) < k:
            return np.resize(found, (k, found.shape[1]))
        stream = self._draw(here, "merge", lane)
        return _cluster(found, weight[weight > 0], k, stream)[0]


def _describe(members: Floats) -> Floats:
    """Section 12, llf, starts: a rounded mean of own rows."""
    counts = np.array([float(len(members))])
    return round_means(members.mean(axis=0)[None], counts, members.std(axis=0))[0]


def _cluster(
    Z: Floats, weights: Floats, k: int, stream: Stream
) -> tuple[Floats, NDArray[Any]]:
    """Section 12, llf, starts: centroids and labels of the best of some k-means."""
    best: tuple[float, Floats, NDArray[Any]] | None = None
    for _ in range(_TRIES):
        V = Z[_draw_rows(Z, weights, k, stream)]
        for _ in range(_MOST):
            labels = nearest(Z, V)
            before, V = V, _means(Z, weights, labels, V)
            if np.array_equal(before, V):
                break
        labels = nearest(Z, V)
        D = np.square(Z - V[labels]).sum(axis=1)
        if best is None or float(weights @ D) < best[0]:
            best = (float(weights @ D), V, labels)
    assert best is not None
    return best[1:]


def _means(Z: Floats, weights: Floats, labels: NDArray[Any], V: Floats) -> Floats:
    """Section 12, llf, starts: weighted means; a cluster without rows stays."""
    found = V.copy()
    for c in set(labels.tolist()):
        found[c] = weights[labels == c] @ Z[labels == c] / weights[labels == c].sum()
    return found


def _draw_rows(Z: Floats, weights: Floats, k: int, stream: Stream) -> list[int]:
    """Section 12, llf, starts: the rows that k-means++ draws."""
    near, rows = np.ones(len(Z)), []
    for c in range(k):
        sums = np.cumsum(weights * near)
        at = float(stream.uniform(1)[0]) * sums[-1]
        rows.append(min(int(np.searchsorted(sums, at)), len(Z) - 1))
        D = np.square(Z - Z[rows[-1]]).sum(axis=1)
        near = D if c == 0 else np.minimum(near, D)
        near = near if near.any() else np.ones(len(Z))
    return rows

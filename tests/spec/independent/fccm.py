"""Section 12: fccm, objects that are described by items of several sites."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import stages as shared
from .derivations import Refusal, fixed_point, group_key
from .figures import find_coefficient, round_figures
from .kinds import Kind, Record, Rule
from .order import Exchange, Memory, Reply, Role, Stage, View
from .session import Session
from .sums import Sum

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
VERSION: Final = 2
ALIGNED: Final = True
RESULTS: Final = ("done",)
RESULTS_TO: Final = "all"
_ASKED: Final = Kind(
    {"number": "integer", "lanes": "list of integer", "overflowed": "list of integer"},
    {"total": Rule("<u8", ("before",))},
    version=2,
)
KINDS: Final[Mapping[str, Kind]] = {
    **shared.KINDS,
    "add": _ASKED,
    "tell": _ASKED,
    "done": Kind(),
}
_DEFAULTS: Final[Mapping[str, Any]] = {
    "lambda_u": 0.001,
    "lambda_w": 100.0,
    "r_max": 1.0,
    "normalisation": "global",
    "n_init": 10,
    "max_iter": 100,
    "tol": 1e-6,
    "analyst_view": "blind",
    "min_cluster_rows": 10,
}
_KNOWN: Final = {*_DEFAULTS, "n_clusters", "alignment"}
_TIE: Final = 1e-9
_MARGIN: Final = 1e-9
_MOST_REPEATS: Final = 64


def stages(session: Session) -> Sequence[Stage]:
    """Section 12, fccm: its stages."""
    said = session.terms["protocol"]["params"]
    if set(said) - _KNOWN:
        raise Refusal("version-mismatch")
    params = {**_DEFAULTS, **said}
    if (session.rows < 0).any() or (session.rows > params["r_max"]).any():
        raise Refusal("invalid-data")
    exchanges = (
        Exchange("add", "share", 1, (params["max_iter"] + 1) * (_MOST_REPEATS + 1)),
        Exchange("tell", "told"),
    )
    updates = Stage("updates", exchanges, _Site(params), each_run=True)
    return (shared.secrets(), shared.alignment(session), updates)


@dataclass(frozen=True)
class _Known:
    """Section 12, fccm: where a site stands; arrays of lanes have all of them."""

    number: int
    transcript: str
    lanes: list[int]
    repeats: int
    taken: NDArray[Any]
    moved: Floats
    criteria: Floats
    objects: Floats
    weights: Floats
    shifts: Floats


@dataclass(frozen=True)
class _Site(Role):
    """Section 12, fccm: a site."""

    params: Mapping[str, Any]

    def reply(self, view: View, task: Record) -> Reply:
        """Section 12, fccm: answer a task."""
        known = view.memory.get("memberships")
        if task.kind == "tell":
            return self._tell(view, task)
        said = task.values
        if known is None:
            first = (1, list(range(self.params["n_init"])), [], 0)
            here = (said["number"], said["lanes"], said["overflowed"])
            if (*here, task.arrays["total"].size) != first:
                raise Refusal("protocol-failed")
            known = self._begin(view)
        else:
            known = self._follow(view, task, known)
        return Reply(self._share(view, known), remember={"memberships": known})

    @property
    def _is_global(self) -> bool:
        """Section 12, fccm: over which items a cluster's memberships sum up to 1."""
        return bool(self.params["normalisation"] == "global")

    # Bounds

    def _largest(self, view: View) -> float:
        """Section 12, fccm, sums: H."""
        return max(float(sum(_widths(view))), 512.0)

    def _bounds(self, view: View) -> tuple[float, float]:
        """Section 12, fccm, sums: bounds of the sums, and of what follows them."""
        params, widths = self.params, _widths(view)
        if self._is_global:
            largest = self._largest(view)
            return 1.001 * largest * params["r_max"], 1.001 * largest
        exponents = len(view.session.rows) * params["r_max"] / params["lambda_w"]
        logarithms = params["n_clusters"] * float(np.log(widths).sum())
        beside = 1.001 * (len(widths) * exponents + logarithms)
        return 1.001 * len(widths) * params["r_max"], beside

    def _overflows(self, view: View, known: _Known) -> Mask:
        """Section 12, fccm, sums: of which lanes under way the share is too large."""
        if not self._is_global:
            return np.zeros(len(known.lanes), bool)
        widths = _widths(view)
        part = self._largest(view) * known.weights.shape[0] / sum(widths)
        over: Mask = (known.weights.sum(axis=0) > part).any(axis=1)
        return over

    # Between totals

    def _begin(self, view: View) -> _Known:
        """Section 12, fccm, start: U(0), and the first weights."""
        params, session = self.params, view.session
        n, k, lanes = len(session.rows), params["n_clusters"], params["n_init"]
        U = np.empty((n, lanes, k))
        for lane in range(lanes):
            drawn = session.public_stream("fccm", "start", lane).uniform(n * k)
            U[:, lane] = drawn.reshape(n, k)
            U[:, lane] /= U[:, lane].sum(axis=1, keepdims=True)
        known = _Known(
            number=0,
            transcript="",
            lanes=list(range(lanes)),
            repeats=0,
            taken=np.zeros(lanes, np.int64),
            moved=np.ones(lanes),
            criteria=np.zeros(lanes),
            objects=U,
            weights=np.empty(0),
            shifts=np.empty(0),
        )
        return self._weigh(view, known, self._safe(U))

    def _safe(self, U: Floats) -> Floats:
        """Section 12, fccm, shifts: with which no exponent is above 0."""
        params = self.params
        bound = U.sum(axis=0) * params["r_max"] / params["lambda_w"]
        return np.asarray(bound * (1.0 + 1e-9))

    def _weigh(self, view: View, known: _Known, shifts: Floats) -> _Known:
        """Section 12, fccm, weights: of the next sums."""
        U = known.objects[:, known.lanes]
        R = _rows(view)
        exponents = np.tensordot(R.T, U, axes=1) / self.params["lambda_w"]
        if self._is_global:
            with np.errstate(over="ignore"):
                weights = np.minimum(np.exp(exponents - shifts), 1e300)
        else:
            largest = exponents.max(axis=0)
            powers = np.exp(exponents - largest)
            weights = powers / powers.sum(axis=0)
            shifts = largest + np.log(powers.sum(axis=0))
        return replace(
            known,
            number=known.number + 1,
            transcript=view.transcript,
            weights=weights,
            shifts=shifts,
        )

    def _follow(self, view: View, task: Record, known: _Known) -> _Known:
        """Section 12, fccm, order and update: memberships after a total."""
        named = task.values["lanes"]
        if task.values["number"] != known.number + 1 or not named:
            raise Refusal("protocol-failed")
        total = self._check(view, task, known)
        if known.repeats > _MOST_REPEATS:
            raise Refusal("protocol-failed")
        kept = [known.lanes.index(lane) for lane in named]
        known = replace(
            known,
            lanes=named,
            weights=known.weights[:, kept],
            shifts=known.shifts[kept],
        )
        if total is None:
            over = np.isin(named, task.values["overflowed"])[:, None]
            safe = self._safe(known.objects[:, named])
            return self._repeat(view, known, np.where(over, safe, known.shifts))
        sums, beside = total[0][:, kept], total[1][kept]
        if not self._is_global:
            return self._weigh(view, self._iterate(known, sums, beside), known.shifts)
        coarse = self._too_coarse(view, beside)
        if coarse.any():
            unit = _unit(self._bounds(view)[1])
            lost = (sum(_widths(view)) + len(view.session.slots)) / unit
            lower = known.shifts + np.log(np.maximum(beside, 0.0) + lost)
            shifts = np.where(coarse[:, None], lower, known.shifts)
            return self._repeat(view, known, shifts)
        shifts = known.shifts + np.log(beside)
        return self._weigh(view, self._iterate(known, sums, beside), shifts)

    def _repeat(self, view: View, known: _Known, shifts: Floats) -> _Known:
        """Section 12, fccm, shifts: the same sums again."""
        again = replace(known, repeats=known.repeats + 1)
        return self._weigh(view, again, shifts)

    def _too_coarse(self, view: View, beside: Floats) -> Mask:
        """Section 12, fccm, shifts: of which lanes normalisers have too few bits."""
        params, unit = self.params, _unit(self._bounds(view)[1])
        needed = np.log2(params["r_max"] / (1e-6 * params["lambda_u"])) + 4
        finest = 2.0 ** min(max(40.0, needed), np.log2(unit) - 3)
        coarse: Mask = (beside * unit < finest).any(axis=1)
        return coarse

    def _iterate(self, known: _Known, sums: Floats, beside: Floats) -> _Known:
        """Section 12, fccm, update: U, how far it moved, the criterion."""
        params, on = self.params, known.lanes
        means = sums / beside if self._is_global else sums
        before = known.objects[:, on]
        powers = means / params["lambda_u"]
        powers = np.exp(powers - powers.max(axis=2, keepdims=True))
        U = powers / powers.sum(axis=2, keepdims=True)
        moved = np.abs(U - before).max(axis=(0, 2))
        logarithms = beside
        if self._is_global:
            logarithms = (np.log(beside) + known.shifts).sum(axis=1)
        entropy = U * np.log(np.where(U > 0, U, 1.0))
        of_objects = ((U - before) * means - params["lambda_u"] * entropy).sum((0, 2))
        found = replace(
            known,
            repeats=0,
            taken=known.taken.copy(),
            moved=known.moved.copy(),
            criteria=known.criteria.copy(),
            objects=known.objects.copy(),
        )
        found.taken[on] += 1
        found.moved[on] = moved
        found.criteria[on] = of_objects + params["lambda_w"] * logarithms
        found.objects[:, on] = U
        return found

    # Totals

    def _rest(self, known: _Known, margin: float) -> Mask:
        """Section 12, fccm, order: which lanes under way have come to rest."""
        params, taken = self.params, known.taken[known.lanes]
        small = known.moved[known.lanes] <= params["tol"] + margin
        rest: Mask = (taken > 0) & (small | (taken >= params["max_iter"]))
        return rest & (known.repeats == 0)

    def _check(
        self, view: View, task: Record, known: _Known
    ) -> tuple[Floats, Floats] | None:
        """Section 12, fccm, order: the total that came; None where a share overflowed."""
        named, over = task.values["lanes"], task.values["overflowed"]
        margin = 0.0 if view.leads("row") else _MARGIN
        goes_on = np.isin(known.lanes, named)
        lanes = np.array(known.lanes)
        if (
            named != lanes[goes_on].tolist()
            or (goes_on & self._rest(known, -margin)).any()
            or (~goes_on & ~self._rest(known, margin)).any()
            or not set(lanes[self._overflows(view, known)]) <= set(over) <= set(lanes)
        ):
            raise Refusal("protocol-failed")
        total = task.arrays["total"]
        if not over:
            return self._read(view, known, total)
        if total.size:
            raise Refusal("invalid-array")
        return None

    def _sum(self, view: View, known: _Known) -> Sum:
        """Section 12, fccm, sums: the sum of a number."""
        blind = self.params["analyst_view"] == "blind"
        return Sum(view, "row", f"sums-{known.number}", blind)

    def _read(self, view: View, known: _Known, total: Any) -> tuple[Floats, Floats]:
        """Section 12, fccm, sums: what a total says."""
        n, A, k = len(view.session.rows), len(known.lanes), self.params["n_clusters"]
        of_sums, of_beside = self._bounds(view)
        unit, own_unit = _unit(of_sums), _unit(of_beside)
        n_beside = A * k if self._is_global else A
        largest = np.append(
            np.full(n * A * k, of_sums * unit), np.full(n_beside, of_beside * own_unit)
        )
        words = self._sum(view, known).read(total, known.transcript, largest + 2.0**20)
        sums = (words[: n * A * k] / unit).reshape(n, A, k)
        beside = words[n * A * k :] / own_unit
        if (sums < 0).any():
            raise Refusal("protocol-failed")
        if not self._is_global:
            return sums, beside
        beside = beside.reshape(A, k)
        if (beside < known.weights.sum(axis=0) - 1.0 / own_unit).any():
            raise Refusal("protocol-failed")
        return sums, beside

    def _share(self, view: View, known: _Known) -> Record:
        """Section 12, fccm, sums: the contribution."""
        over = self._overflows(view, known)
        weights = np.zeros_like(known.weights) if over.any() else known.weights
        of_sums, of_beside = self._bounds(view)
        sums = np.tensordot(_rows(view), weights, axes=1).reshape(-1)
        beside = weights.sum(axis=0) if self._is_global else known.shifts.sum(axis=1)
        words = np.append(
            fixed_point(np.full(1, of_sums), 59, sums)[1],
            fixed_point(np.full(1, of_beside), 59, beside.reshape(-1))[1],
        )
        values: Memory = {
            "overflows": np.array(known.lanes)[over].tolist(),
            "n_iterations": 0,
            "moved": None,
            "under_way": None,
        }
        if view.leads("row"):
            taken = int(known.taken[known.lanes[0]])
            moved = float(known.moved[known.lanes].max())
            rest = self._rest(known, 0.0)
            values |= {
                "n_iterations": taken,
                "moved": float(f"{moved:.2g}") if taken else None,
                "under_way": np.array(known.lanes)[~rest].tolist(),
            }
        hidden = self._sum(view, known).hide(words)
        return Record("share", values, {"words": hidden}, version=2)

    # The end

    def _tell(self, view: View, task: Record) -> Reply:
        """Section 12, fccm, mark: the digest, and what the first slot says."""
        known = view.recall("memberships")
        if task.values["lanes"]:
            raise Refusal("protocol-failed")
        self._check(view, task, known)
        best = int(_strongest(known.criteria[None])[0])
        U = known.objects[:, best]
        found = _strongest(U)
        sizes = np.bincount(found, minlength=U.shape[1])
        large = np.flatnonzero(sizes >= self.params["min_cluster_rows"])
        secret = bytes.fromhex(view.recall("secret/row"))
        key = group_key(secret, view.session.agreement, "told")
        mark = np.append(sizes, best).astype("<i8").tobytes()
        figures = self._describe(known, best, sizes)
        leads = view.leads("row")
        values: Memory = {
            "digest": hmac.new(key, mark, sha256).hexdigest(),
            "n_iterations": int(known.taken[best]),
            "figures": figures if leads else None,
        }
        shown = large if leads else large[:0]
        arrays = {
            "clusters": shown.astype(np.int64),
            "sizes": sizes[shown].astype(np.int64),
        }
        order = [*sorted(large, key=lambda c: (-sizes[c], c))]
        order += [c for c in range(len(sizes)) if c not in set(order)]
        labels = np.argsort(order)[found]
        final = np.empty_like(labels)
        final[view.recall("order")] = labels
        return Reply(
            Record("told", values, arrays, version=2),
            remember={"final": final, "figures": figures},
        )

    def _describe(
        self, known: _Known, best: int, sizes: NDArray[Any]
    ) -> dict[str, Any]:
        """Section 12, fccm, figures: of the best lane."""
        U = known.objects[:, best]
        k, there = len(sizes), int(np.count_nonzero(sizes))
        squares = float(np.square(U).sum())
        return round_figures(
            {
                "n_clusters": there,
                "criterion": float(known.criteria[best]),
                "partition_coefficient": find_coefficient(squares, len(U), k, there),
                "n_iter": int(known.taken[best]),
                "converged": bool(known.moved[best] <= self.params["tol"]),
            }
        )


def _widths(view: View) -> list[int]:
    """Section 5: the numbers of columns of all slots."""
    return [each["n_columns"] for each in view.session.roster.values()]


def _rows(view: View) -> Floats:
    """Section 11, alignment: own rows in the row order."""
    return view.session.rows[view.recall("order")]


def _unit(bound: float) -> float:
    """Section 10: the unit of a bound."""
    return float(fixed_point(np.full(1, bound), 59, np.zeros(1))[0][0])


def _strongest(degrees: Floats) -> NDArray[Any]:
    """Section 12, fccm, mark: the largest of each row; of equals the lowest."""
    largest = degrees.max(axis=1, keepdims=True)
    found: NDArray[Any] = (degrees >= largest * (1.0 - _TIE)).argmax(axis=1)
    return found


def conclude(view: View, _result: Record) -> Any:
    """Section 12, fccm, result: labels that the site found itself."""
    return view.recall("final")

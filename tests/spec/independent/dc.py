"""Section 12: dc, with anchors that all draw alike and reduction by pca."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import moments as sums, stages as shared
from .derivations import Refusal
from .kinds import Kind, Record, Rule
from .order import Exchange, Reply, Role, Stage, View
from .params import GivenParams
from .session import Session

Floats = NDArray[np.float64]
VERSION: Final = 2
ALIGNED: Final = True
RESULTS_TO: Final = "row"
RESULTS: Final = ("row-group-labels", "row-group-model")
_LABELS: Final = {
    "labels": Rule("<i8", ("n",), 0),
    "cluster_sizes": Rule("<i8", ("k",), 0),
}
KINDS: Final[Mapping[str, Kind]] = {
    **shared.KINDS,
    **sums.KINDS,
    "project": Kind(),
    "projections": Kind(
        arrays={"rows": Rule("<f8", ("n", "w")), "anchors": Rule("<f8", ("r", "w"))}
    ),
    RESULTS[0]: Kind(arrays=_LABELS),
    RESULTS[1]: Kind(
        arrays={
            **_LABELS,
            "coordinates": Rule("<f8", ("n_coordinates", "dims")),
            "centroids": Rule("<f8", ("k", "dims")),
            "map_matrix": Rule("<f8", ("width", "map_dims")),
            "map_offset": Rule("<f8", ("map_dims",)),
        }
    ),
}
_USUAL: Final[Mapping[str, Any]] = {
    "scaling": "shared",
    "anchor": {},
    "dimensions": "all_but_one",
    "reduction": "pca",
    "output": "labels",
    "predictor": False,
    "alignment": {},
    # the analyst's alone
    "n_clusters": None,
    "map": None,
    "target": None,
    "n_init": None,
    "max_iter": None,
    "algorithm": None,
}
_WRITTEN: Final[Mapping[str, Sequence[Any]]] = {
    "reduction": ("pca",),
}
_ANCHORS: Final = ("gaussian", "rotated", "uniform")


@dataclass(frozen=True)
class Params(GivenParams):
    """Section 12, dc: parameters, with those that are left out."""

    usual = _USUAL
    written = _WRITTEN

    @property
    def anchor(self) -> str:
        """Section 12, dc: the kind of anchors."""
        return str(self["anchor"].get("kind", "gaussian"))

    @property
    def ranges(self) -> bool:
        """Section 12, dc: whether ranges are pooled."""
        return self.anchor == "uniform"

    @property
    def moments(self) -> bool:
        """Section 12, dc: whether moments are pooled."""
        return self["scaling"] == "shared" or self.anchor in {"gaussian", "rotated"}


def stages(session: Session) -> Sequence[Stage]:
    """Section 12, dc: its stages, once the roster fits."""
    params = Params(session.terms["protocol"]["params"])
    _check(session, params)
    upload = Stage("upload", (Exchange("project", "projections"),), _Projector(params))
    pooled: list[Stage] = []
    groups = session.groups("column")
    if params.ranges:
        pooled = [shared.statistics(session, moments=params.moments, ranges=True)]
    elif params.moments:
        if any(len(group) > 2 for group in groups):
            pooled.append(sums.moments(session))
        if any(len(group) < 3 for group in groups):
            pooled.append(
                shared.statistics(session, moments=True, ranges=False, most=2)
            )
    return (shared.secrets(), shared.alignment(session), *pooled, upload)


def _check(session: Session, params: Params) -> None:
    """Section 12, dc: terms that these functions know, and a roster that fits."""
    unknown = set(params["anchor"]) - {"kind", "n_rows", "ranges"}
    declared = params["anchor"].get("ranges", "pooled") != "pooled"
    if not params.are_known or unknown or declared or params.anchor not in _ANCHORS:
        raise Refusal("version-mismatch")
    first = [group[0] for group in session.groups("row")]
    widths = [session.roster[slot]["n_columns"] for slot in session.slots]
    narrow = params["dimensions"] == "all_but_one" and min(widths) < 2
    few = session.n_rows(first) < params["n_clusters"]
    if narrow or few or n_anchors(session, params) < 2 * _n_columns(session):
        raise Refusal("protocol-failed")


def _n_columns(session: Session) -> int:
    """Section 12, dc: the columns of all column groups."""
    first = [group[0] for group in session.groups("column")]
    return sum(session.roster[slot]["n_columns"] for slot in first)


def n_anchors(session: Session, params: Params) -> int:
    """Section 12, dc, anchors: r."""
    return params["anchor"].get("n_rows") or max(500, 5 * _n_columns(session))


def draw_anchors(view: View, params: Params) -> Floats:
    """Section 12, dc, anchors."""
    r, m = n_anchors(view.session, params), len(view.session.columns)
    pooled = view.recall("moments")
    stream = shared.group_stream(view, "column", "anchors")
    if params.anchor == "uniform":
        drawn = stream.uniform(r * m).reshape(r, m)
        return pooled.minimum + (pooled.maximum - pooled.minimum) * drawn
    spread = pooled.deviation
    if params["scaling"] in {"center", "none"}:
        spread = np.full(m, np.sqrt(np.mean(np.square(spread))))
    if params.anchor == "rotated":
        drawn = (stream.uniform(r * m).reshape(r, m) - 0.5) * np.sqrt(12.0)
        return pooled.mean + spread * (drawn @ stream.rotation(m))
    return pooled.mean + spread * stream.normal(r, m)


def private_map(view: View, params: Params) -> tuple[Floats, Floats, Floats]:
    """Section 12, dc, private map: offset, scale and F."""
    rows = view.session.rows
    own = shared.measure(rows, moments=True, ranges=False)
    offset, scale = _scaling(view, params, own)
    width = rows.shape[1]
    axes = np.eye(width)
    if params["dimensions"] == "all_but_one":
        _, values, turned = np.linalg.svd((rows - own.mean) / scale)
        shift = float(np.linalg.norm(own.mean / scale))
        least = max(rows.shape) * 2.0**-52 * max(values[0], shift)
        rank = int(np.count_nonzero(values > least)) if values[0] > 0 else 0
        if rank == 1:
            raise Refusal("guard-refused")
        width, axes = max(1, min(rank, len(rows)) - 1), turned.T
    rotation = view.session.draw(view.stage, "rotation").rotation(width)
    return offset, scale, axes[:, :width] @ rotation


def _scaling(view: View, params: Params, own: shared.Moments) -> tuple[Floats, Floats]:
    """Section 12, dc, private map: offset and scale."""
    ones = np.ones_like(own.mean)
    if params["scaling"] == "none":
        return 0 * ones, ones
    if params["scaling"] == "center":
        return own.mean, ones
    found = own if params["scaling"] == "local" else view.recall("moments")
    deviation = found.deviation
    return found.mean, view.session.units(np.where(deviation > 0, deviation, 1.0))


@dataclass(frozen=True)
class _Projector(Role):
    """Section 12, dc, upload."""

    params: Params

    def reply(self, view: View, _task: Record) -> Reply:
        """Section 12, dc, upload: rows and anchors under the private map."""
        if "uploaded" in view.memory:
            raise Refusal("protocol-failed")
        offset, scale, F = private_map(view, self.params)
        rows = ((view.session.rows - offset) / scale) @ F
        anchors = ((draw_anchors(view, self.params) - offset) / scale) @ F
        arrays = {"rows": rows[view.recall("order")], "anchors": anchors}
        return Reply(Record("projections", arrays=arrays), remember={"uploaded": True})


def conclude(view: View, result: Record) -> Any:
    """Section 12, dc, result."""
    order, labels = view.recall("order"), result.arrays["labels"]
    if len(labels) != len(order):
        raise Refusal("invalid-array")
    if len(result.arrays.get("coordinates", ())):
        _check_nearest(result.arrays)
    own = np.empty_like(labels)
    own[order] = labels
    return own


def _check_nearest(given: Mapping[str, NDArray[Any]]) -> None:
    """Section 12, dc, result: labels are those of the nearest centroids."""
    apart = given["coordinates"][:, None] - given["centroids"][None]
    far = np.sqrt(np.square(apart).sum(axis=2))
    own = far[np.arange(len(far)), given["labels"]]
    if (own > far.min(axis=1) * (1 + 1e-9)).any():
        raise Refusal("protocol-failed")

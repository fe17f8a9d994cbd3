"""Section 12: omnifc, rows shared out among the parties, and distances between shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import lagrange, moments as sums, stages as shared
from .derivations import P, Refusal, Stream, derive, exchange
from .kinds import Kind, Record, Rule
from .landmarks import draw_landmarks
from .order import Exchange, Memory, Reply, Role, Stage, View
from .params import GivenParams
from .session import Session

Floats = NDArray[np.float64]
VERSION: Final = 2
ALIGNED: Final = False
RESULTS_TO: Final = "row"
RESULTS: Final = ("row-group-labels", "row-group-memberships")
_LABELS: Final = {
    "labels": Rule("<i8", ("n",), -1),
    "cluster_sizes": Rule("<i8", ("k",), 0),
}
KINDS: Final[Mapping[str, Kind]] = {
    **shared.KINDS,
    **sums.KINDS,
    "share": Kind(),
    "shared": Kind(),
    "row-shares": Kind(arrays={"shares": Rule("<u8", ("n", "width"), 0, P - 1)}),
    "compare": Kind(),
    RESULTS[0]: Kind(arrays=_LABELS),
    RESULTS[1]: Kind(
        {"n_coinciding": "integer"},
        _LABELS | {"memberships": Rule("<f8", ("n", "k"), 0, 1)},
    ),
}
_USUAL: Final[Mapping[str, Any]] = {
    "n_clusters": None,
    "distances": "all",
    "scaling": "standard",
    "ranges": "pooled",
    "segments": 1,
    "noise": 1,
    "bits": None,
    "hide_segments": True,
    "max_rows": 10_000,
    # the analyst's alone
    "algorithm": "kmeans",
    "features": "embedding",
    "linkage": "average",
    "eps": None,
    "min_samples": 5,
    "min_cluster_size": 5,
    "fuzziness": 2.0,
    "n_init": 10,
    "max_iter": 300,
    "memory_limit": 3 << 30,
}
_WRITTEN: Final[Mapping[str, Sequence[Any]]] = {
    "distances": ("all", "landmarks"),
    "scaling": ("standard", "minmax", "none", "unit_norm"),
    "ranges": ("pooled", "declared"),
    "hide_segments": (True, False),
}
_MOST_BITS: Final = 25
_BLOCK: Final = 65_536


@dataclass(frozen=True)
class Params(GivenParams):
    """Section 12, omnifc, stages: parameters, with those that are left out."""

    usual = _USUAL
    written = _WRITTEN

    @property
    def enough(self) -> int:
        """Section 12, omnifc, stages: R."""
        return 2 * int(self["segments"]) + 2 * int(self["noise"]) - 1

    @property
    def sums(self) -> bool:
        """Section 12, omnifc, stages: whether moments are pooled."""
        return self["ranges"] == "pooled" and self["scaling"] in {"standard", "none"}

    @property
    def extremes(self) -> bool:
        """Section 12, omnifc, stages: whether ranges are pooled."""
        return bool(self["ranges"] == "pooled" and self["scaling"] == "minmax")


def _params(session: Session) -> Params:
    """Section 12, omnifc, stages: the parameters of a session."""
    return Params(session.terms["protocol"]["params"])


def quorum(session: Session) -> int:
    """Section 12, omnifc, distances: how many signatures of the closing suffice."""
    params = _params(session)
    return len(session.slots) if params["hide_segments"] else params.enough


def stages(session: Session) -> Sequence[Stage]:
    """Section 12, omnifc, stages: those of a session, once its roster fits."""
    params = _params(session)
    _check(session, params)
    pooled: list[Stage] = []
    if params.sums:
        pooled.append(sums.moments(session))
    if params.extremes:
        pooled.append(shared.statistics(session, moments=False, ranges=True))
    seal = Exchange("share", "shared")
    least = int(params["hide_segments"])
    return (
        shared.secrets(),
        shared.alignment(session),
        *pooled,
        Stage("shares", (seal,), _Sharer(params), frozenset({"row-shares"})),
        Stage("distances", (Exchange("compare", "answer", least),), _Comparer(params)),
    )


def _check(session: Session, params: Params) -> None:
    """Section 12, omnifc, stages: terms that these functions know, a roster that fits."""
    if not params.are_known:
        raise Refusal("version-mismatch")
    few = len(session.slots) < params.enough or len(session.groups("column")) > 1
    low, high = session.ranges()
    open_ended = not np.isfinite([low, high]).all()
    if few or (params["ranges"] == "declared" and open_ended):
        raise Refusal("invalid-parameters")
    n = session.n_rows(session.slots)
    if n > params["max_rows"] or n < (params["n_clusters"] or 0):
        raise Refusal("protocol-failed")


@dataclass(frozen=True)
class _Scale:
    """Section 12, omnifc, numbers: a, b and f of each column, and q."""

    low: Floats
    high: Floats
    factor: Floats
    bits: int

    @property
    def widths(self) -> Floats:
        """Section 12, omnifc, landmarks: r."""
        return (self.high - self.low) * self.factor * 2.0**self.bits


def _find_scale(view: View, params: Params) -> _Scale:
    """Section 12, omnifc, numbers: what all parties do alike."""
    scaling, ones = params["scaling"], np.ones(len(view.session.columns))
    low, high, factor = -ones, ones, ones
    if params["ranges"] == "declared":
        low, high = view.session.ranges()
    elif params.extremes:
        pooled = view.recall("moments")
        low, high = pooled.minimum, pooled.maximum
    elif params.sums:
        pooled = view.recall("moments")
        reach = 2.0 ** view.recall("phases")["q"].astype(np.float64)
        low, high = pooled.mean - reach, pooled.mean + reach
        if scaling == "standard":
            factor = 1.0 / np.where(pooled.deviation > 0, pooled.deviation, 1.0)
    if scaling == "minmax":
        factor = 1.0 / np.where(high - low > 0, high - low, 1.0)
    most = _most_bits((high - low) * factor)
    given = params["bits"]
    if most < 0 or (given is not None and given > most):
        raise Refusal("invalid-parameters")
    return _Scale(low, high, factor, most if given is None else given)


def _most_bits(ranges: Floats) -> int:
    """Section 12, omnifc, numbers: Q, below zero where none fits."""
    exact = [Fraction(float(each)) for each in ranges]
    fits = [
        q
        for q in range(_MOST_BITS + 1)
        if sum((ceil(each * 2**q) + 1) ** 2 for each in exact) < P
    ]
    return max(fits, default=-1)


def _residues(view: View, params: Params, scale: _Scale) -> NDArray[np.uint64]:
    """Section 12, omnifc, numbers: those of the own rows, in the row order."""
    rows = view.session.rows
    outside = bool(((rows < scale.low) | (rows > scale.high)).any())
    if outside and params["ranges"] == "declared":
        raise Refusal("invalid-data")
    if outside and params.extremes:
        raise Refusal("protocol-failed")
    if params["scaling"] == "unit_norm":
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(length > 0, length, 1.0)
    whole = np.rint((rows - scale.low) * scale.factor * 2.0**scale.bits)
    return whole.astype(np.uint64)[view.recall("order")]


@dataclass(frozen=True)
class _Sharer(Role):
    """Section 12, omnifc, shares."""

    params: Params

    def reply(self, view: View, _task: Record) -> Reply:
        """Section 12, omnifc, shares: one for each party."""
        if "own-shares" in view.memory:
            raise Refusal("protocol-failed")
        session, params = view.session, self.params
        scale = _find_scale(view, params)
        cut = lagrange.cut(_residues(view, params, scale), params["segments"])
        digest = sha256(b"".join(each.astype("<u8").tobytes() for each in cut))
        stream = session.draw(view.stage, f"noise/{digest.hexdigest()}")
        noise = [
            np.array(stream.residues(cut[0].size), np.uint64).reshape(cut[0].shape)
            for _ in range(params["noise"])
        ]
        parts = [*cut, *noise]
        made = {
            slot: lagrange.encode(parts, number)
            for number, slot in enumerate(session.slots)
        }
        sealed = [
            (slot, Record("row-shares", arrays={"shares": share}))
            for slot, share in made.items()
            if slot != session.slot
        ]
        remember = {"own-shares": made[session.slot], "scale": scale}
        return Reply(Record("shared"), sealed, remember=remember)

    def receive(self, view: View, came: list[tuple[str, Record]]) -> Memory:
        """Section 12, omnifc, shares: those of all rows."""
        session = view.session
        held = {session.slot: view.recall("own-shares")}
        width = held[session.slot].shape[1]
        for sender, record in came:
            held[sender] = record.arrays["shares"]
            if held[sender].shape != (session.n_rows([sender]), width):
                raise Refusal("invalid-array")
        if set(held) != set(session.slots):
            raise Refusal("protocol-failed")
        return {"held": np.concatenate([held[slot] for slot in session.slots])}


@dataclass(frozen=True)
class _Comparer(Role):
    """Section 12, omnifc, distances."""

    params: Params

    def reply(self, view: View, _task: Record) -> Reply:
        """Section 12, omnifc, distances: those between the shares that it holds."""
        params, session = self.params, view.session
        held, scale = view.recall("held"), view.recall("scale")
        first = len(held)
        if params["distances"] == "landmarks":
            stream = shared.group_stream(view, "column", "landmarks")
            drawn = draw_landmarks(scale.widths, stream)
            cut = lagrange.cut(drawn, params["segments"])
            parts = cut + [np.zeros_like(cut[0])] * params["noise"]
            own = lagrange.encode(parts, session.slots.index(session.slot))
            held, first = np.concatenate([own, held]), len(own)
        found = lagrange.compare(held, first)
        if params["hide_segments"]:
            found = _hide(view, params, found)
        arrays = {"distances": np.array(found, np.uint64)}
        return Reply(Record("answer", {"bits": scale.bits}, arrays))


def _hide(view: View, params: Params, found: list[int]) -> list[int]:
    """Section 12, omnifc, distances: weighted and masked."""
    session, slots = view.session, view.session.slots
    own = slots.index(session.slot)
    weight = lagrange.weigh(params["segments"], own, len(slots))
    hidden = [weight * each for each in found]
    private, _ = session.keys()
    for number, peer in enumerate(slots):
        if peer == session.slot:
            continue
        pair = slots[min(own, number)], slots[max(own, number)]
        secret = exchange(private, session.roster[peer]["keys"]["x25519"])
        salt = bytes.fromhex(view.transcript)
        labels = ("coterie/pair/3", *pair, "coterie/field-mask/2")
        stream = Stream(derive(secret, salt, *labels))
        mask = [
            each
            for begin in range(0, len(found), _BLOCK)
            for each in stream.residues(min(_BLOCK, len(found) - begin))
        ]
        sign = 1 if own < number else -1
        hidden = [a + sign * b for a, b in zip(hidden, mask, strict=True)]
    return [each % P for each in hidden]


def conclude(view: View, result: Record) -> Any:
    """Section 12, omnifc, result."""
    order, labels = view.recall("order"), result.arrays["labels"]
    if len(labels) != len(order):
        raise Refusal("invalid-array")
    own = np.empty_like(labels)
    own[order] = labels
    return own

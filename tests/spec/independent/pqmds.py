"""Section 12: pqmds, one upload of codes, with noise or without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import noise, stages as shared
from .codebooks import Codebook, choose_codebook
from .derivations import Refusal
from .kinds import Kind, Record, Rule
from .order import Exchange, Reply, Role, Stage, View
from .params import GivenParams
from .session import Session

Floats = NDArray[np.float64]
VERSION: Final = 2
ALIGNED: Final = True
RESULTS_TO: Final = "slot"
RESULTS: Final = ("clusters",)
KINDS: Final[Mapping[str, Kind]] = {
    **shared.KINDS,
    "encode": Kind(),
    "codes": Kind(arrays={"codes": Rule("<f8", ("n", "s"))}),
    RESULTS[0]: Kind(
        arrays={
            "labels": Rule("<i8", ("n",), 0),
            "cluster_sizes": Rule("<i8", ("k",), 0),
            "centroids": Rule("<f8", ("k", "s")),
        }
    ),
}
_USUAL: Final[Mapping[str, Any]] = {
    "n_clusters": None,
    "alignment": {},
    "sub_dim": 2,
    "codebook_size": 64,
    "coordinates": 1,
    "scaling": "standard",
    "normalise": "scale",
    "weights": "rows",
    "privacy": {},
    # the analyst's alone
    "n_init": 10,
    "max_iter": 300,
}
_WRITTEN: Final[Mapping[str, Sequence[Any]]] = {
    "scaling": ("standard", "none"),
    "normalise": ("scale", "minmax"),
    "weights": ("rows", "centres"),
}
_MECHANISMS: Final = ("none", "laplace", "gaussian")
_PRIVACY: Final = {"mechanism", "epsilon", "delta"}
_DRAWN: Final = 16
_STEPS: Final = 1024


@dataclass(frozen=True)
class Params(GivenParams):
    """Section 12, pqmds, stages: parameters, with those that are left out."""

    usual = _USUAL
    written = _WRITTEN

    @property
    def mechanism(self) -> str:
        """Section 12, pqmds, noise: which one, if any."""
        return str(self["privacy"].get("mechanism", "none"))

    @property
    def budget(self) -> tuple[float, float]:
        """Section 12, pqmds, noise: ε and δ of a person."""
        said = self["privacy"]
        return float(said.get("epsilon", 1.0)), float(said.get("delta", 0.0))

    def cut(self, m: int) -> list[tuple[slice, int]]:
        """Section 12, pqmds, subspaces: columns of each, and how many codes."""
        size, whole = self["sub_dim"], self["coordinates"] == self["sub_dim"]
        begins = list(range(0, m, size))
        if 1 < size < m and m % size == 1:
            begins.pop()
        ends = [*begins[1:], m]
        return [
            (slice(a, b), b - a if whole else min(self["coordinates"], b - a))
            for a, b in zip(begins, ends, strict=True)
        ]

    def count_codes(self, m: int) -> int:
        """Section 12, pqmds, subspaces: s of a party with m columns."""
        return sum(width for _, width in self.cut(m))


def stages(session: Session) -> Sequence[Stage]:
    """Section 12, pqmds, stages: those of a session, once its roster fits."""
    params = Params(session.terms["protocol"]["params"])
    _check(session, params)
    upload = Stage("upload", (Exchange("encode", "codes"),), _Encoder(params))
    return (shared.secrets(), shared.alignment(session), upload)


def _check(session: Session, params: Params) -> None:
    """Section 12, pqmds, stages: terms that these functions know, a roster that fits."""
    unknown = set(params["privacy"]) - _PRIVACY
    if not params.are_known or unknown or params.mechanism not in _MECHANISMS:
        raise Refusal("version-mismatch")
    several = len(session.groups("row")) > 1
    _, delta = params.budget
    deltas = (delta > 0) != (params.mechanism == "gaussian")
    low, high = session.ranges()
    unknown_ranges = not np.isfinite(high - low).all() or (low == high).any()
    noisy = params.mechanism != "none"
    deep = params["coordinates"] > params["sub_dim"]
    if several or deltas or deep or (noisy and unknown_ranges):
        raise Refusal("invalid-parameters")
    if session.n_rows(session.slots[:1]) < params["n_clusters"]:
        raise Refusal("protocol-failed")


def _encode(view: View, params: Params) -> Floats:
    """Section 12, pqmds, codes: those of the own rows."""
    rows = view.session.rows
    if params["scaling"] == "standard":
        spread = rows.std(axis=0)
        rows = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    codes = []
    for columns, width in params.cut(rows.shape[1]):
        book = choose_codebook(rows[:, columns], params["codebook_size"])
        placed = _place(params, book, width)
        codes.append(placed[book.assign(rows[:, columns])])
    return np.hstack(codes)


def _place(params: Params, book: Codebook, width: int) -> Floats:
    """Section 12, pqmds, codes, 3 to 5: coordinates of centres."""
    weights = book.counts if params["weights"] == "rows" else np.ones(len(book.counts))
    return book.place(weights, width, minmax=params["normalise"] == "minmax")


def _encode_privately(view: View, params: Params) -> Floats:
    """Section 12, pqmds, noise: codes of known ranges, with noise."""
    session = view.session
    low, high = session.ranges()
    rows = np.clip(session.rows, low, high)
    if params["scaling"] == "standard":
        middle, unit = (low + high) / 2, (high - low) / np.sqrt(12.0)
        rows, low, high = ((x - middle) / unit for x in (rows, low, high))
    chance = session.draw(view.stage, "codebooks")
    size = params["codebook_size"]
    found: list[tuple[Floats, float, float]] = []
    for columns, width in params.cut(rows.shape[1]):
        d = columns.stop - columns.start
        drawn = chance.uniform(_DRAWN * size * d).reshape(-1, d)
        drawn = low[columns] + drawn * (high[columns] - low[columns])
        book = choose_codebook(drawn, size)
        placed = _place(params, book, width)
        codes = placed[book.assign(rows[:, columns])]
        ends = (0.0, 0.0)
        for number in range(width):
            least, most = placed[:, number].min(), placed[:, number].max()
            ends = (float(least), float(most)) if most > least else ends
            found.append((codes[:, number], *ends))
    return _add_noise(view, params, found)


def _add_noise(
    view: View, params: Params, codes: Sequence[tuple[Floats, float, float]]
) -> Floats:
    """Section 12, pqmds, noise: codes, each with its low and high."""
    session = view.session
    widths = [session.roster[slot]["n_columns"] for slot in session.slots]
    n_codes = sum(params.count_codes(width) for width in widths)
    epsilon, delta = (each / n_codes for each in params.budget)
    stream = session.draw(view.stage, f"noise under {session.agreement}")
    noisy = []
    for code, low, high in codes:
        step = (high - low) / _STEPS
        if params.mechanism == "laplace":
            drawn = noise.laplace(stream, noise.laplace_scale(epsilon), len(code))
        else:
            scale = noise.gaussian_scale(epsilon, delta)
            drawn = noise.gaussian(stream, scale, len(code))
        noisy.append(low + step * (np.rint((code - low) / step) + drawn))
    return np.column_stack(noisy)


@dataclass(frozen=True)
class _Encoder(Role):
    """Section 12, pqmds, codes."""

    params: Params

    def reply(self, view: View, _task: Record) -> Reply:
        """Section 12, pqmds, codes: once, in the row order."""
        if "encoded" in view.memory:
            raise Refusal("protocol-failed")
        if len(view.session.columns) == 1 and self.params["sub_dim"] > 1:
            raise Refusal("guard-refused")
        noisy = self.params.mechanism != "none"
        encode = _encode_privately if noisy else _encode
        codes = encode(view, self.params)[view.recall("order")]
        remember = {"encoded": codes.shape[1]}
        return Reply(Record("codes", arrays={"codes": codes}), remember=remember)


def conclude(view: View, result: Record) -> Any:
    """Section 12, pqmds, result."""
    order, labels = view.recall("order"), result.arrays["labels"]
    width = result.arrays["centroids"].shape[1]
    if len(labels) != len(order) or width != view.recall("encoded"):
        raise Refusal("invalid-array")
    own = np.empty_like(labels)
    own[order] = labels
    return own

"""Pooled clustering with which sessions of `dc` are compared, and example sessions.

The examples use synthetic data with three groups of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from clustering_protocols.contract import Example, Trace
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.numerics.randomness import seeded_generator
from clustering_protocols.numerics.row_blocks import ArrayRows
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.alignment.params import BY_MATCH_KEYS, Alignment
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout

from . import analyst, maths, messages
from .maths import qr_r
from .params import Anchor, DataCollaboration, DcSession


def cluster_pooled(
    params: DataCollaboration, X: FloatArray, trace: Trace[DataCollaboration] | None
) -> IntArray:
    """Cluster X with the session's algorithm, scaling and starts; return labels."""
    rows = ArrayRows(scale(params, X))
    generators = partial(seeded_generator, 0, "dc", "pooled")
    representatives = analyst.draw_representatives(params, rows, generators)
    summary = trace.summary_as(messages.Summary) if trace else None
    starts = None if summary is None else summary.starts
    if representatives is not None:
        starts = None  # the session's starts may not be among the representatives
    clustering, _ = analyst.cluster_rows(
        params, rows, generators, representatives, starts
    )
    return clustering.labels


def scale(params: DataCollaboration, X: FloatArray) -> FloatArray:
    """Return X in the units that the parties agree on.

    Scaling 'none' and 'center' returns X unchanged, because centring changes no
    distance. Scaling 'local' is approximated by the pooled standard deviations.
    """
    if params.scaling in {"none", "center"}:
        return X
    spread = X.std(axis=0)
    scaled: FloatArray = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled


def objectives(
    params: DataCollaboration,
    X: FloatArray,
    clustered: tuple[IntArray, FloatArray | None],
    trace: Trace[DataCollaboration],
) -> Objectives | None:
    """Compare the session's inertia with that of pooled k-means, or return None.

    The result is None for other algorithms. If parties drop dimensions, k-means of the
    rows without these is compared too.
    """
    if params.algorithm != "kmeans":
        return None
    Z = scale(params, X)
    reduced = None
    if params.drops_one_dimension and trace.session.layout.is_regular:
        reduced = _drop_dimensions(trace.session, Z)
    return pooled_objectives.compare_kmeans(Z, clustered[0], params.n_clusters, reduced)


def _drop_dimensions(session: DcSession, Z: FloatArray) -> FloatArray:
    """Return rows (n, m) without the direction of least variance of each party's part."""
    begin, reduced = 0, np.empty_like(Z)
    for group in session.layout.row_groups:
        end, first = begin + session.n_rows(group[0]), 0
        for slot in group:
            last = first + session.member(slot).n_columns
            X = Z[begin:end, first:last]
            mean = X.mean(axis=0)
            axes, rank = maths.principal_axes(qr_r(X - mean), len(X))
            F = axes[:, : maths.reduced_width(rank, len(X))]
            reduced[begin:end, first:last] = mean + (X - mean) @ F @ F.T
            first = last
        begin = end
    return reduced


_WIDTH = 6


def examples() -> Sequence[Example[DataCollaboration]]:
    """Return the defaults, the paper's settings, and each alternative at least once."""
    lattice = Layout.lattice
    without_corner = Layout(slots=lattice(3, 2).slots[:-1])
    uniform = Anchor(kind="uniform")
    return [
        _example(lattice(2, 2), dimensions="all_but_one"),
        _example(lattice(3, 1), scaling="center"),
        _example(lattice(2, 3), scaling="local", target="orthonormal", anchor=uniform),
        _example(lattice(1, 2), anchor=Anchor(kind="uniform", ranges="declared")),
        _example(lattice(4, 1), predictor=True),
        _example(lattice(2, 1), algorithm="spectral", output="coordinates"),
        _example(lattice(5, 1), anchor=Anchor(kind="rotated")),
        _example(lattice(1, 3), dimensions="all"),
        _example(
            lattice(3, 2), dimensions="all", scaling="center", algorithm="spectral"
        ),
        _example(
            without_corner, sections={"evaluation": Evaluation(n_clusters=(2, 3))}
        ),
        _example(without_corner, missing=1 / 8, alignment=Alignment(method="ecdh")),
        _example(
            Layout(slots=lattice(2, 3).slots[:-1]),
            missing=1 / 8,
            alignment=BY_MATCH_KEYS,
        ),
        _example(lattice(1, 3), dimensions="all", output="coordinates"),
    ]


def _example(
    layout: Layout,
    *,
    missing: float = 0.0,
    sections: Mapping[str, Any] | None = None,
    **values: Any,
) -> Example[DataCollaboration]:
    """Return an example with three clusters, and with a dictionary if ranges are needed."""
    params = DataCollaboration(n_clusters=3, **values)
    sections = dict(sections or {})
    if params.anchor.ranges == "declared":
        columns = [f"x{index}" for index in range(_WIDTH)]
        names = np.array_split(columns, layout.n_column_groups)
        sections["dictionary"] = [
            numeric_schema(x.tolist(), -40.0, 40.0) for x in names
        ]
    return Example(
        params=params,
        layout=layout,
        X=_draw_rows(np.random.default_rng(0)),
        missing=missing,
        sections=sections,
    )


def _draw_rows(rng: np.random.Generator) -> FloatArray:
    centres = 4.0 * rng.normal(size=(3, _WIDTH))
    return centres[rng.integers(3, size=120)] + rng.normal(size=(120, _WIDTH))

"""What `dc` is shown on and measured by: examples, and the same clustering of pooled rows.

Examples are made data: three groups of rows, features of different units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.algorithms.representatives import Representatives
from clustering_protocols.algorithms.spectral import spectral_embedding
from clustering_protocols.common.limits import graph_rows
from clustering_protocols.contract import Example, Trace
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.numerics.randomness import generator
from clustering_protocols.numerics.row_blocks import ArrayRows
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.alignment.params import BY_MATCH_KEYS, Alignment
from clustering_protocols.terms.schema import numbers
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout

from . import maths, messages
from .maths import qr_r
from .params import Anchor, DataCollaboration, DcSession


def cluster_pooled(
    params: DataCollaboration, X: FloatArray, trace: Trace[DataCollaboration] | None
) -> IntArray:
    """Return labels of the same algorithm on X, with the same scaling and starts."""
    Z, some, starts = scale(params, X), None, _starts(trace)
    if params.samples_rows(len(X)):  # its own, among which no start of a trace is
        rng = generator(0, "dc", "pooled", "representatives")
        some = Representatives.draw(ArrayRows(Z), graph_rows(len(X)), rng)
        Z, starts = some.V, None
    if params.algorithm == "spectral":
        rng = generator(0, "dc", "pooled", "embedding")
        Z = spectral_embedding(Z, params.n_clusters, rng)
    if starts is None:
        rng = generator(0, "dc", "pooled")
        starts = draw_starts(Z, params.n_clusters, params.n_init, rng)
    found = kmeans(Z, starts, params.max_iter)
    return found.labels if some is None else some.spread(found).labels


def _starts(trace: Trace[DataCollaboration] | None) -> IntArray | None:
    """Return the rows from which a session's clustering started, if there is one."""
    summary = trace.summary_as(messages.Summary) if trace else None
    return None if summary is None else summary.starts


def scale(params: DataCollaboration, X: FloatArray) -> FloatArray:
    """Return X in the units that the parties agree on.

    Centring moves all distances alike, so it leaves nothing to do here. Local spreads
    are the parties' own; the pooled spread is what they stand for.
    """
    if params.scaling in {"none", "center"}:
        return X
    scaled: FloatArray = (X - X.mean(axis=0)) / maths.spread_or_one(X.std(axis=0))
    return scaled


def objectives(
    params: DataCollaboration,
    X: FloatArray,
    clustered: tuple[IntArray, FloatArray | None],
    trace: Trace[DataCollaboration],
) -> Objectives | None:
    """Return the inertia of k-means; the rules leave out what parties leave out."""
    if params.algorithm != "kmeans":
        return None
    Z = scale(params, X)
    reduced = None
    if params.leaves_one_out and trace.session.layout.regular:
        reduced = _leave_dimensions_out(trace.session, Z)
    return pooled_objectives.of_kmeans(Z, clustered[0], params.n_clusters, reduced)


def _leave_dimensions_out(session: DcSession, Z: FloatArray) -> FloatArray:
    """Return rows without each party's own direction of least variance."""
    begin, reduced = 0, np.empty_like(Z)
    for group in session.layout.row_groups:
        end, first = begin + session.n_rows(group[0]), 0
        for slot in group:
            last = first + session.member(slot).n_columns
            own = Z[begin:end, first:last]
            mean = own.mean(axis=0)
            axes, rank = maths.principal_axes(qr_r(own - mean), len(own))
            F = axes[:, : maths.reduced_width(rank, len(own))]
            reduced[begin:end, first:last] = mean + (own - mean) @ F @ F.T
            first = last
        begin = end
    return reduced


_WIDTH = 6


def examples() -> Sequence[Example[DataCollaboration]]:
    """Return the defaults, the paper's text, and each alternative at least once."""
    variants = {
        (2, 2): DataCollaboration(n_clusters=3, dimensions="all_but_one"),
        (3, 1): DataCollaboration(n_clusters=3, scaling="center", map="linear"),
        (2, 3): DataCollaboration(
            n_clusters=3,
            scaling="local",
            target="orthonormal",
            anchor=Anchor(kind="uniform"),
        ),
        (1, 2): DataCollaboration(
            n_clusters=3, anchor=Anchor(kind="uniform", ranges="declared")
        ),
        (4, 1): DataCollaboration(
            n_clusters=3, anchor=Anchor(kind="smote"), reduction="lpp", predictor=True
        ),
        (2, 1): DataCollaboration(
            n_clusters=3,
            anchor=Anchor(kind="low_rank"),
            reduction="svd",
            algorithm="spectral",
            output="coordinates",
        ),
        (5, 1): DataCollaboration(
            n_clusters=3, anchor=Anchor(kind="rotated"), reduction="autoencoder"
        ),
        (1, 3): DataCollaboration(n_clusters=3, dimensions="all"),
        (3, 2): DataCollaboration(
            n_clusters=3, dimensions="all", scaling="center", algorithm="spectral"
        ),
    }
    X = _draw_rows(np.random.default_rng(0))
    regular = [
        _example(params, Layout.lattice(*cells), X)
        for cells, params in variants.items()
    ]
    ragged = Example(
        params=_RAGGED,
        layout=_without_a_corner(),
        X=X,
        sections={"evaluation": Evaluation(n_clusters=(2, 3))},
    )
    aligned = Example(params=_ALIGNED, layout=_without_a_corner(), X=X, missing=1 / 8)
    linked = Example(params=_LINKED, layout=_without_a_corner(2, 3), X=X, missing=1 / 8)
    open_rows = _example(_OPEN, Layout.lattice(1, 3), X)
    return [*regular, ragged, aligned, linked, open_rows]


def _example(
    params: DataCollaboration, layout: Layout, X: FloatArray
) -> Example[DataCollaboration]:
    """Return an example, with the dictionary from which anchors are drawn."""
    names = np.array_split(
        [f"x{index}" for index in range(_WIDTH)], layout.n_column_groups
    )
    schemas = [numbers(group.tolist(), -40.0, 40.0) for group in names]
    declared = params.anchor.ranges == "declared"
    return Example(
        params=params,
        layout=layout,
        X=X,
        sections={"dictionary": schemas} if declared else {},
    )


_ALIGNED = DataCollaboration(n_clusters=3, alignment=Alignment(method="ecdh"))

_LINKED = DataCollaboration(n_clusters=3, alignment=BY_MATCH_KEYS)

_OPEN = DataCollaboration(n_clusters=3, dimensions="all", output="coordinates")

_RAGGED = DataCollaboration(n_clusters=3, reduction="random")


def _without_a_corner(n_rows: int = 3, n_columns: int = 2) -> Layout:
    """Return row groups of these column groups, the last lacking one."""
    return Layout(slots=Layout.lattice(n_rows, n_columns).slots[:-1])


def _draw_rows(rng: np.random.Generator) -> FloatArray:
    centres = 4.0 * rng.normal(size=(3, _WIDTH))
    return centres[rng.integers(3, size=120)] + rng.normal(size=(120, _WIDTH))

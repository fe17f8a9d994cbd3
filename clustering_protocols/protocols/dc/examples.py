"""Examples of `dc` on made data: three groups of rows, features of different units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustering_protocols.contract import Example
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.alignment.examples import BY_MATCH_KEYS
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.evaluation import Evaluation
from clustering_protocols.terms.schema import numbers
from clustering_protocols.terms.terms import Layout

from .params import Anchor, DataCollaboration

_WIDTH = 6


def examples() -> Sequence[Example[DataCollaboration]]:
    """Return the defaults, the paper's text, and each alternative at least once."""
    variants = {
        (2, 2): DataCollaboration(n_clusters=3),
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
    return [*regular, ragged, aligned, linked]


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

_RAGGED = DataCollaboration(n_clusters=3, reduction="random")


def _without_a_corner(n_rows: int = 3, n_columns: int = 2) -> Layout:
    """Return row groups of these column groups, the last lacking one."""
    return Layout(slots=Layout.lattice(n_rows, n_columns).slots[:-1])


def _draw_rows(rng: np.random.Generator) -> FloatArray:
    centres = 4.0 * rng.normal(size=(3, _WIDTH))
    return centres[rng.integers(3, size=120)] + rng.normal(size=(120, _WIDTH))

"""Examples of `dc` on made data: three groups of rows, features of different units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustering_protocols.arrays import FloatArray
from clustering_protocols.contract import Example
from clustering_protocols.preparation.alignment.params import Alignment
from clustering_protocols.terms import Layout

from .params import Anchor, DataCollaboration, Feature

_WIDTH = 6


def examples() -> Sequence[Example[DataCollaboration]]:
    """Return the defaults, the paper's text, and each alternative at least once."""
    declared = (Feature(spread=3.0, minimum=-9.0, maximum=9.0),) * (_WIDTH // 2)
    variants = {
        (2, 2): DataCollaboration(n_clusters=3),
        (3, 1): DataCollaboration(n_clusters=3, scaling="center", map="linear"),
        (2, 3): DataCollaboration(
            n_clusters=3,
            scaling="local",
            target="orthonormal",
            anchor=Anchor(kind="uniform"),
        ),
        (1, 2): DataCollaboration(n_clusters=3, features=(declared, declared)),
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
    }
    X = _made(np.random.default_rng(0))
    regular = [
        Example(params=params, layout=Layout.lattice(*cells), X=X)
        for cells, params in variants.items()
    ]
    ragged = Example(params=_RAGGED, layout=_without_a_corner(), X=X)
    aligned = Example(params=_ALIGNED, layout=_without_a_corner(), X=X, missing=1 / 8)
    return [*regular, ragged, aligned]


_ALIGNED = DataCollaboration(n_clusters=3, alignment=Alignment(method="ecdh"))

_RAGGED = DataCollaboration(n_clusters=3, reduction="random")


def _without_a_corner() -> Layout:
    """Return three row groups of two column groups, the last lacking one."""
    return Layout(slots=Layout.lattice(3, 2).slots[:-1])


def _made(rng: np.random.Generator) -> FloatArray:
    centres = 4.0 * rng.normal(size=(3, _WIDTH))
    return centres[rng.integers(3, size=120)] + rng.normal(size=(120, _WIDTH))

"""Examples of `fccm` on made data: three blocks of objects and items, with noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clustering_protocols.contract import Example
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.alignment.examples import BY_MATCH_KEYS
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.evaluation import Evaluation
from clustering_protocols.terms.terms import Layout

from .params import CoClustering


def examples() -> Sequence[Example[CoClustering]]:
    """Return both normalisations, both views, several starts, weights that need repeats."""
    X = _draw_degrees(np.random.default_rng(0))
    variants: Sequence[tuple[int, dict[str, Any]]] = (
        (3, {"n_init": 3, "lambda_u": 0.02, "lambda_w": 5.0}),
        (4, {"n_init": 1, "normalisation": "site", "analyst_view": "sums"}),
        (3, {"n_init": 1, "lambda_u": 0.05, "lambda_w": 0.5, "max_iter": 6}),
    )
    given = [
        Example(
            params=CoClustering(n_clusters=3, **values),
            layout=Layout.lattice(1, sites),
            X=X,
        )
        for sites, values in variants
    ]
    aligned = CoClustering(
        n_clusters=3,
        n_init=1,
        lambda_u=0.02,
        lambda_w=5.0,
        max_iter=10,
        alignment=Alignment(method="ecdh"),
    )
    linked = CoClustering(n_clusters=3, n_init=1, max_iter=4, alignment=BY_MATCH_KEYS)
    return [
        *given,
        Example(
            params=aligned,
            layout=Layout.lattice(1, 3),
            X=X,
            missing=0.1,
            sections={"evaluation": Evaluation(n_clusters=(2, 3))},
        ),
        Example(params=linked, layout=Layout.lattice(1, 3), X=X, missing=0.1),
    ]


def _draw_degrees(rng: np.random.Generator) -> FloatArray:
    """Return degrees of co-occurrence: no two alike, so that a row can be recognised."""
    objects, items = rng.integers(3, size=60), rng.integers(3, size=24)
    likely = np.where(objects[:, None] == items[None, :], 0.8, 0.1)
    occurs = rng.random((60, 24)) < likely
    degrees: FloatArray = np.where(occurs, 0.9, 0.1) + 0.1 * rng.random((60, 24))
    return degrees

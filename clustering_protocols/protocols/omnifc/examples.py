"""Examples of `omnifc` on made data: three groups of rows, features of different units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustering_protocols.contract import Example
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.schema import numbers
from clustering_protocols.terms.terms import Layout

from .params import OmniFC

_WIDTH = 5


def examples() -> Sequence[Example[OmniFC]]:
    """Return the defaults, the paper's l = t = 2, and each alternative at least once."""
    variants = [
        (3, OmniFC(n_clusters=3)),
        (7, OmniFC(n_clusters=3, segments=2, noise=2, algorithm="spectral")),
        (6, OmniFC(n_clusters=3, segments=2, algorithm="hierarchical")),
        (
            4,
            OmniFC(
                n_clusters=3,
                hide_segments=False,
                algorithm="fuzzy_cmeans",
                scaling="none",
                ranges="declared",
            ),
        ),
        (
            3,
            OmniFC(
                n_clusters=3,
                algorithm="nmf",
                features="distance_rows",
                scaling="minmax",
            ),
        ),
        (5, OmniFC(noise=2, algorithm="dbscan", scaling="none", eps=4.0)),
        (3, OmniFC(n_clusters=3, algorithm="kmedoids", scaling="unit_norm", bits=20)),
        (3, OmniFC(n_clusters=3, distances="landmarks")),
        (
            6,
            OmniFC(
                algorithm="hdbscan",
                distances="landmarks",
                segments=2,
                hide_segments=False,
                min_cluster_size=8,
            ),
        ),
    ]
    X = _draw_rows(np.random.default_rng(0))
    said = [numbers([f"x{index}" for index in range(_WIDTH)], -40.0, 40.0)]
    return [
        Example(
            params=params,
            layout=Layout.lattice(parties),
            X=X,
            sections={"dictionary": said} if params.ranges == "declared" else {},
        )
        for parties, params in variants
    ]


def _draw_rows(rng: np.random.Generator) -> FloatArray:
    centres = 5.0 * rng.normal(size=(3, _WIDTH))
    return centres[rng.integers(3, size=84)] + rng.normal(size=(84, _WIDTH))

"""Examples of `llf` on made data: three groups of rows, features of different units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustering_protocols.contract import Example
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.alignment.examples import (
    BY_MATCH_KEYS,
    LEFT_OUT,
)
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.evaluation import Evaluation
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.release import Release
from clustering_protocols.terms.schema import Constraints, Field, Schema, numbers
from clustering_protocols.terms.terms import Layout

from .params import LosslessFederated as Llf

_WIDTH = 6


def examples() -> Sequence[Example[Llf]]:
    """Return both algorithms on split rows and columns, each alternative once."""
    X, centres = _draw_rows(np.random.default_rng(0))
    start = tuple(tuple(map(float, row)) for row in centres)
    variants = (
        ((3, 1), Llf(n_clusters=3)),
        (
            (4, 1),
            Llf(
                n_clusters=3,
                algorithm="fuzzy_cmeans",
                output="memberships",
                small_cohorts="allow",
            ),
        ),
        (
            (5, 1),
            Llf(
                n_clusters=3,
                init="random_party",
                analyst_view="sums",
                participation=0.6,
                quorum=3,
                max_iter=12,
            ),
        ),
        (
            (3, 1),
            Llf(
                n_clusters=3,
                algorithm="fuzzy_cmeans",
                fuzzifier=1.7,
                scaling="minmax",
                init="bounds",
                analyst_view="sums",
                max_iter=12,
            ),
        ),
        (
            (2, 1),
            Llf(
                n_clusters=3,
                scaling="none",
                init="given",
                initial_centroids=start,
                aggregation="plain",
            ),
        ),
        ((1, 3), Llf(n_clusters=3)),
        (
            (1, 3),
            Llf(n_clusters=3, algorithm="fuzzy_cmeans", output="memberships", tol=1e-3),
        ),
        (
            (1, 2),
            Llf(
                n_clusters=3,
                scaling="minmax",
                init="bounds",
                aggregation="plain",
                publish="nothing",
            ),
        ),
    )
    given = [_example(params, Layout.lattice(*cells), X) for cells, params in variants]
    racing = Llf(n_clusters=3, n_init=2, allow_two_parties=True, publish="sizes")
    aligned = Llf(n_clusters=3, alignment=Alignment(method="ecdh"))
    linked = Llf(n_clusters=3, alignment=BY_MATCH_KEYS)
    left_out = Llf(n_clusters=3, alignment=LEFT_OUT, max_iter=6)
    return [
        *given,
        Example(
            params=racing,
            layout=Layout.lattice(2),
            X=X,
            sections={"evaluation": Evaluation(n_clusters=(2, 3))},
        ),
        Example(params=aligned, layout=Layout.lattice(1, 3), X=X, missing=0.1),
        _build_prepared(X),
        Example(params=linked, layout=Layout.lattice(1, 3), X=X[:60], missing=0.1),
        Example(params=left_out, layout=Layout.lattice(3), X=X[:60]),
    ]


def _example(params: Llf, layout: Layout, X: FloatArray) -> Example[Llf]:
    """Return an example, with a dictionary where its parameters need one."""
    bounded = params.scaling != "standard" or params.init == "bounds"
    names = np.array_split(
        [f"x{index}" for index in range(_WIDTH)], layout.n_column_groups
    )
    schemas = [numbers(group.tolist(), -60.0, 60.0) for group in names]
    return Example(
        params=params,
        layout=layout,
        X=X,
        sections={"dictionary": schemas} if bounded else {},
    )


def _build_prepared(X: FloatArray) -> Example[Llf]:
    """Return an example with gaps that are filled, levels and a weight."""
    fields = X[:, :4].copy()
    fields[:, 1] = np.round(fields[:, 1])
    fields[:, 2] = np.searchsorted(np.quantile(X[:, 2], [1 / 3, 2 / 3]), X[:, 2])
    fields[np.random.default_rng(1).random(fields.shape) < 0.1] = np.nan
    bounds = Constraints(minimum=-100, maximum=100)
    schema = Schema(
        fields=(
            Field(name="dose"),
            Field(name="score", type="integer", constraints=bounds),
            Field(name="ward", type="string", categories=("c", "a", "b")),
            Field(name="crp"),
        )
    )
    preparation = Preparation(
        fields=(
            Treatment(name="dose", missing="mean", indicator=True),
            Treatment(name="score", missing="median", weight=0.5),
            Treatment(name="ward", missing="most_frequent"),
            Treatment(name="crp", missing="drop"),
        )
    )
    return Example(
        params=Llf(n_clusters=3),
        layout=Layout.lattice(3),
        X=fields,
        sections={
            "dictionary": [schema],
            "preparation": [preparation],
            "release": Release(profiles="everybody"),
        },
    )


def _draw_rows(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return rows and the centres that they were drawn around."""
    units = np.array([1.0, 3.0, 0.1, 1.0, 2.0, 0.5])
    centres = 4.0 * rng.normal(size=(3, _WIDTH))
    rows = centres[rng.integers(3, size=150)] + rng.normal(size=(150, _WIDTH))
    return rows * units, centres * units

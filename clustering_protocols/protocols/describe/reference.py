"""An example of a description, and its single cluster of all rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustering_protocols.contract import Example
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.schema import Constraints, Field, Level, Schema
from clustering_protocols.terms.terms import Layout

from .params import Describe

SCHEMA = Schema(
    fields=(
        Field(
            name="age", unit="years", constraints=Constraints(minimum=0, maximum=120)
        ),
        Field(name="crp", unit="mg/l"),
        Field(name="smoker", type="boolean"),
        Field(
            name="ward",
            type="string",
            role="describe",
            categories=(Level(value="a"), Level(value="b"), Level(value="c")),
        ),
    )
)


def examples() -> Sequence[Example[Describe]]:
    """Return an example with three parties, missing values and a field without a range."""
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.normal(60.0, 12.0, 120).round(),
            rng.lognormal(1.0, 1.0, 120).round(1),
            rng.integers(0, 2, 120),
            rng.integers(0, 3, 120),
        ]
    )
    X[rng.random(X.shape) < 0.1] = np.nan
    sections = {"dictionary": (SCHEMA,)}
    return [
        Example(params=Describe(), layout=Layout.lattice(3), X=X, sections=sections)
    ]


def cluster_pooled(params: Describe, X: FloatArray, trace: object) -> IntArray:
    """Return label 0 for each row."""
    del params, trace
    return np.zeros(len(X), dtype=np.int64)

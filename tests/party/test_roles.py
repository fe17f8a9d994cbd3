"""Roles of variables where sessions are simulated, estimated and predicted from."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.schema import Field, Schema
from party_sdk.estimators import FederatedKMeans
from party_sdk.lab.simulated_session import simulate
from party_sdk.tables import open_table

X: Any = load_iris().data
NAMES = ("a", "b", "c", "d")
RNG = np.random.default_rng(4)
FRAME = pd.DataFrame(X, columns=list(NAMES)).assign(
    note=[f"remark {n}" for n in range(150)],
    died=np.where(RNG.random(150) < 0.2, np.nan, RNG.integers(0, 2, 150)),
    site=RNG.choice(["north", "south"], 150),
)
SCHEMA = Schema(
    fields=(
        Field(name="note", type="string", role="leave-out"),
        Field(name="died", type="boolean", role="describe"),
        *(Field(name=name) for name in NAMES),
        Field(
            name="site", type="string", role="describe", categories=("north", "south")
        ),
    )
)
LLF = LosslessFederated(n_clusters=3)


@pytest.mark.parametrize("dealt", [True, False])
def test_a_simulation_clusters_what_is_clustered(*, dealt: bool) -> None:
    tables: Any = FRAME if dealt else [FRAME[i::3] for i in range(3)]
    more: dict[str, Any] = {"layout": (3, 1)} if dealt else {"layout": "rows"}
    plain = Schema(fields=tuple(Field(name=name) for name in NAMES))
    found, without = (
        simulate(LLF, tables, dictionary=schema, seed=1, **more)
        for schema in (SCHEMA, plain)
    )
    assert found.fidelity == 1.0
    for one, other in zip(found.results, without.results, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        assert one.columns == NAMES
    new = found.results[0].predict(FRAME[list(NAMES)])
    assert len(new.labels) == 150, "new rows need no outcome"
    centres = found.whole.numbers
    assert centres.sum() == 4


def test_an_estimator_takes_roles() -> None:
    estimator = FederatedKMeans(
        n_clusters=3, dictionary=SCHEMA, layout="rows", random_state=0
    )
    estimator.fit([FRAME[i::3] for i in range(3)])
    assert estimator.fidelity_ > 0.9
    described = np.isnan(estimator.cluster_centers_).all(axis=0)
    assert described.sum() == 2, "a centre has no place in what is only described"


def test_what_is_left_out_is_not_read() -> None:
    read = open_table(FRAME, schema=SCHEMA)
    assert "note" not in read.columns
    with pytest.raises(InvalidData, match="leaves out 'note'"):
        open_table(FRAME, schema=SCHEMA, columns=["a", "note"])
    needed = json.loads(SCHEMA.model_dump_json())
    needed["fields"][1]["constraints"] = {"required": True}
    with pytest.raises(InvalidData, match="died: empty"):
        open_table(FRAME, schema=Schema.model_validate(needed))


def test_no_column_group_is_described_alone() -> None:
    fields = [field for field in SCHEMA.fields if field.name in {"died", "a", "b"}]
    with pytest.raises(InvalidParameters, match="no field to cluster"):
        simulate(
            LosslessFederated(n_clusters=3),
            FRAME,
            dictionary=Schema(fields=tuple(fields)),
            layout=(1, 3),
        )

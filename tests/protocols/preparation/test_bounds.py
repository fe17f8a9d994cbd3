"""Sessions take the ranges of columns from the terms' dictionary."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clustering_protocols import engine, session_terms, simulation
from clustering_protocols.common.errors import (
    InvalidData,
    InvalidParameters,
    ProtocolFailed,
)
from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dc import Anchor, DataCollaboration, anchors
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.scaling import scaler_of
from clustering_protocols.shared_stages.starts.messages import StartCentroids
from clustering_protocols.simulation import Session
from clustering_protocols.terms.preparation import (
    ColumnPlan,
    Preparation,
    Ranges,
    Treatment,
)
from clustering_protocols.terms.schema import Constraints, Field, Schema, numeric_schema
from clustering_protocols.terms.terms import Layout, SessionRequest

SCHEMA = Schema(
    fields=(
        Field(name="age", type="integer", constraints=Constraints(minimum=0, maximum=120)),
        Field(name="smokes", type="boolean"),
        Field(name="ward", type="string", categories=("a", "b", "c")),
        Field(name="grade", type="integer", categories=(1, 2, 3), categoriesOrdered=True),
        Field(name="income", constraints=Constraints(minimum=0, maximum=1e6)),
        Field(name="crp"),
    )
)  # fmt: skip
PREPARATION = Preparation(
    fields=(
        Treatment(name="age", missing="mean", weight=3.0, indicator=True),
        Treatment(name="smokes", weight=2.0),
        Treatment(name="ward", weight=0.5),
        Treatment(name="income", log1p=True),
    )
)


def test_ranges_of_columns_are_those_of_what_fields_become() -> None:
    low, high = ColumnPlan(SCHEMA, PREPARATION).bounds
    level = 0.5 * 0.5**0.5
    assert low.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, -math.inf]
    assert high.tolist() == pytest.approx(
        [120, 3.0, 2.0, level, level, level, 2, math.log(1e6 + 1), math.inf]
    )


def test_every_prepared_value_lies_in_its_range() -> None:
    plan = ColumnPlan(SCHEMA, PREPARATION)
    least = [0.0, 0.0, 0.0, 0.0, 0.0, -1e9]
    most = [120.0, 1.0, 2.0, 2.0, 1e6, 1e9]
    gap = [math.nan, 0.0, 1.0, 1.0, 10.0, 0.0]
    observed = plan.take_logarithms(np.array([least, most, gap]))
    columns = plan.prepare(observed, np.array([60.0]))
    source = MatrixSource(columns, plan.columns)
    plan.bounds.check(source)
    with pytest.raises(InvalidData, match="age"):
        plan.bounds.check(MatrixSource(columns * 1.01, plan.columns))


def test_ranges_of_fields_that_are_clustered_as_they_are() -> None:
    day = Field(name="day", type="date", constraints=Constraints(minimum="1970-01-03"))
    found = Ranges.of(Schema(fields=(*SCHEMA.fields[:2], day)))
    assert found.low.tolist() == [0.0, 0.0, 2.0]
    assert found.high.tolist() == [120.0, 1.0, math.inf]


def test_columns_in_another_order_than_declared_are_refused() -> None:
    """Its ranges would be those of other columns."""
    data = {"r1c1": MatrixSource(np.ones((20, 2)), ["b", "a"])}
    with pytest.raises(InvalidData, match="a different order"):
        Session(
            Dummy(),
            Layout.lattice(1),
            data,
            1,
            dictionary=[numeric_schema("ab", 0.0, 2.0)],
        )


def test_a_roster_of_another_width_ends_the_session() -> None:
    """Anyone who enrols says its width itself."""
    data = {"r1c1": MatrixSource(np.ones((20, 2)))}
    session, _ = engine.load_session(
        simulation.build_agreement(Dummy(), Layout.lattice(1), data, 1)
    )
    terms = session.terms.model_copy(
        update={"dictionary": (numeric_schema("a", 0, 1),)}
    )
    with pytest.raises(ProtocolFailed, match="2 columns; the terms describe 1"):
        engine.stages.check_roster(replace(session, terms=terms))


BOUNDED = numeric_schema(["x0", "x1"], -1.0, 1.0)
HALF = Schema(
    fields=(*BOUNDED.fields, Field(name="crp", constraints=Constraints(minimum=0)))
)
NEEDS: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("llf", {"n_clusters": 2, "scaling": "minmax"}, (3, 1)),
    ("llf", {"n_clusters": 2, "scaling": "none"}, (3, 1)),
    ("llf", {"n_clusters": 2, "init": "bounds"}, (3, 1)),
    ("omnifc", {"n_clusters": 2, "scaling": "minmax", "ranges": "declared"}, (3, 1)),
    ("omnifc", {"n_clusters": 2, "scaling": "none", "ranges": "declared"}, (3, 1)),
    (
        "dc",
        {"n_clusters": 2, "anchor": {"kind": "uniform", "ranges": "declared"}},
        (2, 1),
    ),
    ("pqmds", {"n_clusters": 2, "privacy": {"mechanism": "laplace"}}, (1, 1)),
]


@pytest.mark.parametrize(("protocol", "params", "cells"), NEEDS)
def test_ranges_that_the_dictionary_lacks_open_no_session(
    protocol: str, params: dict[str, Any], cells: tuple[int, int]
) -> None:
    def drawn(*dictionary: Schema) -> bytes:
        proposal = SessionRequest(
            protocol={"name": protocol, "params": params},
            layout=Layout.lattice(*cells),
            seed=1,
            dictionary=dictionary or None,
        )
        return session_terms.draw_up_terms("s", proposal)

    with pytest.raises(InvalidParameters, match=r"dictionary \(--schema\)"):
        drawn()
    with pytest.raises(InvalidParameters, match="lacks one for 'crp'"):
        drawn(HALF)
    assert drawn(BOUNDED)


FIELDS = Schema(fields=tuple(f for f in SCHEMA.fields if f.name != "crp"))
TREATED = Preparation(
    fields=tuple(t for t in PREPARATION.fields if t.name in FIELDS.names)
)


def fields(n: int = 150) -> FloatArray:
    """Return three groups of rows with a gap in every seventh age."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 3
    age = np.rint(rng.normal(20 + 30 * group, 3)).clip(0, 120)
    age[::7] = np.nan
    income = np.exp(rng.normal(5 + group, 0.3))
    return np.column_stack([age, group == 2, group, (group + 1) % 3, income])


def prepared(params: Params, layout: Layout) -> Session:
    parts = simulation.split(fields(), layout, 1, dictionary=[FIELDS])
    return Session(
        params, layout, parts.data, 1, dictionary=[FIELDS], preparation=[TREATED]
    )


def test_starts_from_bounds_lie_within_prepared_ranges() -> None:
    layout = Layout.lattice(3)
    session = prepared(LosslessFederated(n_clusters=3, init="bounds"), layout)
    session.run_to_end()
    scale = scaler_of(session.context("r1c1"))
    V = scale.unscale(session.recall("r1c1", StartCentroids).centroids)
    assert len({tuple(row) for row in V.tolist()}) == 3
    low, high = ColumnPlan(FIELDS, TREATED).bounds
    assert (low - 1e-9 <= V).all()
    assert (high + 1e-9 >= V).all()


def test_anchors_lie_in_the_ranges_of_prepared_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[FloatArray] = []
    uniform = anchors.uniform

    def recording(*given: Any) -> FloatArray:
        drawn.append(uniform(*given))
        return drawn[-1]

    monkeypatch.setattr(anchors, "uniform", recording)
    anchor = Anchor(kind="uniform", ranges="declared")
    layout = Layout.lattice(2)
    prepared(DataCollaboration(n_clusters=3, anchor=anchor), layout).run_to_end()
    low, high = ColumnPlan(FIELDS, TREATED).bounds
    for rows in drawn:
        near = 0.03 * (high - low)
        assert ((rows.min(axis=0) >= low) & (rows.min(axis=0) < low + near)).all()
        assert ((rows.max(axis=0) <= high) & (rows.max(axis=0) > high - near)).all()

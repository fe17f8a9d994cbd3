"""A preparation in the terms: which ones open a session, and own rows in its units."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from support.analyst_process import House
from support.drawn_terms import drawn as drawn_terms

from clustering_protocols.catalogue import find_protocol_name, parse_params
from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.schema import Constraints, Field, Schema
from clustering_protocols.terms.terms import Layout
from party_sdk.admission.table_admission import SlotFields, check_required_fields
from party_sdk.results.plots import project_rows
from party_sdk.tables import open_table

WARDS = ("surgery", "medicine", "children")
SCHEMA = Schema(
    fields=(
        Field(name="crp", unit="mg/l"),
        Field(
            name="age", type="integer", constraints=Constraints(minimum=0, maximum=120)
        ),
        Field(name="smokes", type="boolean"),
        Field(name="ward", type="string", categories=WARDS),
        Field(name="admitted", type="date"),
    ),
    missingValues=("", "n/a"),
)
PREPARATION = Preparation(
    fields=(
        Treatment(name="crp", missing="mean", indicator=True),
        Treatment(name="age", missing="median"),
        Treatment(name="smokes", missing="most_frequent"),
        Treatment(name="ward", missing="most_frequent", weight=1.5),
        Treatment(name="admitted", missing="mean"),
    )
)
LAYOUT = Layout.lattice(3)


def patients(seed: int, n: int = 120) -> pd.DataFrame:
    """Return rows of three groups of patients, every tenth value missing."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    frame = pd.DataFrame(
        {
            "crp": np.round(rng.normal(5 + 30 * group, 4), 2),
            "age": np.round(rng.normal(25 + 25 * group, 5)).clip(0, 120),
            "smokes": np.where(rng.random(n) < 0.2 + 0.3 * group, "yes", "no"),
            "ward": np.array(WARDS)[np.where(rng.random(n) < 0.8, group, 0)],
            "admitted": pd.Timestamp("2026-01-01")
            + pd.to_timedelta(rng.integers(0, 30, n) + 90 * group, unit="D"),
        }
    )
    for name in frame:
        frame.loc[rng.random(n) < 0.1, name] = None
    frame.insert(0, "patient", [f"{seed}-{row}" for row in range(n)])
    return frame


FRAMES = [patients(seed) for seed in (1, 2, 3)]


@pytest.mark.parametrize(
    "params",
    [
        DataCollaboration(n_clusters=3, dimensions="all_but_one"),
        LosslessFederated(n_clusters=3),
    ],
)
@pytest.mark.quick(1)
def test_own_rows_are_drawn_in_the_units_of_the_session(
    house: House, params: Params
) -> None:
    """Indicators count as they did in the session: no bands by sex that are not there."""
    terms = {"dictionary": [SCHEMA], "preparation": [PREPARATION]}
    session = house.open(f"drawn-{find_protocol_name(params)}", params, LAYOUT, **terms)
    results = house.run(session, FRAMES, id_column="patient")
    member = house.last["r1c1"]
    rows = open_table(
        FRAMES[0], id_column="patient", schema=SCHEMA, preparation=PREPARATION
    )
    shown, labels = member.select_clustered(rows, results["r1c1"].labels)
    units = member.units(shown)
    [plan] = member.terms.plans
    prepared = [
        house.last[slot].select_clustered(
            open_table(
                frame, id_column="patient", schema=SCHEMA, preparation=PREPARATION
            ),
            results[slot].labels,
        )[0]
        for slot, frame in zip(results, FRAMES, strict=True)
    ]
    pooled = np.concatenate([matrix(each) for each in prepared]).std(axis=0)
    assert units == pytest.approx(plan.units(pooled), rel=1e-6)
    assert (units[plan.unscaled] == 1).all(), "an indicator has its own unit"
    found = project_rows(shown, labels, units=units, limit=1000)
    Z = matrix(shown) / units
    expected = PCA(n_components=2).fit_transform(Z)
    positions = np.abs(np.column_stack([found.x, found.y]))
    assert positions == pytest.approx(np.abs(expected), abs=1e-4)


def test_a_missing_value_without_a_rule_is_refused_by_line() -> None:
    silent = Preparation(fields=PREPARATION.fields[1:])
    frame = FRAMES[0].assign(crp=FRAMES[0]["crp"].fillna(1.0))
    frame.loc[6, "crp"] = None
    with pytest.raises(InvalidData, match="row 7, crp: empty"):
        open_table(frame, id_column="patient", schema=SCHEMA, preparation=silent)
    matrix_of_ones = open_table(np.ones((40, 5)))
    with pytest.raises(InvalidData, match="not a matrix"):
        check_required_fields(SlotFields(SCHEMA, silent, ()), matrix_of_ones)


def drawn(
    preparation: Preparation,
    schema: Schema = SCHEMA,
    protocol: str = "llf",
    params: dict[str, Any] | None = None,
    layout: Layout = LAYOUT,
) -> Any:
    n_groups = layout.n_column_groups
    return drawn_terms(
        parse_params(protocol, {"n_clusters": 3, **(params or {})}),
        layout,
        dictionary=(schema,) * n_groups,
        preparation=(preparation,) * n_groups,
    )


@pytest.mark.parametrize(
    ("treatment", "why"),
    [
        ({"name": "weight"}, "no field 'weight'"),
        ({"name": "ward", "missing": "mean"}, "'ward': levels have no mean"),
        ({"name": "ward", "missing": "median"}, "without an order"),
        ({"name": "crp", "missing": "median"}, "a minimum and a maximum"),
        ({"name": "crp", "missing": "most_frequent"}, "numbers have a mean"),
        ({"name": "crp", "log1p": True}, "minimum in the dictionary is above -1"),
        ({"name": "ward", "log1p": True}, "log1p is for numbers"),
        ({"name": "age", "indicator": True}, "an indicator needs"),
    ],
)
def test_a_treatment_that_a_field_cannot_have_opens_no_session(
    treatment: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidParameters, match=why):
        drawn(Preparation(fields=(Treatment(**treatment),)))


@pytest.mark.parametrize(
    ("protocol", "params", "why"),
    [
        ("llf", {"scaling": "minmax"}, "scaling 'standard'"),
        ("dc", {"scaling": "none"}, "scaling 'shared'"),
        ("omnifc", {"scaling": "none"}, "scaling 'standard'"),
        ("fccm", {}, "as they are"),
        ("dummy", {}, "as they are"),
    ],
)
def test_protocols_that_would_undo_a_preparation_refuse_it(
    protocol: str, params: dict[str, Any], why: str
) -> None:
    layout = Layout.lattice(1, 3) if protocol == "fccm" else LAYOUT
    with pytest.raises(InvalidParameters, match=why):
        drawn(PREPARATION, protocol=protocol, params=params, layout=layout)


def test_shared_rows_are_dropped_only_with_an_intersection() -> None:
    columns, drop = Layout.lattice(1, 3), Preparation(missing="drop")
    with pytest.raises(InvalidParameters, match="method ecdh they find"):
        drawn(drop, layout=columns)
    terms = drawn(drop, params={"alignment": {"method": "ecdh"}}, layout=columns)
    assert terms.preparation[0].missing == "drop"

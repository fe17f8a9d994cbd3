"""Codes of one field alone: a party is asked, however many columns the field has."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.simulation import Session
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Constraints, Field, Schema
from clustering_protocols.terms.terms import Layout

LAYOUT = Layout.lattice(1, 2)
IDS = [f"p{number}" for number in range(60)]
RNG = np.random.default_rng(0)
RANGE = Constraints(minimum=-10, maximum=10)
WARD = Field(name="ward", type="string", categories=("a", "b", "c", "d"))
SEX = Field(name="sex", type="boolean")
AGE, BMI = (Field(name=name, constraints=RANGE) for name in ("age", "bmi"))
OTHERS = (Field(name="x", constraints=RANGE), Field(name="y", constraints=RANGE))
NOISE = {"mechanism": "laplace", "epsilon": 500}


def asked(fields: Sequence[Field], **given: Any) -> str:
    dictionary = [Schema(fields=tuple(fields)), Schema(fields=OTHERS)]
    data = {
        slot: MatrixSource(_values(schema), columns=schema.names, ids=IDS)
        for slot, schema in zip(LAYOUT.names, dictionary, strict=True)
    }
    choices = {"r1c1": given.pop("choices", {})}
    params = ProductQuantisation(n_clusters=2, **{"sub_dim": 2, **given})
    session = Session(
        *(params, LAYOUT, data, 0),
        dictionary=dictionary,
        preparation=[Preparation()] * 2,
        choices=choices,
    )
    asks = []
    while not session.is_over:
        asks.append(session.answer("r1c1").asks)
        session.play_round()
    return " ".join(asks).strip()


def _values(schema: Schema) -> np.ndarray:
    sizes = [len(field.levels) or (2 if field is SEX else 0) for field in schema.fields]
    columns = [
        RNG.integers(0, size, 60) if size else RNG.normal(size=60) for size in sizes
    ]
    return np.column_stack(columns).astype(np.float64)


@pytest.mark.threat(146)
@pytest.mark.parametrize(
    ("fields", "name"),
    [((WARD,), "ward"), ((WARD, AGE), "ward"), ((AGE, WARD, BMI, SEX), "ward")],
    ids=["alone", "with a number", "among others"],
)
def test_levels_that_have_codes_of_their_own_are_asked_about(
    fields: Sequence[Field], name: str
) -> None:
    said = asked(fields)
    assert repr(name) in said
    assert "allow_one_field=true" in said


@pytest.mark.parametrize(
    ("fields", "given"),
    [
        ((AGE, BMI), {}),
        ((AGE, SEX, BMI), {}),
        ((WARD, AGE), {"sub_dim": 1}),
        ((WARD, AGE), {"privacy": NOISE}),
        ((WARD, AGE), {"choices": {"allow_one_field": True}}),
        ((WARD, AGE), {"sub_dim": 5}),
    ],
    ids=["numbers", "three", "risk in the terms", "noise", "allowed", "one subspace"],
)
def test_others_are_asked_about_nothing(
    fields: Sequence[Field], given: dict[str, Any]
) -> None:
    assert asked(fields, **given) == ""

"""A party asks its operator if one field makes up most of the distances."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from clustering_protocols import simulation
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.dominance import ComparedColumns
from clustering_protocols.simulation import Session
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.schema import Field, Schema, numeric_schema
from clustering_protocols.terms.terms import Layout

SETS = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}
ROWS, COLUMNS = Layout.lattice(3), Layout.lattice(1, 3)


def asked(session: Session) -> tuple[str, str]:
    answers = []
    while not session.is_over:
        answers.append(session.answer("r1c1"))
        session.play_round()
    asks = " ".join(answer.asks for answer in answers).strip()
    name = "field that the analyst alone can read best"
    shown = [answer.notes[name] for answer in answers if name in answer.notes]
    assert len(shown) == 1
    return asks, shown[0]


def described(X: FloatArray, wide: float | None) -> Schema:
    """Return a dictionary of ranges: true ones, or of all fields but the first wide."""
    low, high = X.min(axis=0), X.max(axis=0)
    if wide is not None:
        low[1:], high[1:] = -wide, wide
    return numeric_schema([f"f{place}" for place in range(len(low))], low, high)


def session(
    params: Any,
    X: FloatArray,
    layout: Layout = ROWS,
    schema: Schema | None = None,
    weight: float = 1.0,
    **more: Any,
) -> Session:
    names = [f"f{place}" for place in range(X.shape[1])]
    schema = schema or described(X, None)
    parts = simulation.split(X, layout, 0, names, dictionary=[schema]).data
    prepared = None
    if weight != 1:
        prepared = [Preparation(fields=(Treatment(name="f0", weight=weight),))]
    return Session(
        *(params, layout, parts, 0), dictionary=[schema], preparation=prepared, **more
    )


@pytest.mark.threat(152)
@pytest.mark.parametrize("name", list(SETS))
def test_declared_ranges_that_favour_one_field_raise_a_question(name: str) -> None:
    X = SETS[name]().data[:150]
    params = OmniFC(n_clusters=3, scaling="minmax", ranges="declared")
    chosen = session(params, X, schema=described(X, 1e6))
    asks, shown = asked(chosen)
    assert "Field 'f0' makes up 100%" in asks
    assert "allow_one_field=true" in asks
    assert "'f0', to |r| 1.00" in shown


@pytest.mark.threat(152)
@pytest.mark.parametrize("protocol", [OmniFC, DataCollaboration])
@pytest.mark.parametrize("name", list(SETS))
def test_a_weight_that_favours_one_field_raises_a_question(
    name: str, protocol: Any
) -> None:
    X = SETS[name]().data[:150]
    asks, _ = asked(session(protocol(n_clusters=3), X, weight=10.0))
    assert "Field 'f0' makes up" in asks


@pytest.mark.parametrize("protocol", [OmniFC, DataCollaboration])
@pytest.mark.parametrize("name", list(SETS))
def test_equal_fields_are_not_asked_about(name: str, protocol: Any) -> None:
    X = SETS[name]().data[:150]
    asks, shown = asked(session(protocol(n_clusters=3), X))
    assert asks == ""
    r = float(shown.split("|r| ")[1].split(",")[0])
    assert 0.5 < r < 1.0


@pytest.mark.threat(152)
def test_one_field_beside_described_ones_raises_a_question() -> None:
    """A coordinator may describe all but one: that one is then the geometry."""
    X = load_iris().data
    fields = described(X, None).fields
    outcomes = [field.model_copy(update={"role": "describe"}) for field in fields[1:]]
    schema = Schema(fields=(fields[0], *outcomes))
    asks, _ = asked(session(OmniFC(n_clusters=3), X, schema=schema))
    assert "Field 'f0' makes up 100%" in asks
    assert "only described" in asks
    with pytest.raises(ProtocolFailed, match="One column alone"):
        session(DataCollaboration(n_clusters=3), X, schema=schema)


def test_split_columns_count_the_fields_of_others() -> None:
    """One field of a party is not the whole, unless the terms make it so."""
    names, X = ["a", "b", "c"], load_iris().data[:, :3]
    parts = simulation.split(X, COLUMNS, 0, names).data
    params = LosslessFederated(n_clusters=2)
    asks, _ = asked(Session(params, COLUMNS, parts, 0))
    assert asks == ""
    dictionary = [Schema(fields=(Field(name=name),)) for name in names]
    weights = [
        Preparation(fields=(Treatment(name=name, weight=weight),))
        for name, weight in zip(names, (10.0, 1.0, 1.0), strict=True)
    ]
    parts = simulation.split(X, COLUMNS, 0, names, dictionary=dictionary).data
    heavy = Session(
        *(params, COLUMNS, parts, 0), dictionary=dictionary, preparation=weights
    )
    asks, _ = asked(heavy)
    assert "Field 'a' makes up 98%" in asks


def test_fields_of_others_in_0_to_1_are_taken_as_uniform() -> None:
    """A coin beside a constant varies by 1/4, fields of two others by 1/12 each."""
    names, even = ["coin", "constant", "b", "c"], np.linspace(0, 1, 300)
    X = np.stack([np.arange(300) % 2, np.full(300, 0.5), even, even[::-1]], axis=1)
    dictionary = [numeric_schema(names[s], 0.0, 1.0) for s in np.s_[:2, 2:3, 3:]]
    parts = simulation.split(X, COLUMNS, 0, names, dictionary=dictionary).data
    params = LosslessFederated(n_clusters=2, scaling="minmax")
    coin = Session(params, COLUMNS, parts, 0, dictionary=dictionary)
    asks, _ = asked(coin)
    assert "Field 'coin' makes up 60%" in asks


def test_an_operator_may_let_one_field_dominate() -> None:
    X = load_iris().data
    allowed = {slot: {"allow_one_field": True} for slot in ROWS.names}
    heavy = session(OmniFC(n_clusters=3), X, weight=10.0, choices=allowed)
    asks, shown = asked(heavy)
    assert asks == ""
    assert "'f0', to |r| 1.00" in shown


def compared(rows: FloatArray, fields: list[str], *others: float) -> ComparedColumns:
    Z = rows - rows.mean(axis=0)
    return ComparedColumns(
        fields=fields, covariance=Z.T @ Z / len(Z), foreign_variances=np.array(others)
    )


@pytest.mark.parametrize("n_fields", [1, 2, 5, 30])
def test_the_limit_is_the_share_of_a_weight_of_two(n_fields: int) -> None:
    rows = np.random.default_rng(1).normal(size=(4000, n_fields))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    rows[:, 0] *= 2
    found = compared(rows, [f"f{each}" for each in range(n_fields)])
    name, share = found.largest_share
    assert name == "f0"
    np.testing.assert_allclose(share, found.share_limit, rtol=1e-9)
    alone = compared(rows[:, :1], ["f0"], *[1.0] * (n_fields - 1))
    np.testing.assert_allclose(alone.largest_share[1], alone.share_limit, rtol=1e-9)


def test_columns_of_one_field_count_together() -> None:
    rows = np.random.default_rng(1).normal(size=(4000, 4))
    rows /= rows.std(axis=0)
    name, share = compared(rows, ["ward", "ward", "ward", "age"]).largest_share
    assert (name, round(share, 6)) == ("ward", 0.75)


def test_the_best_read_field_has_the_largest_correlation() -> None:
    X = matrix(simulation.split(load_wine().data, ROWS, 0).data["r1c1"])
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    _, _, directions = np.linalg.svd(Z, full_matrices=False)
    r = np.abs(np.corrcoef(np.hstack([Z, Z @ directions.T]), rowvar=False))
    width = X.shape[1]
    names = [str(place) for place in range(width)]
    name, found = compared(Z, names).most_readable_field
    np.testing.assert_allclose(found, r[:width, width:].max(), rtol=1e-9)
    assert name == names[int(r[:width, width:].max(axis=1).argmax())]


def test_a_constant_column_is_not_what_is_read_best() -> None:
    """The mean of equal numbers may be off in its last digit: that is no spread."""
    found = compared(np.ones((9, 2)), ["a", "b"])
    assert (found.most_readable_field, found.largest_share[1]) == (("a", 0.0), 0.0)
    for spreads in ([0.1, 1e-34], [1e-34, 0.1]):
        found = ComparedColumns(
            fields=tuple(
                "varies" if spread == 0.1 else "constant" for spread in spreads
            ),
            covariance=np.diag(spreads),
            foreign_variances=np.empty(0),
        )
        assert found.most_readable_field[0] == "varies"

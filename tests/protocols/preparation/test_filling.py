"""Prepared fields equal the columns of scikit-learn's pipeline on pooled rows."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from support.tables import cut

from clustering_protocols import simulation
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.numerics.moments import PooledMoments
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.shared_stages.imputation import (
    NAME,
    Fillings,
    pooling_of,
    prepare_rows,
)
from clustering_protocols.shared_stages.sums import AddUp, RowsSummed
from clustering_protocols.terms.preparation import ColumnPlan, Preparation, Treatment
from clustering_protocols.terms.schema import Constraints, Field, Schema, numeric_schema
from clustering_protocols.terms.terms import Layout

LEVELS = ("delta", "alpha", "charlie", "bravo")
SCHEMA = Schema(
    fields=(
        Field(name="crp"),
        Field(name="age", type="integer", constraints=Constraints(minimum=0, maximum=120)),
        Field(name="smokes", type="boolean"),
        Field(name="ward", type="string", categories=LEVELS),
        Field(name="stage", type="integer", categories=(1, 2, 3), categoriesOrdered=True),
        Field(name="admitted", type="date"),
        Field(name="income", constraints=Constraints(minimum=0)),
    )
)  # fmt: skip
PREPARATION = Preparation(
    fields=(
        Treatment(name="crp", missing="mean", indicator=True),
        Treatment(name="age", missing="median", weight=2.0),
        Treatment(name="smokes", missing="most_frequent"),
        Treatment(name="ward", missing="most_frequent", weight=0.5),
        Treatment(name="stage", missing="median"),
        Treatment(name="admitted", missing="mean"),
        Treatment(name="income", missing="mean", log1p=True),
    )
)


def rows(n: int = 300, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    X = np.column_stack(
        [
            rng.normal(1e4 * group, 300.0),
            np.clip(np.rint(rng.normal(30 + 20 * group, 6)), 0, 120),
            rng.random(n) < 0.2 + 0.3 * group,
            np.where(rng.random(n) < 0.7, group, rng.integers(4, size=n)),
            np.clip(group + (rng.random(n) < 0.2), 0, 2),
            18_000 + np.rint(rng.normal(100 * group, 30)),
            np.exp(rng.normal(5 + group, 0.3)),
        ]
    )
    X[rng.random(X.shape) < 0.15] = np.nan
    return X


def reference(X: FloatArray) -> FloatArray:
    number = make_pipeline(SimpleImputer(strategy="mean"), StandardScaler())
    rank = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    half = FunctionTransformer(lambda Z: Z * 0.5**0.5)
    levels = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(categories=[list(LEVELS)], sparse_output=False),
        half,
    )
    logs = make_pipeline(
        FunctionTransformer(np.log1p), SimpleImputer(strategy="mean"), StandardScaler()
    )
    words = np.full((len(X), 1), np.nan, dtype=object)
    there = ~np.isnan(X[:, 3])
    words[there, 0] = np.array(LEVELS, dtype=object)[X[there, 3].astype(int)]
    table = np.column_stack([X.astype(object)[:, :3], words, X.astype(object)[:, 4:]])
    made = ColumnTransformer(
        [
            ("crp", number, [0]),
            ("gap", FunctionTransformer(lambda Z: np.isnan(Z.astype(float)) * 1.0), [0]),
            ("age", rank, [1]),
            ("smokes", SimpleImputer(strategy="most_frequent"), [2]),
            ("ward", levels, [3]),
            ("stage", rank, [4]),
            ("admitted", number, [5]),
            ("income", make_pipeline(FunctionTransformer(lambda Z: Z.astype(float)), logs), [6]),
        ]
    ).fit_transform(table)  # fmt: skip
    Z: FloatArray = made.astype(np.float64)
    Z[:, 2] *= 2.0
    Z[:, 4:8] *= 0.5
    return Z


@pytest.mark.parametrize("n_parties", [2, 3, 5])
def test_prepared_columns_are_those_of_the_pooled_pipeline(n_parties: int) -> None:
    X, layout = rows(), Layout.lattice(n_parties)
    ran = simulation.Session(
        LosslessFederated(n_clusters=3, allow_two_parties=n_parties < 3),
        *(layout, cut(X, layout, columns=SCHEMA.names)),
        seed=1,
        dictionary=[SCHEMA],
        preparation=[PREPARATION],
    )
    ran.run_to_end()
    found = []
    for slot in ran.session.slots:
        plan = ran.session.terms.plan(slot)
        assert plan is not None
        memory = ran.memories[slot]
        moments = ran.recall(slot, PooledMoments)
        Z = matrix(prepare_rows(plan, ran.data[slot], memory))
        mean = np.where(plan.unscaled, 0.0, moments.mean)
        found.append((Z - mean) / ran.session.units(slot, moments.spread))
    assert np.abs(np.concatenate(found) - reference(X)).max() < 1e-9


def of_columns(how: Any, n_groups: int) -> tuple[list[Schema], list[Preparation]]:
    groups = np.array_split(["a", "b", "c", "d"], n_groups)
    schemas = [numeric_schema(names.tolist(), -10, 10) for names in groups]
    preparations = [
        Preparation(fields=[Treatment(name=name, missing=how) for name in schema.names])
        for schema in schemas
    ]
    return schemas, preparations


def gappy() -> FloatArray:
    rng, n = np.random.default_rng(5), 120
    X = rng.normal(size=(n, 4)) + 3.0 * rng.integers(-1, 2, size=(n, 1))
    X = X.clip(-10, 10)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize(
    ("params", "cells"),
    [
        (DataCollaboration(n_clusters=3), (3, 2)),
        (DataCollaboration(n_clusters=3), (1, 2)),
        (OmniFC(n_clusters=3), (3, 1)),
        (ProductQuantisation(n_clusters=3), (1, 2)),
        (LosslessFederated(n_clusters=3, allow_two_parties=True), (1, 2)),
    ],
    ids=["dc-both", "dc-columns", "omnifc-rows", "pqmds-columns", "llf-columns"],
)
@pytest.mark.parametrize("how", ["mean", "median"])
def test_imputation_uses_the_values_of_all_rows(
    params: Params, cells: tuple[int, int], how: Any
) -> None:
    X, (schemas, preparations) = gappy(), of_columns(how, cells[1])
    layout = Layout.lattice(*cells)
    parts = simulation.split(X, layout, 1, dictionary=schemas)
    ran = simulation.Session(
        params, layout, parts.data, 1, dictionary=schemas, preparation=preparations
    )
    ran.run_to_end()
    pooled = SimpleImputer(strategy=how).fit(X).statistics_
    for slot in layout.slots:
        found = ran.recall(slot.name, Fillings).instead
        expected = np.split(pooled, cells[1])[slot.column]
        step = 20 * 2**-20 if how == "median" else 1e-9
        assert np.abs(found - expected).max() < step
        assert (ran.outcomes()[slot.name].labels >= 0).all()


def test_a_row_incomplete_at_one_party_is_dropped_everywhere() -> None:
    X, (schemas, preparations) = gappy(), of_columns("drop", 2)
    layout = Layout.lattice(1, 2)
    parts = simulation.split(X, layout, 1, dictionary=schemas)
    ran = simulation.Session(
        ProductQuantisation(n_clusters=3, alignment=Alignment(method="ecdh")),
        layout,
        parts.data,
        1,
        dictionary=schemas,
        preparation=preparations,
    )
    outcomes = ran.run_to_end().outcomes
    lacking = np.isnan(X).any(axis=1)
    for slot, outcome in outcomes.items():
        assert ((outcome.labels == -1) == lacking[parts.held[slot]]).all()


@pytest.mark.parametrize(("cells", "summed"), [((2, 1), True), ((1, 2), False)])
def test_only_a_party_that_sends_shares_notes_that_its_rows_were_summed(
    cells: tuple[int, int],
    summed: bool,  # noqa: FBT001  a case
) -> None:
    X, (schemas, preparations) = gappy(), of_columns("mean", cells[1])
    layout = Layout.lattice(*cells)
    parts = simulation.split(X, layout, 1, dictionary=schemas)
    ran = simulation.Session(
        LosslessFederated(n_clusters=2, allow_two_parties=True),
        *(layout, parts.data),
        seed=1,
        dictionary=schemas,
        preparation=preparations,
    )
    ran.play_until(AddUp)
    assert ran.open.stage == NAME
    ran.play_round()
    for memory in ran.memories.values():
        assert (memory.get(RowsSummed) is not None) == summed


def test_ties_go_to_the_lowest_level_as_in_scikit_learn() -> None:
    plan = ColumnPlan(
        Schema(
            fields=(
                Field(name="ward", type="string", categories=("b", "a", "c")),
                Field(name="code", type="integer", categories=(10, 9, 2)),
                Field(
                    name="grade",
                    type="string",
                    categories=("low", "high"),
                    categoriesOrdered=True,
                ),
            )
        ),
        Preparation(
            fields=tuple(
                Treatment(name=name, missing="most_frequent")
                for name in ("ward", "code", "grade")
            )
        ),
    )
    none = np.empty(0, dtype=np.int64)
    tied = [np.array(counts) for counts in ([4, 4, 1], [3, 3, 3], [5, 5])]
    found = [
        pooling_of(fill).fill_value(counts, none)
        for fill, counts in zip(plan.fills, tied, strict=True)
    ]
    assert found == [1.0, 2.0, 0.0], "a, 2, low"


@given(
    values=st.lists(st.integers(0, 1000), min_size=1, max_size=60),
    cut=st.integers(0, 60),
)
def test_a_median_of_whole_numbers_is_exact(values: list[int], cut: int) -> None:
    bounds = Constraints(minimum=0, maximum=1000)
    field = Field(name="age", type="integer", constraints=bounds)
    treated = Preparation(fields=(Treatment(name="age", missing="median"),))
    [fill] = ColumnPlan(Schema(fields=(field,)), treated).fills
    pooling = pooling_of(fill)
    parties = [values[:cut], values[cut:]]

    def added(add: Callable[[IntArray, FloatArray], None], size: int) -> IntArray:
        numbers = np.zeros((len(parties), size), dtype=np.int64)
        for own, values in zip(numbers, parties, strict=True):
            add(own, np.array(values, dtype=np.float64))
        return numbers.sum(axis=0)

    first = added(pooling.add_to_first_sum, pooling.n_words[0])
    second = added(partial(pooling.add_to_second_sum, first), pooling.n_words[1])
    assert pooling.fill_value(first, second) == np.median(values)


@pytest.mark.threat(153)
@pytest.mark.parametrize("n_others", [1, 3])
@pytest.mark.parametrize("log1p", [False, True])
@pytest.mark.parametrize("how", ["mean", "median"])
@pytest.mark.quick(3)
def test_a_party_of_few_values_adds_none_to_a_filling(
    how: Any, n_others: int, *, log1p: bool
) -> None:
    """Who has many takes its own off what is pooled, and finds nothing left."""
    rng, n = np.random.default_rng(n_others), 60
    X = np.column_stack([rng.normal(size=(3 * n, 2)), np.full(3 * n, np.nan)])
    X[:n, 2] = rng.integers(0, 200, n)
    few = rng.choice(np.arange(n, 3 * n), n_others, replace=False)
    X[few, 2] = rng.integers(0, 200, n_others)
    whole = session_with_load(X, how, log1p=log1p)
    whole.run_to_end()
    plan = whole.session.terms.plan("r1c1")
    assert plan is not None
    alone = np.log1p(X[:n, 2]) if log1p else X[:n, 2]
    reference = np.mean(alone) if how == "mean" else np.median(alone)
    for slot in whole.session.slots:
        found = whole.recall(slot, Fillings).instead
        np.testing.assert_allclose(found, reference, atol=2e-4)


def test_where_no_party_has_values_enough_nothing_is_pooled() -> None:
    """Three values at three parties of one each stop the session."""
    X = np.column_stack(
        [np.random.default_rng(0).normal(size=(180, 2)), np.full(180, np.nan)]
    )
    X[[0, 60, 120], 2] = 5.0
    with pytest.raises(GuardRefused, match="fewer than 10 values of 'load'"):
        session_with_load(X, "mean", log1p=False).run_to_end()


def session_with_load(X: FloatArray, how: Any, *, log1p: bool) -> simulation.Session:
    schema = numeric_schema(["a", "b", "load"], [-9, -9, 0], [9, 9, 200])
    treatment, layout = (
        Treatment(name="load", missing=how, log1p=log1p),
        Layout.lattice(3),
    )
    return simulation.Session(
        *(
            LosslessFederated(n_clusters=2),
            layout,
            cut(X, layout, columns=schema.names),
            0,
        ),
        dictionary=[schema],
        preparation=[Preparation(fields=(treatment,))],
    )


@pytest.mark.parametrize("how", ["mean", "median", "most_frequent"])
def test_a_second_sum_that_the_first_cannot_have_is_refused(how: Any) -> None:
    """Every read of a total checks its range: of a mean, a median and a level alike."""
    fill = ColumnPlan(
        Schema(
            fields=(
                Field(name="x", type="boolean")
                if how == "most_frequent"
                else Field(name="x", constraints=Constraints(minimum=0, maximum=9)),
            )
        ),
        Preparation(fields=(Treatment(name="x", missing=how),)),
    ).fills[0]
    pooling = pooling_of(fill)
    values = np.array([0.0, 1.0, 1.0]) if how == "most_frequent" else np.arange(7.0)
    first, right = (np.zeros(size, dtype=np.int64) for size in pooling.n_words)
    pooling.add_to_first_sum(first, values)
    if how == "most_frequent":
        assert pooling.fits_second(first, first[:0])
        assert not pooling.fits_second(first, first)
        return
    pooling.add_to_second_sum(first, right, values)
    assert pooling.fits_second(first, right)
    for wrong in (
        (right + 1, right - 1) if how == "median" else (right + 2**62, right - 2**62)
    ):
        assert not pooling.fits_second(first, wrong)

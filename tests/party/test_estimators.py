"""Simulated sessions as estimators: what a user of scikit-learn does with them."""

import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import csv
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs, make_circles
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from support.terminal import coterie

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.numerics.data_source import MatrixSource, keep_rows
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Field, Schema
from coterie import (
    CannotCluster,
    FederatedCoClustering,
    FederatedFuzzyCMeans,
    FederatedGaussianMixture,
    FederatedKMeans,
    FederatedLatentClass,
    FederatedSpectralClustering,
    Layout,
)
from party_sdk.application.outputs import Outputs
from party_sdk.lab.simulated_session import simulate
from party_sdk.tables import open_table

pytestmark = pytest.mark.filterwarnings("ignore:Parties with .* columns:UserWarning")


X = load_iris().data
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
FRAME = pd.DataFrame(X, columns=NAMES)
THREE = [X[0::3], X[1::3], X[2::3]]
KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.DataFrame(frame.to_dict("list")),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


def test_one_table_goes_through_a_pipeline() -> None:
    alone = FederatedKMeans(
        3, layout=(3, 1), random_state=0, params={"dimensions": "all"}
    )
    labels = make_pipeline(PCA(2), clone(alone)).fit_predict(X)
    assert_array_equal(labels, alone.fit_predict(PCA(2).fit_transform(X)))
    refused = CannotCluster("why", Problem.INVALID_DATA)
    kind, given = refused.__reduce__()
    assert kind(*given).problem is refused.problem


def test_llf_equals_k_means_from_the_same_start() -> None:
    start, scaler = X[[0, 60, 120]], StandardScaler().fit(X)
    here = FederatedKMeans(
        3,
        protocol="llf",
        layout="rows",
        params={"init": "given", "initial_centroids": start.tolist(), "tol": 0.0},
        random_state=0,
    )
    labels = here.fit_predict(THREE)
    there = KMeans(3, init=scaler.transform(start), n_init=1, tol=0.0)
    there.fit(scaler.transform(X))
    assert [len(own) for own in labels] == [50, 50, 50]
    for table, own in zip(THREE, labels, strict=True):
        assert_array_equal(own, there.predict(scaler.transform(table)))
        assert_array_equal(own, here.predict(table))
    assert here.inertia_ == pytest.approx(there.inertia_, rel=1e-5)
    centres = scaler.inverse_transform(there.cluster_centers_)
    assert_allclose(here.cluster_centers_, centres, atol=1e-9)
    assert (here.n_features_in_, here.fidelity_) == (4, 1.0)
    assert not hasattr(here, "feature_names_in_")
    new = X[::2] + 0.1
    expected = there.score(scaler.transform(new))
    assert here.score(new) == pytest.approx(expected, rel=1e-3)
    assert here.score([new[:9], new[9:]]) == pytest.approx(here.score(new))


def test_it_is_the_session_of_the_command(tmp_path: Path) -> None:
    data, out = tmp_path / "iris.csv", tmp_path / "labels.csv"
    csv.write_csv(pa.Table.from_pandas(FRAME, preserve_index=False), data)
    words = ("simulate", "dc", "--data", data, "--labels", out)
    params = ("--param", "n_clusters=3", "--param", "dimensions=all")
    coterie(*words, *params, "--column-groups", 2, "--seed", 7)
    here = FederatedKMeans(3, layout=(2, 2), random_state=7).fit(FRAME)
    assert csv.read_csv(out)["label"].to_pylist() == here.labels_.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_every_library_come_in(kind: str) -> None:
    tables = [KINDS[kind](FRAME[0::2]), KINDS[kind](FRAME[1::2])]
    here = FederatedKMeans(3, random_state=0).fit(tables)
    assert here.feature_names_in_.tolist() == NAMES
    there = FederatedKMeans(3, layout="rows", random_state=0).fit([X[0::2], X[1::2]])
    for own, other in zip(here.labels_, there.labels_, strict=True):
        assert_array_equal(own, other)


def test_rows_are_found_by_their_ids_where_parties_split_columns() -> None:
    named = FRAME.assign(flower=[f"f{row:03}" for row in range(150)])
    left = named[["flower", *NAMES[:2]]]
    right = named[["flower", *NAMES[2:]]][::-1]
    here = FederatedKMeans(3, id_column="flower", random_state=0).fit([left, right])
    assert here.session_.layout == Layout.lattice(1, 2)
    assert_array_equal(here.labels_[0], here.labels_[1][::-1])
    means = FRAME.groupby(here.labels_[0]).mean()
    assert_allclose(here.cluster_centers_, means)
    assert here.feature_names_in_.tolist() == NAMES


@pytest.mark.parametrize("stand_in", ["P999", "unknown", "NA", "00000000"])
def test_a_word_for_no_id_links_no_people(
    recwarn: pytest.WarningsRecorder, stand_in: str
) -> None:
    ids = [[f"f{row:03}" for row in range(150)] for _ in range(2)]
    ids[0][5], ids[1][6] = stand_in, stand_in.replace("P999", "P888")
    left = FRAME[NAMES[:2]].assign(flower=ids[0])
    right = FRAME[NAMES[2:]].assign(flower=ids[1])[::-1]
    params = {"alignment": {"method": "ecdh", "minimum_share": 0.1}}
    here = FederatedKMeans(3, id_column="flower", random_state=0, params=params)
    here.fit([left, right])
    told = any("for a missing one" in str(each.message) for each in recwarn)
    assert told == (stand_in != "P999")
    assert [(labels >= 0).sum() for labels in here.labels_] == [148, 148]


@pytest.mark.parametrize("is_column", [False, True])
def test_frames_are_joined_by_an_index_only_if_it_is_named(*, is_column: bool) -> None:
    indexed = FRAME.rename_axis("flower")
    tables = [indexed[NAMES[:2]], indexed[NAMES[2:]].sample(frac=1, random_state=1)]
    with pytest.raises(CannotCluster, match="index"):
        FederatedKMeans(3, layout="columns", random_state=0).fit(tables)
    if is_column:
        tables = [table.reset_index() for table in tables]
    here = FederatedKMeans(3, layout="columns", random_state=0, id_column="flower")
    here.fit(tables)
    assert_allclose(here.cluster_centers_, FRAME.groupby(here.labels_[0]).mean())


def test_rows_without_ids_stand_in_the_same_order() -> None:
    here = FederatedKMeans(3, layout="columns", random_state=0)
    first, second = here.fit_predict([X[:, :2], X[:, 2:]])
    assert_array_equal(first, second)
    with pytest.raises(CannotCluster, match=r"not hold the same rows\. .*r1c1, r1c2"):
        here.fit([X[:, :2], X[:90, 2:]])


def test_spectral_clustering_finds_rings() -> None:
    rows, rings = make_circles(300, factor=0.4, noise=0.03, random_state=0)
    here = FederatedSpectralClustering(
        2, layout=(3, 1), params={"dimensions": "all"}, random_state=0
    ).fit(rows)
    assert adjusted_rand_score(rings, here.labels_) == 1.0


def test_co_clustering_finds_planted_blocks() -> None:
    rng = np.random.default_rng(0)
    objects, items = np.repeat([0, 1], 30), np.tile([0, 1], 12)
    R = (rng.random((60, 24)) < np.where(objects[:, None] == items, 0.8, 0.05)) * 1.0
    tables = [R[:, 0:8], R[:, 8:16], R[:, 16:24]]
    here = FederatedCoClustering(2, random_state=0).fit(tables)
    assert adjusted_rand_score(objects, here.labels_[0]) == 1.0
    assert adjusted_rand_score(items, here.column_labels_) == 1.0
    assert here.item_memberships_.shape == (2, 24)
    assert here.memberships_[2].shape == (60, 2)
    dealt = FederatedCoClustering(2, layout=(1, 3), random_state=0).fit(R)
    assert adjusted_rand_score(items, dealt.column_labels_) == 1.0


ROWS = [X[:75], X[75:]]
SORTED = pytest.mark.filterwarnings("ignore:The clusters follow the institutions")
"""Iris comes sorted by its kinds: its first and second half are sites of their own."""


@pytest.mark.parametrize(
    ("estimator", "tables", "sentence"),
    [
        (FederatedKMeans(3), ROWS, "different columns: pass a layout"),
        (FederatedKMeans(3), X, r"choose how many, as in layout=\(3, 1\)"),
        (FederatedKMeans(3), [X], "two or more parties"),
        (FederatedKMeans(3, layout="row"), ROWS, "layout is 'rows' .* not 'row'"),
        (FederatedKMeans(3, layout=(2, 2)), ROWS, "4 slots, and there are 2 tables"),
        (FederatedKMeans(3, layout=(200, 1)), X, "150 rows cannot be split into 200"),
        (FederatedKMeans("many", layout="rows"), ROWS, "n_clusters: give a whole n"),
        (FederatedKMeans(3, params={"scalin": "none"}), ROWS, "mean 'scaling'"),
        (FederatedKMeans(3, protocol="fccm"), ROWS, "are dc, llf, omnifc, pqmds"),
        (FederatedKMeans(range(2, 4), choose="later"), ROWS, "'later' needs a coord"),
        (
            FederatedKMeans(3, layout="rows"),
            [X[:75], np.where(X[75:] > 7, np.nan, X[75:])],
            "Table 2: .* rows have missing or infinite values",
        ),
        (FederatedFuzzyCMeans(3, params={"fuzziness": 3.0}), X, "'fuzziness' is fixed"),
        (FederatedKMeans(3, params={"n_clusters": 5}), X, "'n_clusters' is fixed"),
        (FederatedKMeans(3, params={"algorithm": "x"}), X, "'algorithm' is fixed"),
        (FederatedKMeans(3, params=[1]), X, "params: names and values"),
        (FederatedKMeans(3, choices=[1]), X, "choices: names and values"),
        (FederatedKMeans(3, protocol="llf", n_init=4), X, "n_init: nothing has this n"),
        (FederatedKMeans(3, random_state=2**70), X, "random_state: at most"),
        (FederatedKMeans(range(2, 4), choose="inertia"), X, "choose: give 'simpl"),
    ],
)
def test_what_does_not_fit_is_a_value_error_of_one_sentence(
    estimator: Any, tables: Any, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence) as refused:
        estimator.fit(tables)
    assert isinstance(refused.value, CannotCluster)
    assert refused.value.problem.slug.startswith("invalid-")


@SORTED
def test_new_rows_are_labelled_only_with_a_predictor() -> None:
    shut = FederatedKMeans(3, layout="rows", random_state=0).fit(ROWS)
    for name in ("predict", "transform", "score"):
        assert not hasattr(shut, name)
    with pytest.raises(AttributeError, match="has no attribute 'predict'") as lacking:
        shut.predict(X)
    assert "'predictor'" in str(lacking.value.__cause__)
    here = FederatedKMeans(
        3, layout=(2, 1), params={"predictor": True}, random_state=0
    ).fit(FRAME)
    assert_array_equal(here.predict(FRAME), here.labels_)
    assert_array_equal(here.predict(FRAME[NAMES[::-1]]), here.labels_)
    assert_array_equal(here.predict([X[:50]])[0], here.labels_[:50])
    with pytest.raises(CannotCluster, match="X has 3 features, but FederatedK"):
        here.predict(X[:, :3])


def test_distances_of_fitted_rows_are_those_of_new_ones() -> None:
    here = FederatedKMeans(3, protocol="llf", layout=(3, 1), random_state=0)
    distances = here.fit_transform(X)
    assert_array_equal(distances, here.transform(X))
    assert_array_equal(distances.argmin(axis=1), here.labels_)


def test_weights_of_rows_are_refused() -> None:
    here = FederatedKMeans(3, protocol="llf", layout=(3, 1), random_state=0)
    with pytest.raises(
        CannotCluster, match=r"sample_weight: all rows have the same weight"
    ):
        here.fit(X, sample_weight=np.ones(150))
    with pytest.raises(
        CannotCluster, match=r"sample_weight: all rows have the same weight"
    ):
        here.fit(X).score(X, sample_weight=np.ones(150))


def test_a_matrix_that_no_session_is_of_is_refused() -> None:
    here = FederatedKMeans(3, layout=(3, 1))
    for table, said in (
        (X * 1j, "Complex data not supported"),
        (X[:, :0], r"0 feature\(s\) \(shape=\(150, 0\)\) while a minimum of 1"),
        (X[:1], "n_samples = 1"),
    ):
        with pytest.raises(CannotCluster, match=said):
            here.fit(table)
    with pytest.raises(TypeError, match="no argument 'weights'"):
        here.fit(X, weights=[1])


# Checks of scikit-learn that cannot hold, and why.
_GIVES_NO_COUNT = "omnifc clusters distances by itself and tells no number of updates"
_TWO_COLUMNS = "the check has two columns; each of three parties needs one"
_FEW_ROWS = "the check has ten rows; each party starts from clusters of five"
_SUMS_OF_FEW = (
    "the check has some twenty rows; sums of so few show rows, and are refused"
)
_OF_SMALL_TABLES = (
    "check_estimators_overwrite_params",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
)
EXPECTED: dict[str, tuple[Any, dict[str, str]]] = {
    "spectral": (FederatedSpectralClustering(2, layout=(3, 1)), {}),
    "k-means": (FederatedKMeans(2, layout=(3, 1)), {}),
    "llf": (
        FederatedKMeans(2, layout=(3, 1), protocol="llf", random_state=0),
        {
            "check_estimators_nan_inf": _FEW_ROWS,
            **dict.fromkeys(_OF_SMALL_TABLES, _SUMS_OF_FEW),
        },
    ),
    "fuzzy": (
        FederatedFuzzyCMeans(2, layout=(3, 1)),
        {"check_non_transformer_estimators_n_iter": _GIVES_NO_COUNT},
    ),
    "co-clustering": (
        FederatedCoClustering(2, layout=(1, 3), params={"r_max": 1000.0}),
        dict.fromkeys(
            (
                *_OF_SMALL_TABLES,
                "check_clustering",
                "check_fit_idempotent",
                "check_fit_check_is_fitted",
                "check_n_features_in",
            ),
            _TWO_COLUMNS,
        ),
    ),
}


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [  # each plays dozens of sessions; the others run on command
        pytest.param(
            *case,
            id=name,
            marks=[] if name == "k-means" else [pytest.mark.thorough(only=True)],
        )
        for name, case in EXPECTED.items()
    ],
)
@pytest.mark.slow
def test_checks_of_scikit_learn_hold(estimator: Any, expected: dict[str, str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(
            estimator, on_fail=None, on_skip=None, expected_failed_checks=expected
        )
    failed = [each for each in found if each["status"] == "failed"]
    assert not failed, failed
    assert {e["check_name"] for e in found if e["status"] == "xfail"} == set(expected)


def test_what_may_label_is_known_before_a_session() -> None:
    assert not hasattr(FederatedKMeans(3), "predict")
    assert not hasattr(FederatedFuzzyCMeans(3), "transform")
    assert hasattr(FederatedKMeans(3, params={"predictor": True}), "predict")
    assert hasattr(FederatedKMeans(3, protocol="llf"), "score")


@SORTED
def test_a_generator_draws_the_seed_of_each_session() -> None:
    first, second = (
        FederatedKMeans(3, layout="rows", random_state=np.random.default_rng(4))
        for _ in range(2)
    )
    seeds = [[each._session_seed() for _ in range(3)] for each in (first, second)]
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 3
    for own, other in zip(
        first.fit(ROWS).labels_, second.fit(ROWS).labels_, strict=True
    ):
        assert_array_equal(own, other)


@pytest.mark.parametrize("protocol", ["dc", "llf", "omnifc"])
def test_a_fitted_estimator_is_kept_and_read_back(protocol: str) -> None:
    fitted = FederatedKMeans(3, protocol=protocol, layout="rows", random_state=0)
    fitted.fit(THREE)
    again = pickle.loads(pickle.dumps(fitted))
    for before, after in zip(fitted.labels_, again.labels_, strict=True):
        assert_array_equal(before, after)
    if protocol == "llf":
        assert_array_equal(again.predict(X), fitted.predict(X))


@pytest.mark.parametrize("layout", [(3, 1), (1, 2), (2, 2)])
def test_results_of_a_dealt_table_name_its_own_rows(layout: Any) -> None:
    named = FRAME.assign(flower=[f"f{n}" for n in range(150)])
    for table, more in ((named, {"id_column": "flower"}), (FRAME, {})):
        fitted = FederatedKMeans(3, layout=layout, random_state=0, **more).fit(table)
        for result in fitted.session_.results:
            rows = [int(name.removeprefix("f")) for name in result.ids or ()]
            assert_array_equal(fitted.labels_[rows], result.labels)
            assert result.naming == tuple(more.values())


@pytest.mark.filterwarnings("ignore:1 of 3 clusters have one or two rows:UserWarning")
def test_choices_and_switches_of_guards_are_taken() -> None:
    far = np.vstack([X, [5100.0, 1.0, 1.0, 1.0]])
    with pytest.raises(CannotCluster, match="Correct the unit") as refused:
        FederatedKMeans(3, layout=(3, 1), random_state=0).fit(far)
    assert "--choice" not in str(refused.value)
    choices = {"allow_other_units": True}
    decided = FederatedKMeans(3, layout=(3, 1), random_state=0, choices=choices)
    assert len(decided.fit(far).labels_) == 151
    counted = FRAME.assign(day=range(150))
    with pytest.raises(CannotCluster, match="looks like a row number"):
        FederatedKMeans(3, layout=(3, 1)).fit(counted)
    allowed = FederatedKMeans(3, layout=(3, 1), allow=["running-number"])
    assert allowed.fit(counted).n_features_in_ == 5


# Roles of variables


ROLE_NAMES = ("a", "b", "c", "d")
DRAWS = np.random.default_rng(4)
MIXED = pd.DataFrame(X, columns=list(ROLE_NAMES)).assign(
    note=[f"remark {n}" for n in range(150)],
    died=np.where(DRAWS.random(150) < 0.2, np.nan, DRAWS.integers(0, 2, 150)),
    site=DRAWS.choice(["north", "south"], 150),
)
ROLES = Schema(
    fields=(
        Field(name="note", type="string", role="leave-out"),
        Field(name="died", type="boolean", role="describe"),
        *(Field(name=name) for name in ROLE_NAMES),
        Field(
            name="site", type="string", role="describe", categories=("north", "south")
        ),
    )
)
LLF = LosslessFederated(n_clusters=3)


@pytest.mark.parametrize("dealt", [True, False])
def test_a_simulation_clusters_what_is_clustered(*, dealt: bool) -> None:
    tables: Any = MIXED if dealt else [MIXED[i::3] for i in range(3)]
    more: dict[str, Any] = {"layout": (3, 1)} if dealt else {"layout": "rows"}
    plain = Schema(fields=tuple(Field(name=name) for name in ROLE_NAMES))
    found, without = (
        simulate(LLF, tables, dictionary=schema, seed=1, **more)
        for schema in (ROLES, plain)
    )
    assert found.fidelity == 1.0
    for one, other in zip(found.results, without.results, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        assert one.columns == ROLE_NAMES
    new = found.results[0].predict(MIXED[list(ROLE_NAMES)])
    assert len(new.labels) == 150, "new rows need no outcome"
    centres = found.whole.numbers
    assert centres.sum() == 4


def test_an_estimator_takes_roles() -> None:
    estimator = FederatedKMeans(
        n_clusters=3, dictionary=ROLES, layout="rows", random_state=0
    )
    estimator.fit([MIXED[i::3] for i in range(3)])
    assert estimator.fidelity_ > 0.9
    described = np.isnan(estimator.cluster_centers_).all(axis=0)
    assert described.sum() == 2, "a centre has no place in what is only described"


def test_what_is_left_out_is_not_read() -> None:
    read = open_table(MIXED, schema=ROLES)
    assert "note" not in read.columns
    with pytest.raises(InvalidData, match="leaves out 'note'"):
        open_table(MIXED, schema=ROLES, columns=["a", "note"])
    needed = json.loads(ROLES.model_dump_json())
    needed["fields"][1]["constraints"] = {"required": True}
    with pytest.raises(InvalidData, match="died: empty"):
        open_table(MIXED, schema=Schema.model_validate(needed))


def test_no_column_group_is_described_alone() -> None:
    fields = [field for field in ROLES.fields if field.name in {"died", "a", "b"}]
    with pytest.raises(InvalidParameters, match="no field to cluster"):
        simulate(
            LosslessFederated(n_clusters=3),
            MIXED,
            dictionary=Schema(fields=tuple(fields)),
            layout=(1, 3),
        )


# How unsure labels are


BLOBS, _ = make_blobs([200, 500, 800], 3, cluster_std=2.5, random_state=1)
TABLES = [BLOBS[0::3], BLOBS[1::3], BLOBS[2::3]]


@pytest.fixture(scope="module")
def overlapping() -> FederatedKMeans:
    found = FederatedKMeans(3, protocol="llf", layout="rows", random_state=0)
    return found.fit(TABLES)


def source(rows: Any) -> MatrixSource:
    return MatrixSource(rows, ["x0", "x1", "x2"])


def test_labels_of_k_means_are_unsure_near_the_second_centre(
    overlapping: FederatedKMeans, tmp_path: Path
) -> None:
    result = overlapping.session_.results[0]
    far = np.sort(overlapping.transform(TABLES[0]), axis=1)
    unsure = result.uncertainty(source(TABLES[0]))
    np.testing.assert_allclose(unsure, far[:, 0] / far[:, 1])
    written = pd.read_csv(result.save(tmp_path / "labels.csv", unsure))
    np.testing.assert_allclose(written["uncertainty"], unsure)
    assert "uncertainty" not in pd.read_csv(result.save(tmp_path / "plain.csv"))


def test_rows_that_took_no_part_have_none(overlapping: FederatedKMeans) -> None:
    result = overlapping.session_.results[0]
    kept = np.arange(10, len(TABLES[0]))

    def select(data: Any, labels: Any) -> Any:
        return keep_rows(data, kept), labels[kept]

    member: Any = SimpleNamespace(select_clustered=select)
    outputs = Outputs(details=True)
    unsure = outputs._label_uncertainty(member, result, source(TABLES[0]))
    assert np.isnan(unsure[:10]).all()
    assert not np.isnan(unsure[10:]).any()
    assert Outputs()._label_uncertainty(member, result, source(TABLES[0])) is None


def test_where_rows_are_distances_of_the_analyst_there_is_none() -> None:
    found = FederatedKMeans(3, protocol="omnifc", layout="rows", random_state=0)
    result = found.fit(TABLES).session_.results[0]
    assert result.uncertainty(source(TABLES[0])) is None


def test_a_mixture_is_unsure_by_what_the_largest_membership_leaves() -> None:
    found = FederatedGaussianMixture(
        range(2, 4), covariance_type="diag", layout="rows", choose="bic", random_state=0
    ).fit(TABLES)
    result = found.session_.results[0]
    unsure = result.uncertainty(source(TABLES[0]))
    np.testing.assert_allclose(unsure, 1 - found.memberships_[0].max(axis=1))
    assert found.bic_ == min(run for run in found.quality_["bic"])
    shares = np.vstack(found.memberships_).mean(axis=0)
    np.testing.assert_allclose(found.weights_, shares, atol=0.01)
    assert found.covariances_.shape == (found.n_clusters_, 3, 3)
    assert adjusted_rand_score(found.predict(TABLES[0]), found.labels_[0]) == 1


def test_latent_classes_take_declared_levels() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=6000)
    yes = rng.random((6000, 12)) < np.where(y[:, None] == 1, 0.8, 0.2)
    schema = Schema(
        fields=tuple(Field(name=f"q{j}", type="boolean") for j in range(12))
    )
    tables = [pd.DataFrame(part, columns=schema.names) for part in np.split(yes, 3)]
    with pytest.raises(CannotCluster, match="a dictionary, which declares the levels"):
        FederatedLatentClass(2, layout="rows").fit(tables)
    found = FederatedLatentClass(
        2, layout="rows", dictionary=schema, preparation=Preparation(), random_state=0
    ).fit(tables)
    assert adjusted_rand_score(y, np.concatenate(found.labels_)) > 0.9
    assert found.fidelity_ == 1

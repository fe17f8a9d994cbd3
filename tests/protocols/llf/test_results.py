"""`llf` finds what the pooled data give, however rows or columns are split."""

import tracemalloc
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy.spatial.distance import cdist
from skfuzzy.cluster import cmeans as skfuzzy_cmeans
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.datasets import load_digits, load_iris, load_wine
from support.repeats import thorough
from support.tables import cut, within

from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidData,
    InvalidParameters,
)
from clustering_protocols.numerics.data_source import DataSource, MatrixSource, matrix
from clustering_protocols.numerics.round_numbers import round_up
from clustering_protocols.protocols.llf import (
    LosslessFederated as Llf,
    messages,
    reference as pooled,
)
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout
from tests.protocols.llf.llf_sessions import (
    SEED,
    blobs,
    dealt,
    numbers_of,
    start_of,
    start_session,
    unaudited,
)

SMALL: dict[str, Any] = {"small_cohorts": "allow"}  # the tables of these tests are
FUZZY: dict[str, Any] = {"algorithm": "fuzzy_cmeans"}
both = pytest.mark.parametrize("algorithm", ["cmeans", "fuzzy_cmeans"])
SETS = {
    "iris": load_iris().data,
    "wine": load_wine().data,
    "digits": load_digits().data,
}
K = {"iris": 3, "wine": 3, "digits": 10}


class Compared:
    def __init__(
        self,
        params: Llf,
        data: Mapping[str, DataSource],
        layout: Layout,
        seed: int = SEED,
        widest: float | None = None,
    ) -> None:
        """``widest``: the bound of all values in the dictionary, if there is one."""
        self.params, self.layout = params, layout
        said = None if widest is None else within(-widest, widest, data, layout)
        lifted = unaudited(layout)  # of few rows
        self.run = simulation.run(
            params, layout, data, seed, dictionary=said, choices=lifted
        )
        self.rows_split = layout.n_column_groups == 1
        parts = [matrix(data[slot]) for slot in layout.names]
        self.X = np.vstack(parts) if self.rows_split else np.hstack(parts)
        self.reference = pooled.run_pooled(params, self.X, self.run.trace)

    @property
    def labels(self) -> IntArray:
        """The labels, with the cluster numbers of the reference."""
        return self.numbers[self.numbered]

    @property
    def numbers(self) -> IntArray:
        """The reference's number of each cluster."""
        k = len(self.reference.centroids)
        return numbers_of(self.numbered, self.reference.labels, k)

    @property
    def numbered(self) -> IntArray:
        found = [self.run.outcomes[slot].labels for slot in self.layout.names]
        if self.rows_split:
            return np.concatenate(found)
        assert all(np.array_equal(found[0], other) for other in found)
        return found[0]

    @property
    def centroids(self) -> FloatArray:
        """The centroids in scaled units, like those of the reference."""
        kind = messages.Centroids if self.rows_split else messages.OwnCentroids
        memories = self.run.trace.memories
        found = [memories[slot].get(kind).centroids for slot in self.layout.names]
        if not self.rows_split:
            return np.hstack(found)
        assert len({each.tobytes() for each in found}) == 1
        return found[0]

    @property
    def memberships(self) -> FloatArray:
        found = [self.run.outcomes[slot].memberships for slot in self.layout.names]
        numbered = np.concatenate(found) if self.rows_split else found[0]
        return numbered[:, np.argsort(self.numbers)]

    def lossless(self) -> None:
        expected = self.reference.centroids
        error = np.linalg.norm(self.centroids - expected)
        assert error <= 1e-7 * max(np.linalg.norm(expected), 1.0)
        assert np.array_equal(self.labels, self.reference.labels)
        for outcome in self.run.outcomes.values():
            assert outcome.report["n_updates"] == self.reference.n_updates
            sizes = np.bincount(self.numbered, minlength=len(expected))
            assert outcome.cluster_sizes.tolist() == sizes.tolist()
        if self.params.output == "memberships":
            with_rows = np.unique(self.labels)  # others have no number to compare
            found = self.memberships[:, with_rows]
            expected = self.reference.memberships[:, with_rows]
            np.testing.assert_allclose(found, expected, atol=1e-7)


# Lossless, on made data

WIDEST = 60.0


@pytest.mark.parametrize("columns", [False, True])
@settings(max_examples=thorough(ci=15, nightly=200))
@given(
    sizes=st.lists(st.integers(6, 30), min_size=3, max_size=6),
    width=st.integers(1, 5),
    fuzzifier=st.sampled_from([None, 1.5, 2.0, 3.0]),
    k=st.integers(1, 4),
    scaling=st.sampled_from(["standard", "minmax", "none"]),
    init=st.sampled_from(["careful", "random", "bounds"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_split_gives_the_pooled_result(
    sizes: list[int],
    width: int,
    fuzzifier: float | None,
    k: int,
    scaling: Any,
    init: Any,
    seed: int,
    *,
    columns: bool,
) -> None:
    widths = [1 + size % 3 for size in sizes[:5]]
    if columns:  # a dictionary's bounds may lie farther out than any standardised row
        assume(scaling != "standard" or init != "bounds")
    else:
        assume(not fuzzifier or min(sizes) > k * (width + 1) / width)
    if init == "random":
        init = "random_rows" if columns else "random_party"
    params = Llf(
        algorithm="fuzzy_cmeans" if fuzzifier else "cmeans",
        **SMALL,
        fuzzifier=fuzzifier or 2.0,
        output="memberships" if fuzzifier else "labels",
        max_iter=8,
        n_clusters=k,
        scaling=scaling,
        init=init,
    )
    X = blobs(sum(sizes), sum(widths) if columns else width, 3, seed).clip(-59, 59)
    split = dealt(X, columns=columns, sizes=widths if columns else sizes)
    Compared(params, *split, widest=WIDEST).lossless()


@pytest.mark.parametrize("scaling", ["standard", "none"])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.quick(6)
def test_centroids_equal_up_to_rounding_give_pooled_labels(
    seed: int, scaling: Any, *, columns: bool
) -> None:
    """Otherwise rounding would separate them, and each update enlarge the difference."""
    X = blobs(18, 3, 3, seed)
    twin = np.nextafter(X[0] + 0.1, np.inf)
    start = tuple(tuple(map(float, row)) for row in (X[0] + 0.1, twin, X[7]))
    params = Llf(
        n_clusters=3,
        **FUZZY,
        **SMALL,
        scaling=scaling,
        init="given",
        initial_centroids=start,
        max_iter=20,
        min_cluster_rows=1,
    )
    found = Compared(params, *dealt(X, columns=columns), widest=WIDEST)
    found.lossless()
    assert np.array_equal(found.centroids[0], found.centroids[1])
    assert set(found.labels) == {0, 2}, "of equals the lowest number gets the row"
    reports = [outcome.report for outcome in found.run.outcomes.values()]
    assert {report["n_coinciding"] for report in reports} == {1}
    assert found.run.summary.n_coinciding == 1


# The reference itself


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_the_pooled_reference_is_that_of_scikit_learn(name: str) -> None:
    X = SETS[name]
    Z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    V = kmeans_plusplus(Z, K[name], random_state=SEED)[0]
    params = Llf(n_clusters=K[name], tol=0, max_iter=300)
    found = pooled._run_updates(params, Z, V, None)
    known = KMeans(K[name], init=V, n_init=1, algorithm="lloyd", tol=0).fit(Z)
    np.testing.assert_allclose(found.centroids, known.cluster_centers_, atol=1e-9)
    assert np.array_equal(found.labels, known.labels_)


@pytest.mark.parametrize("name", ["iris", "wine"])
@pytest.mark.parametrize("fuzzifier", [1.5, 2.0, 3.0])
def test_the_fuzzy_pooled_reference_is_that_of_scikit_fuzzy(
    name: str, fuzzifier: float
) -> None:
    X = SETS[name]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    V = kmeans_plusplus(Z, 3, random_state=SEED)[0] + 0.01
    params = Llf(
        n_clusters=3, **FUZZY, **SMALL, fuzzifier=fuzzifier, tol=0, max_iter=25
    )
    found = pooled._run_updates(params, Z, V, None)
    U = pooled._memberships(params, cdist(Z, V, "sqeuclidean")).T
    V_known, *_ = skfuzzy_cmeans(Z.T, 3, fuzzifier, error=0, maxiter=25, init=U)
    np.testing.assert_allclose(found.centroids, V_known, atol=1e-8)


# Who adds up what makes no difference


@both
@pytest.mark.thorough
@pytest.mark.threat(80)
@pytest.mark.quick(1)
def test_centroids_do_not_depend_on_how_rows_are_dealt_out(algorithm: Any) -> None:
    X = blobs(640, 3, 3).clip(-50, 50)
    rng = np.random.default_rng(0)
    given_ = {"init": "given", "initial_centroids": start_of(X, 3)}
    common = {"scaling": "minmax", "max_iter": 2, **given_}
    found = set()
    objectives = []
    for n_parties in (2, 3, 7, thorough(ci=16, nightly=32)):
        params = Llf(
            n_clusters=3,
            algorithm=algorithm,
            **SMALL,
            allow_two_parties=n_parties == 2,
            **common,
        )
        order = rng.permutation(len(X))
        layout = Layout.lattice(n_parties)
        data = cut(X[order], layout)
        said = within(-WIDEST, WIDEST, data, layout)
        run = simulation.run(params, layout, data, SEED, dictionary=said)
        labels = np.empty(len(X), dtype=np.int64)
        labels[order] = np.concatenate(
            [run.outcomes[slot].labels for slot in layout.names]
        )
        memory = run.trace.memories[layout.names[-1]]
        V = memory.get(messages.Centroids).centroids
        found.add((V.tobytes(), labels.tobytes()))
        (told,) = run.outcomes[layout.names[-1]].figures
        objectives.append([told.xie_beni, told.inertia, told.davies_bouldin])
    assert len(found) == 1
    np.testing.assert_allclose(objectives, objectives[:1] * len(objectives), rtol=1e-12)


class Endless:
    """Rows that are generated, batch by batch, each time they are read."""

    ids = None

    def __init__(self, n_rows: int, width: int, seed: int) -> None:
        self.n_rows = n_rows
        self.columns = [f"x{index}" for index in range(width)]
        self.seed = seed

    def batches(self) -> Iterator[FloatArray]:
        rng = np.random.default_rng(self.seed)
        for begin in range(0, self.n_rows, 10_000):
            size = min(10_000, self.n_rows - begin)
            yield rng.uniform(-1.0, 1.0, size=(size, len(self.columns)))


@both
def test_memory_does_not_grow_with_the_rows(algorithm: Any) -> None:
    """It grows by sixteen bytes a row, for the labels before and after renumbering."""
    peaks = []
    for n in (100_000, 1_000_000):
        data = {s: Endless(n // 2, 4, i) for i, s in enumerate(Layout.lattice(2).names)}
        params = Llf(
            n_clusters=2,
            algorithm=algorithm,
            **SMALL,
            scaling="none",
            init="bounds",
            allow_two_parties=True,
            max_iter=1,
        )
        said = within(-1.0, 1.0, data, Layout.lattice(2))
        tracemalloc.start()
        simulation.run(params, Layout.lattice(2), data, SEED, dictionary=said)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    labels = 8 * 1_000_000
    assert peaks[1] - peaks[0] < 3.0 * labels, "the table itself is 32 bytes a row"


# Corners


@both
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("scaling", ["none", "minmax", "standard"])
@pytest.mark.quick(4)
def test_an_empty_cluster_is_moved_as_in_the_pooled_run(
    algorithm: Any, scaling: Any, *, columns: bool
) -> None:
    X = blobs(90, 3, 3, 1).clip(-19, 19)
    far = ((0.0, 0.0, 0.0), (19.0, -19.0, 19.0), (19.5, -19.5, 19.5))
    params = Llf(
        n_clusters=3,
        algorithm=algorithm,
        **SMALL,
        scaling=scaling,
        init="given",
        initial_centroids=far,
        max_iter=12,
    )
    Compared(params, *dealt(X, columns=columns), widest=20.0).lossless()


# What is let out


def suppressed_data() -> dict[str, MatrixSource]:
    """Return two large groups of rows, and one of six."""
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [9.0, 9.0], [-9.0, 12.0]], [57, 57, 6], axis=0)
    X = centres + rng.normal(size=(120, 2))
    return cut(rng.permutation(X), Layout.lattice(3), [40] * 3)


def small_cluster(**more: Any) -> tuple[Session, FloatArray, int]:
    start = {
        "init": "given",
        "initial_centroids": ((0.0, 0.0), (9.0, 9.0), (-9.0, 12.0)),
    }
    params = Llf(n_clusters=3, **start, **more)
    session = Session(params, Layout.lattice(3), suppressed_data(), seed=SEED)
    outcome = session.run_to_end().outcomes["r1c1"]
    assert outcome.cluster_sizes.tolist() == [57, 57, 6]
    return session, outcome.centroids, 2


def test_the_analyst_gets_nothing_of_a_small_cluster() -> None:
    session, V, small = small_cluster()
    summary = session.summary()
    assert summary.clusters.tolist() == [0, 1]
    assert summary.sizes.tolist() == [55, 55], "to fives"
    rows = np.vstack([matrix(data) for data in suppressed_data().values()])
    grid = round_up(5 / 57 * rows.std(axis=0))
    told = np.rint(V[:2] / grid) * grid
    np.testing.assert_allclose(summary.centroids, told, rtol=1e-6)
    with np.errstate(invalid="ignore"):
        # every eight bytes of all messages, at any alignment
        numbers = np.concatenate(
            [
                np.frombuffer(message, "<f8", (len(message) - begin) // 8, begin)
                for message in session.stored
                for begin in range(8)
            ]
        )
        scaled = session.recall("r1c1", messages.Centroids).centroids
        for canary in (V[small], scaled[small], V[0]):
            assert not np.isclose(numbers[:, None], canary, rtol=1e-9, atol=0).any()
        published = np.isclose(
            numbers[:, None], summary.centroids[0], rtol=1e-9, atol=0
        )
        assert published.any(axis=0).all()


@pytest.mark.parametrize(
    ("more", "clusters", "n_centroids"),
    [
        ({"min_cluster_rows": 6}, [0, 1, 2], 3),
        ({"min_cluster_rows": 58}, [], 0),
        ({"publish": "sizes"}, [0, 1], 0),
        ({"publish": "nothing"}, [], 0),
    ],
)
def test_terms_say_what_is_let_out(
    more: dict[str, Any], clusters: list[int], n_centroids: int
) -> None:
    session, _, _ = small_cluster(**more)
    summary = session.summary()
    assert summary.clusters.tolist() == clusters
    assert len(summary.centroids) == n_centroids
    assert summary.sizes.size == len(clusters)
    if more.get("publish") == "nothing":
        assert not session.conclusion.figures


def test_split_columns_let_out_rounded_sizes_of_large_clusters_alone() -> None:
    rows = np.vstack([matrix(d) for d in suppressed_data().values()])
    X = np.hstack([rows, rows[:, :1]])
    for publish, told in (("centroids", [55, 55]), ("nothing", [])):
        params = Llf(
            n_clusters=3,
            publish=publish,
            init="given",
            initial_centroids=((0.0,) * 3, (9.0,) * 3, (-9.0, 12.0, -9.0)),
        )
        data, layout = dealt(X, columns=True)
        run = simulation.run(params, layout, data, SEED)
        assert run.summary.cluster_sizes.tolist() == told
        assert run.outcomes["r1c1"].cluster_sizes.tolist() == [57, 57, 6]


# What is refused


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("init", ["careful", "random_party", "bounds", "given"])
def test_a_value_outside_its_range_stops_its_party_alone(
    init: Any, *, columns: bool
) -> None:
    if columns and init == "random_party":
        init = "random_rows"
    X = blobs(90, 3, 3).clip(-10, 10)
    X[40, 1] = 10.5
    more = {"initial_centroids": start_of(X, 3)} if init == "given" else {}
    given = {"n_clusters": 3, "scaling": "minmax", "init": init}
    session = start_session(X, columns=columns, widest=10.0, **given, **more)
    while session.open.stage in {"opening", "secrets", "alignment"}:
        session.play_round()
    culprit = "r1c2" if columns else "r2c1"
    with pytest.raises(InvalidData, match="x1") as refused:
        session.answer(culprit)
    assert "10.5" not in str(refused.value)
    others = [slot for slot in session.data if slot != culprit]
    assert all(session.answer(slot).contribution for slot in others)


@pytest.mark.parametrize(
    ("sizes", "k", "width", "refused"),
    [([50, 50, 4], 3, 3, True), ([50, 50, 5], 3, 3, False), ([15, 15, 2], 1, 1, True)],
)
def test_sums_of_degrees_over_few_rows_are_refused(
    sizes: list[int], k: int, width: int, *, refused: bool
) -> None:
    """Sums over k (F + 1) / F rows or fewer could be solved for the rows."""
    given = {"sizes": sizes, "n_clusters": k, "max_iter": 2}
    X, lifted = blobs(sum(sizes), width, 3), unaudited(Layout.lattice(3))
    fuzzy = start_session(X, **given, **FUZZY, **SMALL)
    if not refused:
        fuzzy.run_to_end()
        return
    with pytest.raises(GuardRefused, match=f"{sizes[-1]} rows"):
        fuzzy.run_to_end()
    start_session(X, choices=lifted, **given).run_to_end()  # c-means


@pytest.mark.parametrize(
    ("params", "columns", "reason"),
    [
        # rows of the leader are the start; `careful` asks parties for what they have
        ({"n_clusters": 21, "init": "random_party"}, False, "cannot start"),
        (
            {"init": "given", "initial_centroids": ((0.0, 0.0), (1.0, 1.0))},
            False,
            "needs 3 numbers",
        ),
        ({"n_clusters": 61}, True, "rows"),
        ({"init": "random_party", "sizes": [4, 28, 28]}, False, "4 rows cannot start"),
    ],
)
def test_a_start_that_the_rows_do_not_allow_is_refused(
    params: dict[str, Any], reason: str, *, columns: bool
) -> None:
    given = {"n_clusters": 2, **params}
    with pytest.raises((InvalidData, InvalidParameters), match=reason):
        start_session(blobs(60, 3), columns=columns, **given).run_to_end()


def test_a_range_of_zero_alone_is_a_constant_column() -> None:
    X = blobs(90, 3).clip(-9, 9)
    X[:, 1] = 0.0
    params, (data, layout) = Llf(n_clusters=2, scaling="none"), dealt(X)
    said = within([-10.0, 0.0, -10.0], [10.0, 0.0, 10.0], data, layout)
    run = simulation.run(params, layout, data, 1, dictionary=said)
    assert np.isfinite(run.outcomes["r1c1"].centroids).all()


@pytest.mark.parametrize("columns", [False, True])
def test_a_range_so_wide_that_rounding_hides_the_rows_is_refused(
    *, columns: bool
) -> None:
    given = {"widest": 1e16, "n_clusters": 2, "scaling": "minmax"}
    wide = start_session(blobs(60, 3), columns=columns, **given)
    with pytest.raises(GuardRefused, match=r"dictionary's range of .* is so wide"):
        wide.run_to_end()

"""The coordinator reads what the runs are like, and says which counts; parties compare."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from support.analyst_process import House
from support.drawn_terms import drawn
from support.terminal import coterie

from analyst_service.credentials import Role
from clustering_protocols.common.errors import GuardRefused, InvalidParameters
from clustering_protocols.contract import Params
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.sections import Evaluation, Release
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.answers import RunLine
from clustering_protocols.wire.states import SessionState
from coterie_pages.result_texts import suggest_run
from party_sdk.analyst_client import http_analyst
from party_sdk.application.exports import can_preview_runs, own_runs
from party_sdk.application.home import Home
from party_sdk.cli.terminal.result_lines import run_table_lines
from party_sdk.coordinator.option_parsing import parse_runs
from party_sdk.tables import open_table

X: Any = load_iris().data
LAYOUT = Layout.lattice(2)
PARAMS = DataCollaboration(n_clusters=4, dimensions="all_but_one")
KS = (2, 3, 4)


@pytest.mark.parametrize("n_clusters", [3, None])
@pytest.mark.quick(1)
def test_parties_get_the_labels_of_the_run_that_was_chosen(
    house: House, n_clusters: int | None
) -> None:
    tables = [X[:70], X[70:]]
    session = house.open(
        f"chosen-{n_clusters or 0}",
        PARAMS,
        LAYOUT,
        evaluation=Evaluation(n_clusters=KS, choose="later", within=3600),
    )
    with choosing(house, session, tables) as running:
        status = session.status()
        assert [run.n_clusters for run in status.runs] == list(KS)
        assert not any(run.chosen for run in status.runs)
        assert all(run.figures["inertia"] for run in status.runs)
        if n_clusters is None:  # nobody says anything in time
            house.api.clock.forward(3601)
        else:
            session.choose(n_clusters)
        results = running.result()
    for result in results.values():
        expected = n_clusters or 2  # two are best by the simplified silhouette
        assert KS[result.chosen] == expected
        assert len(np.unique(np.concatenate([r.labels for r in results.values()]))) == (
            expected
        )
        assert [each.n_clusters for each in result.figures] == list(KS)
    done = session.wait()
    assert [run.chosen for run in done.runs] == [k == expected for k in KS]
    assert session.choose(expected).state is SessionState.COMPLETED  # a repeat


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2..8", tuple(range(2, 9))),
        ("2-4", (2, 3, 4)),
        ("2 to 3", (2, 3)),
        ([4, 2, 2, 9], (2, 4, 9)),
    ],
)
def test_several_numbers_are_a_list_or_a_range(
    text: Any, numbers: tuple[int, ...]
) -> None:
    values, runs = parse_runs({"n_clusters": text, "n_init": 3}, "later", 60)
    assert values == {"n_clusters": numbers[-1], "n_init": 3}
    assert runs == Evaluation(n_clusters=numbers, choose="later", within=60)


@pytest.mark.parametrize("given", [3, "3..3", [3]])
def test_one_number_leaves_nothing_to_choose(given: Any) -> None:
    assert parse_runs({"n_clusters": given}) == ({"n_clusters": 3}, None)
    with pytest.raises(InvalidParameters, match="several n_clusters"):
        parse_runs({"n_clusters": given}, "later")


@pytest.mark.parametrize("given", ["1..400", [2, 0], [2, "x"]])
def test_what_are_no_numbers_of_clusters_is_refused(given: Any) -> None:
    with pytest.raises(InvalidParameters, match="n_clusters"):
        parse_runs({"n_clusters": given})


def test_the_table_shows_what_some_run_has_and_marks_the_chosen() -> None:
    figures = [
        {"n_clusters": 2, "inertia": 1234.5678, "silhouette": None, "converged": True},
        {"n_clusters": 2, "inertia": 9.0, "silhouette": None, "converged": False},
    ]
    assert list(run_table_lines(runs_of(*figures))) == [
        "clusters  inertia  converged",
        "2         1,235    yes",
        "3 *       9        no",
    ]
    assert not list(run_table_lines([]))


def runs_of(*figures: dict[str, Any]) -> list[RunLine]:
    """Return runs from two clusters on, of which three were chosen."""
    return [
        RunLine(n_clusters=k, figures=each, chosen=k == 3)
        for k, each in enumerate(figures, start=2)
    ]


def with_gap(k: int, gap: float) -> dict[str, Any]:
    figures = Figures(
        n_clusters=k, inertia=9.0, gap=gap, gap_error=0.01, gap_of_one=0.5
    )
    return figures.values


def test_the_table_says_where_there_are_no_clusters() -> None:
    worse = runs_of(with_gap(2, 0.3), with_gap(3, 0.2))
    assert list(run_table_lines(worse))[-1].startswith("no clusters")
    assert "no clusters" not in "".join(run_table_lines(runs_of(with_gap(2, 0.9))))


# Own rows under each number


THREE = Layout.lattice(3)
SCHEMA = numeric_schema(("a", "b"), -60, 60)
NAMES = THREE.names


def tables() -> list[pd.DataFrame]:
    rng = np.random.default_rng(0)
    centres = np.array([[20.0, -20.0], [0.0, 20.0], [-20.0, -5.0]])
    truth = rng.permutation(np.repeat([0, 1, 2], [90, 63, 41]))
    X = centres[truth] + rng.normal(size=(len(truth), 2))
    ids = [f"p{n}" for n in range(len(X))]
    frame = pd.DataFrame({"id": ids, "a": X[:, 0], "b": X[:, 1]})
    return [frame[:70], frame[70:130], frame[130:]]


def open_session(house: House, params: Any) -> Any:
    return house.open(
        "runs",
        params,
        THREE,
        dictionary=[SCHEMA],
        release=Release(profiles="members"),
        evaluation=Evaluation(n_clusters=KS, choose="later", within=3600),
    )


@contextmanager
def choosing(house: House, session: Any, data: list[Any]) -> Iterator[Future[Any]]:
    """Lend the results to come of parties that wait for a choice."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(house.run, session, data)
        while session.status().state is not SessionState.CHOOSING:
            time.sleep(0.02)
            assert not running.done()
        yield running


def sources() -> list[Any]:
    return [open_table(t, id_column="id", schema=SCHEMA) for t in tables()]


def test_each_party_reads_its_own_rows_under_each_number(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api: Any = house.api
    session = open_session(
        house, LosslessFederated(n_clusters=4, small_cohorts="allow")
    )
    data = sources()
    with choosing(house, session, data) as running:
        status = session.status()
        for run in status.runs:
            assert sum(run.sizes) in range(180, 210)
            assert all(size % 5 == 0 for size in run.sizes)
            assert list(run.sizes) == sorted(run.sizes, reverse=True)
        assert [len(run.sizes) for run in status.runs] == [2, 3, 4]
        suggested = suggest_run(status.runs)
        assert suggested.n_clusters == 3
        found = own_runs(house.last[NAMES[0]], data[0])
        with pytest.raises(GuardRefused, match="joined with other data"):
            own_runs(house.last[NAMES[0]], data[1])
        monkeypatch.setattr(Home, "connect", lambda *_: api.connect())
        monkeypatch.setattr(http_analyst, "connect", lambda *_, **__: api.connect())
        tables()[0].to_csv(tmp_path / "own.csv", index=False)
        own = ("--data", tmp_path / "own.csv", "--id-column", "id")
        at = ("--home", house.home_of(NAMES[0]))
        shown = coterie("party", "report", "runs", NAMES[0], "--runs", *own, *at)
        assert "3 clusters; your rows: " in shown.stdout
        asked = ("--url", "http://127.0.0.1", "--key", api.key(Role.ADMINISTRATOR))
        coterie("session", *asked, "choose", "runs", "--n-clusters", 3)
        results = running.result()
    assert [run.n_clusters for run in found] == list(KS)
    first = results[NAMES[0]]
    assert list(found[1].own_sizes) == first.own_sizes.tolist()
    assert list(found[1].sizes) == first.cluster_sizes.tolist()
    profile = found[1].profile
    assert profile.own
    own = tables()[0].groupby(first.labels)["a"].mean()
    means = next(f.mean for f in profile.fields if f.name == "a")
    np.testing.assert_allclose(means, own[list(profile.clusters)], rtol=1e-9)
    assert [run.sizes for run in session.status().runs] == [
        r.sizes for r in status.runs
    ]


@pytest.mark.slow
def test_columns_show_own_variables_under_each_number(house: House) -> None:
    columns, schemas = (
        Layout.lattice(1, 3),
        [numeric_schema((c,), -60, 60) for c in "abc"],
    )
    session = house.open(
        "columns",
        LosslessFederated(n_clusters=4),
        columns,
        dictionary=schemas,
        evaluation=Evaluation(n_clusters=KS, choose="later", within=3600),
    )
    table = pd.concat(tables()).assign(c=lambda each: each["a"] - each["b"])
    data = [
        open_table(table[["id", c]].sample(frac=1, random_state=n), id_column="id")
        for n, c in enumerate("abc")
    ]
    with choosing(house, session, data) as running:
        found = own_runs(house.last[columns.names[1]], data[1])
        session.choose(3)
        result = running.result()[columns.names[1]]
    assert [run.n_clusters for run in found] == list(KS)
    assert list(found[1].own_sizes) == result.own_sizes.tolist()
    profile = found[1].profile
    [field] = profile.fields
    shuffled = table.sample(frac=1, random_state=1)["b"].to_numpy()
    means = [shuffled[result.labels == c].mean() for c in profile.clusters]
    np.testing.assert_allclose(field.mean, means, rtol=1e-9)


@pytest.mark.parametrize(
    ("params", "looks"), [(PARAMS, False), (LosslessFederated(n_clusters=4), True)]
)
def test_parties_preview_runs_only_where_they_label_their_rows(
    params: Params, *, looks: bool
) -> None:
    layout = Layout.lattice(3)
    runs = {"n_clusters": KS, "choose": "later", "within": 3600}
    assert can_preview_runs(drawn(params, layout, evaluation=runs)) == looks
    assert not can_preview_runs(drawn(params, layout))


def lines(**figures: tuple[float, ...]) -> list[RunLine]:
    ks = range(2, 2 + len(next(iter(figures.values()))))
    return [
        RunLine(
            n_clusters=k,
            figures={name: values[n] for name, values in figures.items()},
            chosen=False,
            sizes=(50, 30),
        )
        for n, k in enumerate(ks)
    ]


def test_what_most_measures_prefer_is_suggested_with_the_reason() -> None:
    measures = {
        "simplified_silhouette": (0.3, 0.5, 0.4),
        "calinski_harabasz": (10.0, 20.0, 30.0),
        "davies_bouldin": (2.0, 1.0, 1.5),
        "stability": (0.9, 0.93, 0.5),
    }
    found: Any = suggest_run(lines(**measures))
    assert (found.n_clusters, found.doubts) == (3, ())
    assert found.reason == (
        "best by simplified silhouette and Davies–Bouldin; both halves of the rows "
        "give these clusters (stability 0.93)"
    )


def test_what_is_not_stable_comes_behind_what_is() -> None:
    for stability, n_clusters in ((0.9, 2), (0.3, 3)):
        measures = {"stability": (stability, 0.4), "simplified_silhouette": (0.3, 0.5)}
        found: Any = suggest_run(lines(**measures))
        assert found.n_clusters == n_clusters
    assert "different clusters" in found.doubts[0]
    assert suggest_run(lines(inertia=(3.0, 2.0))) is None, "nothing compares runs"
    assert suggest_run(lines(simplified_silhouette=(0.5,))) is None

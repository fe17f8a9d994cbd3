"""The coordinator reads what the runs are like, and says which counts."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from support.analyst_process import House

from clustering_protocols.common.errors import InvalidParameters, NotReady, RoundClosed
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.answers import RunLine
from clustering_protocols.wire.states import SessionState
from party_sdk.advice import describe_runs
from party_sdk.cli.terminal.result_lines import table_lines
from party_sdk.coordinator.option_parsing import read_runs
from party_sdk.coordinator.session import CoordinatedSession

X: Any = load_iris().data
LAYOUT = Layout.lattice(2)
PARAMS = DataCollaboration(n_clusters=4, dimensions="all_but_one")
KS = (2, 3, 4)


def until_choosing(session: CoordinatedSession) -> None:
    while session.status().state is not SessionState.CHOOSING:
        time.sleep(0.02)


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
    with pytest.raises(NotReady, match="nothing to choose"):
        session.choose(3)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(house.run, session, tables)
        until_choosing(session)
        status = session.status()
        assert [run.n_clusters for run in status.runs] == list(KS)
        assert not any(run.chosen for run in status.runs)
        assert all(run.figures["inertia"] for run in status.runs)
        if n_clusters is None:  # nobody says anything in time
            house.api.clock.forward(3601)
        else:
            with pytest.raises(InvalidParameters, match="2, 3, 4"):
                session.choose(7)
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
    with pytest.raises(RoundClosed, match="Another run"):
        session.choose(4)


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
    values, runs = read_runs({"n_clusters": text, "n_init": 3}, "later", 60)
    assert values == {"n_clusters": numbers[-1], "n_init": 3}
    assert runs == Evaluation(n_clusters=numbers, choose="later", within=60)


@pytest.mark.parametrize("given", [3, "3..3", [3]])
def test_one_number_leaves_nothing_to_choose(given: Any) -> None:
    assert read_runs({"n_clusters": given}) == ({"n_clusters": 3}, None)
    with pytest.raises(InvalidParameters, match="several n_clusters"):
        read_runs({"n_clusters": given}, "later")


@pytest.mark.parametrize("given", ["1..400", [2, 0], [2, "x"]])
def test_what_are_no_numbers_of_clusters_is_refused(given: Any) -> None:
    with pytest.raises(InvalidParameters, match="n_clusters"):
        read_runs({"n_clusters": given})


def test_the_table_shows_what_some_run_has_and_marks_the_chosen() -> None:
    figures = [
        {"n_clusters": 2, "inertia": 1234.5678, "silhouette": None, "converged": True},
        {"n_clusters": 2, "inertia": 9.0, "silhouette": None, "converged": False},
    ]
    assert list(table_lines(runs_of(*figures))) == [
        "clusters  inertia  converged",
        "2         1,235    yes",
        "3 *       9        no",
    ]
    assert not list(table_lines([]))


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
    assert list(table_lines(worse))[-1].startswith("no clusters")
    assert "no clusters" not in "".join(table_lines(runs_of(with_gap(2, 0.9))))


@pytest.mark.parametrize(
    ("params", "layout", "said"),
    [
        (PARAMS, LAYOUT, "rounds and bytes of one"),
        (LosslessFederated(n_clusters=4), Layout.lattice(3), "about 3 times"),
    ],
    ids=["dc", "llf"],
)
def test_what_several_runs_cost_is_said_before_the_session_opens(
    params: Any, layout: Layout, said: str
) -> None:
    assert said in describe_runs(params, layout, Evaluation(n_clusters=KS))

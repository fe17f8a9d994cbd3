"""Sessions of several runs: their figures, the chosen run, and who chooses it."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from sklearn.datasets import load_iris
from sklearn.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_score,
)
from support.repeats import in_turn

from clustering_protocols import simulation
from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.engine import packets, stages as engine_stages
from clustering_protocols.engine.signatures import compute_outcome
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout

X: Any = load_iris().data
Z: Any = (X - X.mean(axis=0)) / X.std(axis=0)
KS = (2, 3, 4, 5)
WAYS = {
    "dc": (DataCollaboration(n_clusters=5), Layout.lattice(2, 1)),
    "omnifc": (OmniFC(n_clusters=5), Layout.lattice(3)),
    "omnifc-hierarchical": (
        OmniFC(n_clusters=5, algorithm="hierarchical"),
        Layout.lattice(3),
    ),
    "pqmds": (ProductQuantisation(n_clusters=5), Layout.lattice(1, 2)),
}


def evaluated(
    way: str, n_clusters: int = 5, **choice: Any
) -> tuple[simulation.SessionEvaluation, simulation.Split]:
    params, layout = WAYS[way]
    params = params.model_copy(update={"n_clusters": n_clusters})
    parts = simulation.split(X, layout, 0)
    return simulation.evaluate(params, X, parts, 0, **choice), parts


def outcome(found: simulation.SessionEvaluation) -> Any:
    return next(iter(found.simulated.outcomes.values()))


@pytest.mark.thorough
@pytest.mark.parametrize(("way", "run"), in_turn(list(WAYS), range(len(KS))))
def test_the_chosen_run_equals_its_pooled_clustering(
    monkeypatch: pytest.MonkeyPatch, way: str, run: int
) -> None:
    monkeypatch.setattr(Evaluation, "best_run", lambda *_: run)
    found, _ = evaluated(way, evaluation=Evaluation(n_clusters=KS, choose="later"))
    got = outcome(found)
    assert got.chosen == run
    assert len(np.unique(found.labels)) == KS[run] == got.figures[run].n_clusters
    exact = way.startswith("omnifc")  # dc leaves a dimension out, pqmds quantises
    assert found.fidelity == 1.0 if exact else found.fidelity > 0.4


def test_figures_of_rows_as_shared_out_are_those_of_scikit_learn() -> None:
    found, _ = evaluated("omnifc", 3)
    figures = found.simulated.figures[0]
    labels = found.labels
    assert found.fidelity == 1.0
    for name, score in (
        ("silhouette", silhouette_score),
        ("calinski_harabasz", calinski_harabasz_score),
        ("davies_bouldin", davies_bouldin_score),
    ):
        # of the rows as quantised, some 1e-6 from those of the table
        assert getattr(figures, name) == pytest.approx(score(Z, labels), rel=1e-5)


@pytest.mark.parametrize("rule", ["usual", "calinski_harabasz", "davies_bouldin"])
def test_the_rule_of_the_terms_chooses(rule: Any) -> None:
    found, _ = evaluated("dc", evaluation=Evaluation(n_clusters=KS, choose=rule))
    got = outcome(found)
    name = "simplified_silhouette" if rule == "usual" else rule
    values = [getattr(figures, name) for figures in got.figures]
    sign = -1 if rule == "davies_bouldin" else 1
    assert got.chosen == int(np.argmax(sign * np.array(values)))
    assert len(got.cluster_sizes) == KS[got.chosen]
    assert found.fidelity > 0.9


def test_of_equal_runs_the_one_with_fewer_clusters_counts() -> None:
    runs = [Figures(n_clusters=k, simplified_silhouette=0.5) for k in KS]
    assert Evaluation(n_clusters=KS).best_run(runs) == 0


def test_silence_until_the_deadline_applies_the_default_rule() -> None:
    later, _ = evaluated("dc", evaluation=Evaluation(n_clusters=KS, choose="later"))
    usual, _ = evaluated("dc", evaluation=Evaluation(n_clusters=KS))
    assert outcome(later).chosen == outcome(usual).chosen


@pytest.mark.parametrize("way", ["dc", "omnifc", "pqmds"])
@pytest.mark.parametrize(("label", "taken"), [(4, True), (5, False)])
def test_a_label_names_a_cluster(way: str, label: int, *, taken: bool) -> None:
    params, layout = WAYS[way]
    data = simulation.split(X, layout, 1).data
    running = simulation.Session(params, layout, data, seed=1)
    running.run_to_end()
    slot, (_, stages) = layout.names[0], engine_stages.load_session(running.agreement)
    told = packets.parse(running.final_step.results[slot]).read(stages[-1].results)
    labels = np.full_like(told.arrays["labels"], label)
    result = told.model_copy(update={"labels": labels})
    last, context = engine_stages.last_stage_of_each_run(stages), running.context(slot)
    if taken:
        assert compute_outcome(last, context, result, None, 0).labels.max() == label
        return
    with pytest.raises(ProtocolFailed, match="not the number of a cluster"):
        compute_outcome(last, context, result, None, 0)


@pytest.mark.parametrize(
    "n_clusters", [(3,), (3, 2), (2, 2), (0, 2), tuple(range(1, 60))]
)
def test_runs_are_different_numbers_that_ascend(n_clusters: Any) -> None:
    with pytest.raises(ValidationError):
        Evaluation(n_clusters=n_clusters)


@pytest.mark.parametrize(
    ("params", "layout"),
    [
        (DataCollaboration(n_clusters=4), Layout.lattice(2)),
        (Dummy(), Layout.lattice(2)),
        (OmniFC(algorithm="dbscan"), Layout.lattice(3)),
    ],
)
def test_the_protocols_own_number_is_the_largest(params: Any, layout: Layout) -> None:
    parts = simulation.split(X, layout, 0)
    with pytest.raises(InvalidParameters, match="largest number to compare, 5"):
        simulation.Session(
            params, layout, parts.data, 0, evaluation=Evaluation(n_clusters=KS)
        )

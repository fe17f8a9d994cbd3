"""`llf` over real HTTP: the labels of the simulation, and parties that go away."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from support.analyst_process import Analyst, Crowd, wait_for

from clustering_protocols import simulation
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.terms import Deadlines, Layout
from party_sdk.party.asker import Asker
from party_sdk.party.participant import Party

Gather = Callable[..., Crowd]

X = load_iris().data
ROWS = simulation.split(X, Layout.lattice(4, 1), seed=1)
SHORT = Deadlines(round=10)  # in which the others answer on a busy machine, too


class Gone(BaseException):
    """Stands for SIGKILL: nothing catches it."""


def leave_in_the_updates(crowd: Crowd, slot: str) -> Party:
    """Run a party until its third update, in which it is killed."""
    party = crowd.party(slot)
    answered = 0

    class Watching(Asker):
        @property
        def is_present(self) -> bool:  # asked before each contribution leaves
            nonlocal answered
            answered += crowd.session.status().stage == "updates"
            if answered == 3:
                raise Gone
            return True

    party._verifier = replace(party._verifier, asker=Watching())
    with pytest.raises(Gone):
        party.run(crowd.data[slot])
    return party


@pytest.fixture(scope="module")
def ended_without_one(
    analyst_of_the_file: Analyst, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crowd]:
    """A session that came to its end after a party of it was killed."""
    analyst_of_the_file.start_unless_running()
    home = tmp_path_factory.mktemp("ended")
    params = LosslessFederated(n_clusters=3, quorum=3, tol=0)
    crowd = Crowd(
        analyst_of_the_file,
        home,
        params,
        ROWS.layout,
        ROWS.data,
        session="ended-without-one",
        deadlines=SHORT,
    )
    with closing(crowd):
        crowd.start("r1c1", "r2c1", "r4c1")
        leave_in_the_updates(crowd, "r3c1")
        crowd.join()
        yield crowd


def test_a_straggler_continues_to_the_same_centroids(gather: Gather) -> None:
    params = LosslessFederated(n_clusters=3, quorum=3, tol=0)
    crowd = gather(params, ROWS, deadlines=SHORT)
    crowd.start("r1c1", "r2c1", "r4c1")
    leave_in_the_updates(crowd, "r3c1")
    round_ = crowd.session.status().round
    wait_for(lambda: crowd.session.status().attempt == 2)
    crowd.start("r3c1")  # its answer to the first attempt was never sent
    results = crowd.join()
    assert len(results) == 4
    assert crowd.session.status().round > round_
    first = results["r1c1"].centroids
    assert all(np.array_equal(first, each.centroids) for each in results.values())
    assert len(results["r3c1"].labels) == ROWS.data["r3c1"].n_rows


def test_a_party_that_comes_after_the_end_labels_its_rows(
    ended_without_one: Crowd,
) -> None:
    crowd = ended_without_one
    late = crowd.party("r3c1").run(crowd.data["r3c1"])
    assert np.array_equal(late.centroids, crowd.results["r1c1"].centroids)
    assert len(late.labels) == crowd.data["r3c1"].n_rows
    assert np.array_equal(late.cluster_sizes, crowd.results["r1c1"].cluster_sizes)

"""`llf` over real HTTP: the labels of the simulation, and parties that go away."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from sklearn.datasets import load_iris
from support.analyst_process import Analyst, Crowd, wait_for

from analyst_service.models import Session
from clustering_protocols import simulation
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.states import OVER
from party_sdk.party.asker import Asker

Gather = Callable[..., Crowd]

X = load_iris().data
ROWS = simulation.split(X, Layout.lattice(4, 1), seed=1)
GONE = "r3c1"
OTHERS = tuple(slot for slot in ROWS.layout.names if slot != GONE)


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


def leave_in_the_updates(crowd: Crowd) -> None:
    """Run a party until its third update, in which it is killed."""
    party = crowd.party(GONE)
    answered = 0

    class Watching(Asker):
        @property
        def is_present(self) -> bool:  # asked before each contribution leaves
            nonlocal answered
            answered += crowd.session.status().stage == "updates"
            if answered == 3:
                raise Killed
            return True

    party._verifier = replace(party._verifier, asker=Watching())
    with pytest.raises(Killed):
        party.run(crowd.data[GONE])


def pass_deadline(crowd: Crowd) -> bool:
    """Let the deadline pass, if all have answered but the party that was killed."""
    status = crowd.session.status()
    if status.awaited_slots != [GONE]:
        return False
    here = {"id": status.id, "round": status.round, "attempt": status.attempt}
    with crowd.analyst.database() as connection:
        passed = (
            sa.update(Session).filter_by(**here).values(deadline=Session.created_at)
        )
        connection.execute(passed)
        connection.commit()
    return True


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
        ROWS,
        session="ended-without-one",
    )
    with closing(crowd):
        crowd.start(*OTHERS)
        leave_in_the_updates(crowd)
        while crowd.session.status().state not in OVER:
            pass_deadline(crowd)
            time.sleep(0.05)
        crowd.join()
        yield crowd


def test_a_straggler_continues_to_the_same_centroids(gather: Gather) -> None:
    params = LosslessFederated(n_clusters=3, quorum=3, tol=0)
    crowd = gather(params, ROWS)
    crowd.start(*OTHERS)
    leave_in_the_updates(crowd)
    round_ = crowd.session.status().round
    wait_for(lambda: pass_deadline(crowd))
    wait_for(lambda: crowd.session.status().attempt == 2)
    crowd.start(GONE)  # its answer to the first attempt was never sent
    results = crowd.join()
    assert len(results) == 4
    assert crowd.session.status().round > round_
    first = results["r1c1"].centroids
    assert all(np.array_equal(first, each.centroids) for each in results.values())
    assert len(results[GONE].labels) == ROWS.data[GONE].n_rows


def test_a_party_that_comes_after_the_end_labels_its_rows(
    ended_without_one: Crowd,
) -> None:
    crowd = ended_without_one
    late = crowd.party(GONE).run(crowd.data[GONE])
    assert np.array_equal(late.centroids, crowd.results["r1c1"].centroids)
    assert len(late.labels) == crowd.data[GONE].n_rows
    assert np.array_equal(late.cluster_sizes, crowd.results["r1c1"].cluster_sizes)

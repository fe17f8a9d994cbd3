"""`llf` over real HTTP: a party that was killed reads its result after the end."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from sklearn.datasets import load_iris
from support.analyst_process import Crowd

from analyst_service.models import Session
from clustering_protocols import simulation
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.states import OVER
from party_sdk.party.asker import Asker

ROWS = simulation.split(load_iris().data, Layout.lattice(4, 1), seed=1)
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


def pass_deadline(crowd: Crowd) -> None:
    """Let the deadline pass, if all have answered but the party that was killed."""
    status = crowd.session.status()
    if status.awaited_slots != [GONE]:
        return
    here = {"id": status.id, "round": status.round, "attempt": status.attempt}
    with crowd.analyst.database() as connection:
        passed = (
            sa.update(Session).filter_by(**here).values(deadline=Session.created_at)
        )
        connection.execute(passed)
        connection.commit()


def test_a_party_that_comes_after_the_end_labels_its_rows(
    gather: Callable[..., Crowd],
) -> None:
    crowd = gather(LosslessFederated(n_clusters=3, quorum=3, tol=0), ROWS)
    crowd.start(*OTHERS)
    leave_in_the_updates(crowd)
    while crowd.session.status().state not in OVER:
        pass_deadline(crowd)
        time.sleep(0.05)
    first = crowd.join()["r1c1"]
    late = crowd.party(GONE).run(crowd.data[GONE])
    assert np.array_equal(late.centroids, first.centroids)
    assert len(late.labels) == crowd.data[GONE].n_rows
    assert np.array_equal(late.cluster_sizes, first.cluster_sizes)

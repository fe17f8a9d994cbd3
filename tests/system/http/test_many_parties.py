"""Two hundred parties in one session, each with a home and connections of its own."""

from collections.abc import Callable

import numpy as np
import pytest
from support.analyst_process import Crowd
from support.repeats import on_command

from clustering_protocols import simulation
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.terms.terms import Layout

N_PARTIES = 200
ROWS_EACH = 50  # of fewer, one field makes up most of the distances by chance
SECONDS = 900

pytestmark = [*on_command("sessions of two hundred parties"), pytest.mark.postgres]


@pytest.mark.parametrize("database_kind", ["postgresql"], indirect=True)
def test_two_hundred_parties_get_the_labels_of_the_simulation(
    gather: Callable[..., Crowd],
) -> None:
    rows = np.random.default_rng(0).normal(size=(N_PARTIES * ROWS_EACH, 4))
    parts = simulation.split(rows, Layout.lattice(N_PARTIES), seed=1)
    crowd = gather(
        DataCollaboration(n_clusters=3, dimensions="all_but_one"), parts, at_home=True
    )
    crowd.start()
    results = crowd.join(SECONDS)
    assert len(results) == N_PARTIES
    labels = {slot: result.labels.tolist() for slot, result in results.items()}
    assert labels == crowd.expected()

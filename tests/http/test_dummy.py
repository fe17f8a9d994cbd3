"""The dummy through everything: the shape of the house, before any real protocol."""

from __future__ import annotations

import signal
from collections.abc import Callable

import numpy as np
from support.analyst_process import Analyst, Crowd, wait_for
from support.databases import on_both_databases

from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout

LAYOUT = Layout.lattice(2, 2)
X = np.random.default_rng(0).normal(size=(40, 6))
PARTS = simulation.split(X, LAYOUT, seed=1)


Gather = Callable[..., Crowd]

pytestmark = on_both_databases


def test_the_analyst_is_killed_while_collecting(
    analyst: Analyst, gather: Gather
) -> None:
    crowd = gather(Dummy(void_attempts=1), PARTS)
    crowd.party("r2c2").enrol(PARTS.data["r2c2"])
    crowd.start("r1c1", "r1c2", "r2c1")
    wait_for(lambda: crowd.session.status().awaited_slots == ["r2c2"])
    assert crowd.session.status().state == "collecting"
    analyst.kill(signal.SIGKILL)
    analyst.start()
    crowd.start("r2c2")
    assert crowd.labels() == crowd.expected()

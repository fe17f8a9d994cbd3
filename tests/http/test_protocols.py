"""Every protocol over real HTTP: bit for bit what its simulation gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.datasets import load_wine
from support.analyst_process import Crowd
from support.coclusters import blocks

from clustering_protocols import simulation
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.fccm import CoClustering
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.terms.terms import Layout

WINE = load_wine().data
LATTICE = simulation.split(WINE, Layout.lattice(2, 2), seed=1)
ROWS = simulation.split(WINE, Layout.lattice(3), seed=1)
COLUMNS = simulation.split(WINE, Layout.lattice(1, 3), seed=1)
COUNTS = simulation.split(blocks(60, 24, groups=3), Layout.lattice(1, 3), seed=1)
SHORT: dict[str, Any] = {"n_clusters": 3, "max_iter": 4}
CASES: dict[str, tuple[Any, simulation.Split]] = {
    "dummy": (Dummy(n_clusters=3, void_attempts=2), LATTICE),
    "dc": (DataCollaboration(n_clusters=3), LATTICE),
    "llf rows": (LosslessFederated(**SHORT), ROWS),
    "llf columns": (LosslessFederated(**SHORT), COLUMNS),
    "omnifc": (OmniFC(n_clusters=3, distances="landmarks"), ROWS),
    "fccm": (
        CoClustering(
            **SHORT, lambda_u=0.02, lambda_w=0.1, tol=0.0, small_cohorts="allow"
        ),
        COUNTS,
    ),
    "pqmds": (ProductQuantisation(n_clusters=3), COLUMNS),
}


@pytest.mark.every_python
@pytest.mark.parametrize("name", CASES)
def test_http_gives_the_bits_of_the_simulation(
    gather: Callable[..., Crowd], name: str
) -> None:
    crowd = gather(*CASES[name])
    expected = crowd.simulated()
    crowd.start()
    results = crowd.join()
    assert crowd.session.status().state == "completed"
    assert results.keys() == expected.outcomes.keys()
    for slot, outcome in expected.outcomes.items():
        assert results[slot].labels.tolist() == outcome.labels.tolist()
        for kind in ("centroids", "memberships", "item_memberships"):
            computed, wanted = getattr(results[slot], kind), getattr(outcome, kind)
            assert (computed is None) == (wanted is None), kind
            assert wanted is None or computed.tobytes() == wanted.tobytes(), kind

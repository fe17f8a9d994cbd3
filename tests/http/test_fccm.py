"""`fccm` over real HTTP: labels and memberships of the simulation, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.analyst_process import Crowd
from support.coclusters import blocks

from clustering_protocols import simulation
from clustering_protocols.protocols.fccm import CoClustering
from clustering_protocols.terms.terms import Layout

Gather = Callable[..., Crowd]

X = blocks(60, 24, groups=3)
PARTS = simulation.split(X, Layout.lattice(1, 3), seed=1)


@pytest.mark.every_python
@pytest.mark.parametrize(
    "more",
    [
        {"lambda_w": 0.1},
        {"normalisation": "site", "analyst_view": "sums"},
    ],
    ids=["global", "site"],
)
def test_http_gives_the_bits_of_the_simulation(
    gather: Gather, more: dict[str, Any]
) -> None:
    params = CoClustering(
        **{"n_clusters": 3, "lambda_u": 0.02, "max_iter": 4, "tol": 0.0} | more
    )
    crowd = gather(params, PARTS)
    expected = crowd.simulated()
    crowd.start()
    results = crowd.join()
    assert set(results) == set(expected.outcomes)
    for slot, outcome in expected.outcomes.items():
        found = results[slot]
        assert found.labels.tolist() == outcome.labels.tolist()
        assert found.memberships.tobytes() == outcome.memberships.tobytes()
        assert found.item_memberships.tobytes() == outcome.item_memberships.tobytes()
        assert found.report["n_iterations"] == outcome.report["n_iterations"]
    progress = crowd.session.status().progress
    # the best start may have come to rest before others
    assert progress["updates"] == len(progress["moved"]) >= found.report["n_iterations"]

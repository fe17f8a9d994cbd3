"""`pqmds` over real HTTP: the labels of the simulation, and the party's own log."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.datasets import load_wine
from support.analyst_process import Crowd

from clustering_protocols import simulation
from clustering_protocols.protocols.pqmds import Privacy, ProductQuantisation
from clustering_protocols.terms import Layout

Gather = Callable[..., Crowd]

PARAMS = ProductQuantisation(n_clusters=3)
PARTS = simulation.split(load_wine().data, Layout.lattice(1, 3), seed=1)


def test_http_gives_the_labels_of_the_simulation_bit_for_bit(gather: Gather) -> None:
    crowd = gather(PARAMS, PARTS)
    run = crowd.simulated()
    crowd.start()
    for slot, result in crowd.join().items():
        expected = run.outcomes[slot]
        assert result.labels.tolist() == expected.labels.tolist()
        assert expected.centroids is not None
        assert result.centroids.tolist() == expected.centroids.tolist()


def test_a_party_s_log_tells_what_its_noise_cost(gather: Gather) -> None:
    privacy = Privacy(mechanism="laplace", epsilon=30.0)
    params = ProductQuantisation(n_clusters=3, privacy=privacy)
    crowd = gather(params, PARTS)
    crowd.start()
    results = crowd.join()
    entries = crowd.party("r1c1").folder.ledger.read()
    told = [entry["notes"] for entry in entries if entry["event"] == "noting"]
    assert len(told) == 1
    spent = told[0]["  of these spent by this party"]
    assert spent == results["r1c1"].report["  of these spent by this party"] == "10, 0"

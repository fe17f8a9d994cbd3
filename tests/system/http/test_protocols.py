"""Protocols over real HTTP: the bits of their simulations, and what each refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine
from support.analyst_process import Crowd
from support.coclusters import blocks
from support.tables import within

from clustering_protocols import simulation
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.fccm import CoClustering
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.mixture import Mixture
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.protocols.pqmds import Privacy, ProductQuantisation
from clustering_protocols.terms.terms import Layout
from coterie import Policy
from party_sdk.disclosures.history import History
from party_sdk.disclosures.uses import Use
from party_sdk.party.party_session import PartySession

WINE = load_wine().data
LATTICE = simulation.split(WINE, Layout.lattice(2, 2), seed=1)
ROWS = simulation.split(WINE, Layout.lattice(3), seed=1)
REAL = simulation.split(
    WINE + np.random.default_rng(0).normal(scale=1e-3, size=WINE.shape),
    Layout.lattice(3),
    seed=1,
)
COLUMNS = simulation.split(WINE, Layout.lattice(1, 3), seed=1)
COUNTS = simulation.split(blocks(60, 24, groups=3), Layout.lattice(1, 3), seed=1)
Gather = Callable[..., Crowd]
SHORT: dict[str, Any] = {"n_clusters": 3, "max_iter": 4}
CASES: dict[str, tuple[Any, simulation.Split]] = {
    "dummy": (Dummy(n_clusters=3, void_attempts=2), LATTICE),
    "dc": (DataCollaboration(n_clusters=3, dimensions="all_but_one"), LATTICE),
    "llf rows": (LosslessFederated(**SHORT), ROWS),
    "llf columns": (LosslessFederated(**SHORT), COLUMNS),
    "mixture": (Mixture(n_clusters=2, covariance_type="diag", max_iter=4), REAL),
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
def test_http_gives_the_bits_of_the_simulation(gather: Gather, name: str) -> None:
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


SAID = within(0.0, 2000.0, COLUMNS.data, COLUMNS.layout)


def test_a_party_records_privacy_loss_first_and_keeps_its_total(gather: Gather) -> None:
    privacy = Privacy(mechanism="laplace", epsilon=3.0)
    params = ProductQuantisation(n_clusters=3, privacy=privacy)
    crowd = gather(params, COLUMNS, dictionary=SAID)
    history, data = History(crowd.home), COLUMNS.data["r1c1"]
    earlier = Use(session="earlier", slot="a", epsilon=2.5)
    careful = crowd.party("r1c1")
    risks = frozenset(crowd.session.status().risks)
    careful._policy = Policy(accepted_risks=risks, epsilon_total=5.0, least_known=0)
    history.record(earlier, history.rows_of(data), Policy())
    with pytest.raises(GuardRefused, match=r"ε = 3; earlier .* some of them 2\.5"):
        careful.run(data)
    assert crowd.session.status().slots[0].joined_at is None, "nothing was sent"
    careful._policy = Policy(accepted_risks=risks, epsilon_total=5.5, least_known=0)
    crowd.start("r1c2", "r1c3")
    careful.run(data)
    crowd.join()
    PartySession(crowd.home, crowd.session.id, "r1c1").forget()
    more = Use(session="more", slot="a", epsilon=0.1)
    for part in COLUMNS.data.values():  # all three of one home, and of the same people
        with pytest.raises(GuardRefused, match=r"some of them 5\.5\."):
            history.check(more, history.rows_of(part), Policy(epsilon_total=5.5))

"""`pqmds` over real HTTP: the labels of the simulation, and the party's own log."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from sklearn.datasets import load_wine
from support.analyst_process import Crowd
from support.tables import within

from clustering_protocols import simulation
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import PrivacySpending
from clustering_protocols.protocols.pqmds import Privacy, ProductQuantisation
from clustering_protocols.terms.terms import Layout
from coterie import Policy
from party_sdk.disclosures.privacy_budget import PrivacyBudget
from party_sdk.party.party_session import PartySession
from party_sdk.party.resume_checks import data_digest

Gather = Callable[..., Crowd]

PARTS = simulation.split(load_wine().data, Layout.lattice(1, 3), seed=1)
SAID = within(0.0, 2000.0, PARTS.data, PARTS.layout)


def test_a_party_records_privacy_loss_first_and_keeps_its_total(
    gather: Gather,
) -> None:
    privacy = Privacy(mechanism="laplace", epsilon=3.0)
    params = ProductQuantisation(n_clusters=3, privacy=privacy)
    crowd = gather(params, PARTS, dictionary=SAID)
    table = data_digest(PARTS.data["r1c1"])
    earlier = PrivacyBudget(crowd.home)
    careful = crowd.party("r1c1")
    risks = frozenset(crowd.session.status().risks)
    careful._policy = Policy(accepted_risks=risks, epsilon_total=5.0, least_known=0)
    earlier.spend(table, "earlier/a/x", PrivacySpending(epsilon=2.5, delta=0.0), None)
    with pytest.raises(GuardRefused, match=r"ε = 3; earlier ones .* have cost 2\.5"):
        careful.run(PARTS.data["r1c1"])
    assert crowd.session.status().slots[0].joined_at is None, "nothing was sent"
    careful._policy = Policy(accepted_risks=risks, epsilon_total=5.5, least_known=0)
    crowd.start("r1c2", "r1c3")
    careful.run(PARTS.data["r1c1"])
    crowd.join()
    assert earlier.epsilon(table) == 5.5
    PartySession(crowd.home, crowd.session.id, "r1c1").forget()
    kept = json.loads((crowd.home / "spent.json").read_bytes())
    assert sorted(kept[table].values()) == [[2.5, 0.0], [3.0, 0.0]]
    others = [data_digest(PARTS.data[slot]) for slot in ("r1c2", "r1c3")]
    assert [earlier.epsilon(other) for other in others] == [3.0, 3.0]

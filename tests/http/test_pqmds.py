"""`pqmds` over real HTTP: the labels of the simulation, and the party's own log."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sklearn.datasets import load_wine
from support.analyst_process import Crowd
from support.tables import within

from clustering_protocols import simulation
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.protocols.pqmds import Privacy, ProductQuantisation
from clustering_protocols.terms.terms import Layout
from coterie import Policy
from party_sdk.disclosures.history import History
from party_sdk.disclosures.uses import Use
from party_sdk.party.party_session import PartySession

Gather = Callable[..., Crowd]

PARTS = simulation.split(load_wine().data, Layout.lattice(1, 3), seed=1)
SAID = within(0.0, 2000.0, PARTS.data, PARTS.layout)


def test_a_party_records_privacy_loss_first_and_keeps_its_total(
    gather: Gather,
) -> None:
    privacy = Privacy(mechanism="laplace", epsilon=3.0)
    params = ProductQuantisation(n_clusters=3, privacy=privacy)
    crowd = gather(params, PARTS, dictionary=SAID)
    history, data = History(crowd.home), PARTS.data["r1c1"]
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
    for part in PARTS.data.values():  # all three of one home, and of the same people
        with pytest.raises(GuardRefused, match=r"some of them 5\.5\."):
            history.check(more, history.rows_of(part), Policy(epsilon_total=5.5))

"""`dc` on real data over real HTTP: the labels of the simulation, whatever happens."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine
from support.analyst_process import Analyst, Crowd, wait_for
from support.repeats import thorough

from clustering_protocols import simulation
from clustering_protocols.common.errors import RowsNotAligned
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.terms.terms import Layout

Gather = Callable[..., Crowd]

X = load_wine().data
PARAMS = DataCollaboration(n_clusters=3)
PARTS = simulation.split(X, Layout.lattice(2, 2), seed=1)


@pytest.mark.every_python
def test_http_gives_the_labels_of_the_simulation_bit_for_bit(gather: Gather) -> None:
    crowd = gather(PARAMS, PARTS)
    crowd.start()
    expected = crowd.expected()
    assert crowd.labels() == expected
    sizes = np.bincount(np.concatenate([expected[s] for s in ("r1c1", "r2c1")]))
    assert crowd.results["r1c1"].cluster_sizes is not None
    assert crowd.results["r1c1"].cluster_sizes.tolist() == sizes.tolist()


@pytest.mark.thorough
def test_the_analyst_is_killed_in_one_round_after_another(
    analyst: Analyst, gather: Gather
) -> None:
    """In every third; on command in every one."""
    apart = thorough(ci=3, nightly=1)
    crowd = gather(PARAMS, PARTS)
    crowd.party("r2c2").enrol(PARTS.data["r2c2"])
    crowd.start("r1c1", "r1c2", "r2c1")
    wait_for(lambda: crowd.session.status().awaited_slots == ["r2c2"])
    analyst.kill(signal.SIGKILL)
    analyst.start()
    crowd.start("r2c2")
    seen = 0
    while crowd.session.status().state != "completed":
        status = crowd.session.status()
        if status.round >= seen + apart:
            seen = status.round
            analyst.kill(signal.SIGKILL)
            analyst.start()
        time.sleep(0.02)
    assert seen >= 3
    assert crowd.labels() == crowd.expected()


def test_a_party_forgets_all_but_its_disk_around_every_upload(
    gather: Gather, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies before each upload, continues from its disk, and dies before the receipt."""
    crowd = gather(PARAMS, PARTS)
    crowd.start("r1c2", "r2c1", "r2c2")
    deaths: set[tuple[int, str]] = set()
    while "r1c1" not in crowd.results:
        party = crowd.party("r1c1")
        monkeypatch.setattr(party, "_analyst", Dying(party._analyst, deaths))
        with suppress(Death):
            crowd.results["r1c1"] = party.run(PARTS.data["r1c1"])
    assert len(deaths) == 2 * crowd.session.status().round
    assert crowd.labels() == crowd.expected()


@pytest.mark.threat(20)
def test_other_rows_end_the_session_and_name_the_parties(gather: Gather) -> None:
    crowd = gather(PARAMS, PARTS)
    source = PARTS.data["r1c1"]
    others = ["somebody", *source.ids[1:]] if source.ids else []
    crowd.data = {
        **PARTS.data,
        "r1c1": MatrixSource(matrix(source), columns=source.columns, ids=others),
    }
    crowd.start()
    with pytest.raises(RowsNotAligned, match="r1c1, r1c2") as refusal:
        crowd.join()
    assert not any(name in refusal.value.detail for name in others if len(name) > 2)


class Death(BaseException):
    """Stands for SIGKILL: nothing catches it."""


class Dying:
    """A client that dies before and after each upload, once each."""

    def __init__(self, client: Any, deaths: set[tuple[int, str]]) -> None:
        self.client = client
        self.deaths = deaths

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def as_party(self, token: str) -> Dying:
        return Dying(self.client.as_party(token), self.deaths)

    def contribute(self, session: str, round_: int, *others: Any, **named: Any) -> Any:
        self.die_once(round_, "before it is sent")
        answer = self.client.contribute(session, round_, *others, **named)
        self.die_once(round_, "before the receipt is read")
        return answer

    def die_once(self, round_: int, moment: str) -> None:
        if (round_, moment) not in self.deaths:
            self.deaths.add((round_, moment))
            raise Death

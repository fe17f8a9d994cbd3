"""`omnifc` over real HTTP: the labels of the simulation, and of a round that was cut."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from sklearn.datasets import load_wine
from support.analyst_process import Analyst, Crowd, wait_for

from clustering_protocols import simulation
from clustering_protocols.common.errors import CoterieError, InvalidParameters
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.terms.terms import Layout

Gather = Callable[..., Crowd]

X = load_wine().data
VARIANTS = {
    "defaults": OmniFC(n_clusters=3),
    "landmarks": OmniFC(n_clusters=3, distances="landmarks"),
    "paper": OmniFC(
        n_clusters=3,
        segments=2,
        noise=1,
        algorithm="fuzzy_cmeans",
        scaling="minmax",
        hide_segments=False,
    ),
}


@pytest.mark.every_python
@pytest.mark.parametrize("name", VARIANTS)
def test_http_gives_the_labels_of_the_simulation_bit_for_bit(
    gather: Gather, name: str
) -> None:
    params = VARIANTS[name]
    parts = simulation.split(
        X, Layout.lattice(5 if params.segments == 2 else 3), seed=1
    )
    crowd = gather(params, parts)
    crowd.start()
    assert crowd.labels() == crowd.expected()


def test_the_analyst_is_killed_while_the_last_answer_is_awaited(
    analyst: Analyst, gather: Gather
) -> None:
    params = VARIANTS["defaults"]
    parts = simulation.split(X, Layout.lattice(3), seed=1)
    crowd = gather(params, parts)
    crowd.start()
    wait_for(lambda: crowd.session.status().round >= 5)
    analyst.kill(signal.SIGKILL)
    analyst.start()
    assert crowd.labels() == crowd.expected()


@pytest.mark.threat(70)
def test_a_million_rows_are_refused_with_the_bytes(
    analyst: Analyst, home: Path
) -> None:
    params = OmniFC(n_clusters=3, max_rows=1_000_000)
    with (
        analyst.coordinator(home) as coordinator,
        pytest.raises(InvalidParameters, match=r"takes 4\d{12} bytes"),
    ):
        coordinator.create_session(
            "s", params, Layout.lattice(3), session_id="s", seed=7
        )


def test_a_roster_beyond_max_rows_ends_the_session(
    gather: Gather,
) -> None:
    crowd = gather(
        OmniFC(n_clusters=3, max_rows=100),
        simulation.split(X, Layout.lattice(3), seed=1),
    )
    crowd.start()
    with pytest.raises(CoterieError, match="max_rows is 100"):
        crowd.join()

"""`omnifc` over real HTTP: the labels of the simulation, and of a round that was cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.analyst_process import Analyst

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.terms.terms import Layout


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

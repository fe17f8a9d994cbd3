"""`dc` on real data over real HTTP: the labels of the simulation, whatever happens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sklearn.datasets import load_wine
from support.analyst_process import Crowd

from clustering_protocols import simulation
from clustering_protocols.common.errors import RowsNotAligned
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.terms.terms import Layout

Gather = Callable[..., Crowd]

X = load_wine().data
PARAMS = DataCollaboration(n_clusters=3)
PARTS = simulation.split(X, Layout.lattice(2, 2), seed=1)


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

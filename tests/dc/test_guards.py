"""What `dc` refuses of a party: a second upload, and columns that no feature made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

from clustering_protocols import engine, packets
from clustering_protocols.data import MatrixSource
from clustering_protocols.errors import (
    GuardRefused,
    InvalidArray,
    ProtocolFailed,
)
from clustering_protocols.protocols.dc import DataCollaboration, messages
from clustering_protocols.simulation import Session
from clustering_protocols.terms import Layout

FEATURES, ROWS = 3, 30
FIRST, SECOND = "r1c1", "r2c1"
LAYOUT = Layout.lattice(2, 1)
DATA = {
    slot: MatrixSource(np.random.default_rng(place).normal(size=(ROWS, FEATURES)))
    for place, slot in enumerate(LAYOUT.names)
}


def at_the_upload(**params: Any) -> Session:
    given = DataCollaboration(n_clusters=2, scaling="center", **params)
    running = Session(given, LAYOUT, DATA, seed=5)
    running.until(messages.Project)
    return running


def test_a_second_upload_is_refused() -> None:
    running = at_the_upload()
    task = running.open.tasks[FIRST]
    running.memories[FIRST] = running.answer(FIRST, task).memory
    with pytest.raises(ProtocolFailed, match="second upload"):
        running.answer(FIRST, task)


def given(running: Session, width: int) -> dict[str, bytes]:
    """The answers to the open round, the first party's of so many columns."""
    answers = {slot: running.answer(slot).contribution for slot in LAYOUT.names}
    own = packets.read(answers[FIRST])
    r = own.arrays["anchors"].shape[0]
    rng = np.random.default_rng(9)
    wide = messages.Projections(
        rows=rng.normal(size=(ROWS, width)), anchors=rng.normal(size=(r, width))
    )
    return {**answers, FIRST: packets.write(own.address, wide)}


def advance(running: Session, contributions: dict[str, bytes]) -> Any:
    here = running.open
    return engine.advance(running.agreement, here.state, here.tasks, contributions)


def test_as_many_columns_as_features_are_taken() -> None:
    running = at_the_upload()
    advance(running, given(running, FEATURES))


@pytest.mark.parametrize("width", [FEATURES + 1, 5000])
def test_more_columns_than_features_are_refused(width: int) -> None:
    running = at_the_upload()
    with pytest.raises(InvalidArray, match=f"of {width} dimensions; it has 3 features"):
        advance(running, given(running, width))


def test_a_transformer_that_adds_columns_is_refused_at_home() -> None:
    running = at_the_upload()
    own = PolynomialFeatures(2).fit(np.zeros((1, FEATURES)))
    party = engine.PartyEngine(
        agreement=running.agreement,
        slot=FIRST,
        entropy=running.entropies[FIRST],
        choices={"transformer": own, "allow_full_width": True},
    )
    known = (running.journals[FIRST], running.memories[FIRST])
    with pytest.raises(GuardRefused, match="makes 10 dimensions of 3 features"):
        party.reply(*known, running.open.tasks[FIRST], DATA[FIRST])

"""A rehearsal: what would be sent, read before anybody joins."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.examples import begun, dealt
from support.terminal import Terminal, opened

from clustering_protocols import catalogue, simulation
from clustering_protocols.contract import Params
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.terms import Layout
from party_sdk.lab.rehearsal import rehearse
from party_sdk.party.party_index import slots_of

ROWS = np.random.default_rng(5).normal(size=(60, 4)) + np.repeat(
    [[0], [9], [18]], 20, 0
)


@pytest.mark.parametrize(
    "params",
    [
        DataCollaboration(n_clusters=3, dimensions="all_but_one"),
        LosslessFederated(n_clusters=3),
    ],
    ids=["dc", "llf"],
)
@pytest.mark.quick(2)
def test_what_is_told_is_what_a_session_of_these_terms_sends(
    params: Params,
) -> None:
    layout, parts = Layout.lattice(3), simulation.split(ROWS, Layout.lattice(3), 7)
    session = simulation.Session(params, layout, parts.data, 7)
    slot, played = layout.names[0], session.run_to_end()
    told = rehearse(session.session.terms, slot, parts.data[slot])
    sent = [Inspection.of(m.payload, {}) for m in played.sent if m.sender == slot]

    def forms(found: list[Inspection]) -> set[Any]:
        return {
            (each.stage, each.kind, array.name, array.shape, array.dtype)
            for each in found
            for array in each.arrays
        } | {
            (each.stage, envelope.kind, envelope.receiver)
            for each in found
            for envelope in each.envelopes
        }

    assert forms([each.example for each in told.left]) == forms(sent)
    assert told.n_rows == parts.data[slot].n_rows
    assert sum(each.n for each in told.left) > 0


@pytest.mark.parametrize("name", sorted(catalogue.catalogue()))
@pytest.mark.parametrize(
    "which",
    [
        pytest.param(slice(1), id="the first"),
        pytest.param(
            slice(1, None), id="the others", marks=pytest.mark.thorough(only=True)
        ),
    ],
)
def test_every_example_of_every_protocol_can_be_rehearsed(
    name: str, which: slice
) -> None:
    for example in catalogue.protocol(name).reference().examples()[which]:
        played = begun(example, 3, simulation.Session)
        slot = example.layout.names[-1]
        data = dealt(example, 3).data[slot]
        told = rehearse(played.session.terms, slot, data)
        assert told.n_bytes > 0


def test_the_command_sends_the_question_alone(online: Terminal, rows: Path) -> None:
    session, invitation = opened(online)
    data = ("--data", rows, "--id-column", "id")
    said = online("party", "check", "--rehearse", invitation, *data)
    assert "Nothing was sent." in said.stdout
    assert "12 rows" in said.stdout
    assert "p01" not in said.stdout
    assert "has not joined" in online("session", "show", session).stdout
    assert slots_of(Path(online.environment["COTERIE_HOME"]), session) == []
    document = online.json("party", "check", "--rehearse", invitation, *data)
    assert document["n_rows"] == 12
    online("party", "check", "--rehearse", *data, expect=2)

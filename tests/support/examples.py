"""Examples of protocols, split into the tables of parties."""

from collections.abc import Mapping
from typing import Any, TypeVar

import pytest

from clustering_protocols import engine, simulation
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import Example, Params
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.terms.terms import Layout

_Kind = TypeVar("_Kind", bound=simulation.Session)


def dealt(example: Example[Any], seed: int) -> simulation.Split:
    return simulation.split(
        example.X,
        example.layout,
        seed,
        missing=example.missing,
        dictionary=example.sections.get("dictionary"),
    )


def refuse_first_tasks(
    params: Params, layout: Layout, data: Mapping[str, DataSource], seed: int, why: str
) -> None:
    """Let an analyst begin with a forbidden roster; every party must refuse."""
    agreement = simulation.build_agreement(params, layout, data, seed)
    with pytest.MonkeyPatch.context() as lying:
        lying.setattr("clustering_protocols.engine.analyst.check_roster", id)
        opened = engine.begin_session(agreement)
    assert isinstance(opened, engine.Opened)
    keys = simulation.derive_entropies(seed, "simulation", layout.names)
    for slot in layout.names:
        party = engine.PartyEngine(agreement=agreement, slot=slot, entropy=keys[slot])
        with pytest.raises(ProtocolFailed, match=why):
            party.reply(engine.Journal(), Memory(), opened.tasks[slot], data[slot])


def begun(example: Example[Any], seed: int, kind: type[_Kind], **more: Any) -> _Kind:
    """Return a session of an example before its first round."""
    return kind(
        example.params,
        example.layout,
        dealt(example, seed).data,
        seed,
        **example.sections,
        **more,
    )

"""Who takes part in a simulated session, and the agreement between them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from clustering_protocols import enrolment, registry
from clustering_protocols.contract import Params
from clustering_protocols.data import DataSource
from clustering_protocols.randomness import length_prefixed
from clustering_protocols.registry import Proposal
from clustering_protocols.terms import About, Layout, Member

ANALYST = "analyst"
COORDINATOR = "coordinator"


def entropies(seed: int, session: str, names: Sequence[str]) -> dict[str, bytes]:
    """Return 32 bytes per slot, and for the coordinator, that a seed stands for."""
    return {
        name: hashlib.sha256(
            length_prefixed("coterie/simulation/1", seed, session, name)
        ).digest()
        for name in (COORDINATOR, *names)
    }


def member(
    session: str, slot: str, entropies: Mapping[str, bytes], source: DataSource
) -> Member:
    """Return a slot's line of the roster.

    Parameters
    ----------
    entropies : mapping of role to bytes
        Of the slot, and of the coordinator whose invitation it answers.
    source : DataSource
        Its numbers of rows and columns stand in the roster.
    """
    return enrolment.enrol(
        enrolment.session_secret(entropies[COORDINATOR], session),
        session,
        slot,
        entropies[slot],
        source.n_rows,
        len(source.columns),
    )


def agree(
    params: Params,
    layout: Layout,
    data: Mapping[str, DataSource],
    seed: int,
    session: str = "simulation",
) -> bytes:
    """Return the agreement of a session that all slots of the layout have joined.

    Parameters are those of :class:`~clustering_protocols.simulation.Session`.

    Raises
    ------
    CoterieError
        Where the coordinator could not draw up the terms, or a party not join.
    """
    for source in data.values():
        params.check_rows(source)
    proposal = Proposal(
        about=About(title=session),
        protocol=registry.name_of(params),
        params=params.model_dump(mode="json"),
        layout=layout,
        seed=seed,
    )
    keys = entropies(seed, session, layout.names)
    roster = {
        slot: member(session, slot, keys, source) for slot, source in data.items()
    }
    return enrolment.agree(registry.draw_up(session, proposal), roster)

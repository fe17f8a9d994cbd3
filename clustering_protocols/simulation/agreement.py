"""Who takes part in a simulated session, and the agreement between them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from clustering_protocols import session_terms
from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.shared_stages.row_selection import Arrival, arrive
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.terms import About, Identities, Layout, read_terms

ANALYST = "analyst"
COORDINATOR = "coordinator"
SIMULATION = "simulation"


def entropies(seed: int, session: str, names: Sequence[str]) -> dict[str, bytes]:
    """Return 32 bytes per slot, and for the coordinator, that a seed stands for."""
    return {
        name: hashlib.sha256(
            length_prefixed("coterie/simulation/1", seed, session, name)
        ).digest()
        for name in (COORDINATOR, *names)
    }


def member(
    terms: bytes, slot: str, entropies: Mapping[str, bytes], source: DataSource
) -> Member:
    """Return a slot's line of the roster.

    terms: the exact bytes of the session's terms.
    entropies: of the slot, and of the coordinator whose invitation it answers.
    source: what arrives of the slot's table: its numbers of rows and columns stand in
        the roster.
    """
    agreed = read_terms(terms)
    return roster_entries.enrol(
        roster_entries.session_secret(entropies[COORDINATOR], agreed.session),
        terms,
        slot,
        entropies[slot],
        Institution.derive(entropies[slot]),
        n_rows=source.n_rows,
        n_columns=len(agreed.columns(slot, source.columns)),
    )


def agree(
    params: Params,
    layout: Layout,
    data: Mapping[str, DataSource],
    seed: int,
    **given: Any,
) -> bytes:
    """Return the agreement of a session that all slots of the layout have joined.

    Parameters are those of :func:`agree_and_join`.

    Raises CoterieError where the coordinator could not draw up the terms, or a party
        not join.
    """
    return agree_and_join(params, layout, data, seed, **given)[0]


def agree_and_join(
    params: Params,
    layout: Layout,
    data: Mapping[str, DataSource],
    seed: int,
    *,
    session: str = SIMULATION,
    analyst: str | None = None,
    **sections: Any,
) -> tuple[bytes, dict[str, Arrival]]:
    """Return the same, and what arrived of each table.

    session: its id.
    analyst: the key that the terms name, as those of a session at that analyst do.
    **sections: what else terms may say, by name; see
        :class:`~clustering_protocols.terms.terms.SessionRequest`.
    """
    keys = entropies(seed, session, layout.names)
    own = Institution.derive(keys[COORDINATOR]).key
    asked = {
        "about": About(title=session),
        "identities": Identities(coordinator=own, analyst=analyst),
        "seed": seed,
        **sections,
    }
    request = session_terms.build_request(params, layout, **asked)
    terms = session_terms.draw_up(session, request, simulated=True)
    agreed = read_terms(terms)
    arrivals = {slot: arrive(agreed, params, slot, own) for slot, own in data.items()}
    roster = {
        slot: member(terms, slot, keys, arrival.data)
        for slot, arrival in arrivals.items()
    }
    return roster_entries.agree(terms, roster), arrivals

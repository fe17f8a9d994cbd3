"""Who takes part in a simulated session, and the agreement between them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np
from typing_extensions import Unpack

from clustering_protocols import enrolment, registry
from clustering_protocols.agreements import Member
from clustering_protocols.contract import Params
from clustering_protocols.data import DataSource
from clustering_protocols.evaluation import Evaluation
from clustering_protocols.preparation.arrival import Arrival, arrive
from clustering_protocols.preparation.jitter import JitteredRows
from clustering_protocols.randomness import length_prefixed
from clustering_protocols.recipe import Preparation
from clustering_protocols.registry import Proposal
from clustering_protocols.release import Release
from clustering_protocols.schema import Schema
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms import About, Identities, Layout, Terms, read_terms

ANALYST = "analyst"
COORDINATOR = "coordinator"


SIMULATION = "simulation"


class Given(TypedDict, total=False):
    """What else a simulated session may be given.

    session
        Its id.
    analyst
        The key that the terms name, as those of a session at that analyst do.
    dictionary, preparation
        Of each column group.
    evaluation
        Of a session of several runs.
    release
        What is let out beside labels.
    """

    session: str
    analyst: str | None
    dictionary: Sequence[Schema] | None
    preparation: Sequence[Preparation] | None
    evaluation: Evaluation | None
    release: Release | None


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

    Parameters
    ----------
    terms : bytes
        The exact bytes of the session's terms.
    entropies : mapping of role to bytes
        Of the slot, and of the coordinator whose invitation it answers.
    source : DataSource
        What arrives of the slot's table: its numbers of rows and columns stand in the
        roster.
    """
    agreed = read_terms(terms)
    return enrolment.enrol(
        enrolment.session_secret(entropies[COORDINATOR], agreed.session),
        terms,
        slot,
        entropies[slot],
        Institution.drawn(entropies[slot]),
        n_rows=source.n_rows,
        n_columns=len(agreed.columns(slot, source.columns)),
    )


def agree(
    params: Params,
    layout: Layout,
    data: Mapping[str, DataSource],
    seed: int,
    **given: Unpack[Given],
) -> bytes:
    """Return the agreement of a session that all slots of the layout have joined.

    Parameters are those of :class:`~clustering_protocols.simulation.Session`.

    Raises
    ------
    CoterieError
        Where the coordinator could not draw up the terms, or a party not join.
    """
    return joined(params, layout, data, seed, **given)[0]


def joined(
    params: Params,
    layout: Layout,
    data: Mapping[str, DataSource],
    seed: int,
    **given: Unpack[Given],
) -> tuple[bytes, dict[str, Arrival]]:
    """Return the same, and what arrived of each table."""
    session = given.get("session", SIMULATION)
    dictionary, preparation = given.get("dictionary"), given.get("preparation")
    keys = entropies(seed, session, layout.names)
    proposal = Proposal(
        about=About(title=session),
        protocol=registry.name_of(params),
        params=params.model_dump(mode="json"),
        layout=layout,
        identities=Identities(
            coordinator=Institution.drawn(keys[COORDINATOR]).key,
            analyst=given.get("analyst"),
        ),
        dictionary=None if dictionary is None else tuple(dictionary),
        preparation=None if preparation is None else tuple(preparation),
        evaluation=given.get("evaluation"),
        release=given.get("release"),
        seed=seed,
    )
    terms = registry.draw_up(session, proposal)
    agreed = read_terms(terms)
    arrivals = {slot: arrive(agreed, params, slot, own) for slot, own in data.items()}
    roster = {
        slot: member(terms, slot, keys, arrival.data)
        for slot, arrival in arrivals.items()
    }
    if params.jitters:
        arrivals = {
            slot: replace(
                arrival, data=_jittered(agreed, slot, keys[slot], arrival.data)
            )
            for slot, arrival in arrivals.items()
        }
    return enrolment.agree(terms, roster), arrivals


def _jittered(terms: Terms, slot: str, key: bytes, data: DataSource) -> DataSource:
    """Return rows moved as a home does that knows them by their places."""
    schema = terms.dictionary_of(slot)
    if schema is None:
        return data
    words = np.arange(data.n_rows, dtype=np.uint64)
    return JitteredRows(source=data, schema=schema, key=key, words=words)

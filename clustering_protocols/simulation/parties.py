"""The parties of a session: who they are, what they know, what they would answer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from clustering_protocols import engine, session_terms
from clustering_protocols.contract import Outcome, Params, SessionContext
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.published import Selection
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.row_selection import Arrival, arrive
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.terms import About, Identities, Layout, read_terms

R = TypeVar("R", bound=Record)


class PendingTask(NamedTuple):
    """A task that a party was told, and what it knew before."""

    task: bytes
    journal: engine.Journal
    before: Memory


class Parties:
    """All parties of an agreement, and what each of them remembers.

    arrivals: what arrived of each party's own table.

    data: what arrived of each table, as the engine sees it.
    asked: what each party was told last.
    """

    def __init__(
        self,
        agreement: bytes,
        entropies: Mapping[str, bytes],
        arrivals: Mapping[str, Arrival],
        choices: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.agreement = agreement
        self.entropies = entropies
        self.arrivals = arrivals
        self.data = {slot: each.data for slot, each in self.arrivals.items()}
        self.choices = choices
        self.memories = {slot: Memory() for slot in self.session.slots}
        self.journals = {slot: engine.Journal() for slot in self.session.slots}
        self.asked: dict[str, PendingTask] = {}

    @property
    def session(self) -> SessionContext:
        """Return what follows from the agreement."""
        return engine.load(self.agreement)[0]

    def party(self, slot: str) -> engine.PartyEngine:
        """Return a party as it is between rounds: everything but memory and data."""
        return engine.PartyEngine(
            agreement=self.agreement,
            slot=slot,
            entropy=self.entropies[slot],
            choices=self.choices.get(slot, {}),
        )

    def recall(self, slot: str, kind: type[R]) -> R:
        """Return what a party remembers of a kind; :class:`KeyError` if nothing."""
        found = self.memories[slot].get(kind)
        if found is None:
            raise KeyError(kind.kind)
        return found

    def admit_task(self, slot: str, task: bytes) -> engine.TaskOutcome:
        """Return a party's answer to a task; keep its journal.

        A party that refuses an analyst which broke the rules stays stopped.
        """
        try:
            answer = self.reply(slot, task)
        except engine.FINAL as error:
            self.journals[slot] = self.journals[slot].refuse(error)
            raise
        self.journals[slot] = answer.journal
        return answer

    def reply(self, slot: str, task: bytes) -> engine.TaskOutcome:
        """Return a party's answer to a task; nothing that it keeps here changes."""
        known = (self.journals[slot], self.memories[slot])
        return self.party(slot).reply(*known, task, self.data[slot])

    def replay(self, slot: str) -> engine.TaskOutcome:
        """Return a party's answer to the task it was told last, from what it knew then.

        The contribution is the same bytes but for envelopes: sealing one takes
        randomness that no entropy stands for. The memory here does not change.
        """
        last = self.asked[slot]
        known = (last.journal, last.before)
        return self.party(slot).reply(*known, last.task, self.data[slot])

    def kill(self, *slots: str) -> None:
        """Let parties (all by default) forget everything but their bytes.

        Their memory goes through its byte form. What this process has made of the
        agreement is forgotten as well, for every role.
        """
        for slot in slots or self.memories:
            memory = self.memories[slot]
            entries = {k: np.frombuffer(v, np.uint8) for k, v in memory.entries.items()}
            _, arrays = codec.decode(codec.encode({}, entries))
            self.memories[slot] = Memory(
                {kind: array.tobytes() for kind, array in arrays.items()}
            )
            self.journals[slot] = engine.Journal.decode(self.journals[slot].encode())
        engine.load.cache_clear()

    def conclude(self, results: Mapping[str, bytes]) -> dict[str, Outcome]:
        """Return what each party gets from its result."""
        return {
            slot: self.outcome(slot, result, self.data[slot])
            for slot, result in results.items()
        }

    def outcome(self, slot: str, result: bytes, data: DataSource | None) -> Outcome:
        """Return what one party gets from a result, with or without its rows.

        It is in the order of the party's own table; ``data`` is what arrived of it.
        """
        known = (self.journals[slot], self.memories[slot])
        outcome = self.party(slot).conclude(*known, result, data)
        return self.arrivals[slot].put_back(outcome)

    def list_travelled_rows(self, slot: str) -> IntArray:
        """Return a slot's own rows in the order in which they travelled."""
        memory = self.memories[slot]
        selection, order = memory.get(Selection), memory.get(RowOrder)
        rows = selection.rows if selection else np.arange(self.data[slot].n_rows)
        rows = rows if order is None else rows[order.order]
        own = self.arrivals[slot].rows
        return rows if own is None else own[rows]


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

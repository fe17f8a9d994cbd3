"""A session in which one process plays all roles, one round at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from clustering_protocols import engine, session_terms
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import (
    Outcome,
    Params,
    PartyContext,
    SessionContext,
    Trace,
)
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.published import Selection
from clustering_protocols.engine import packets
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.row_selection import AdmittedTable, admit_table
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.terms import About, Identities, Layout, read_terms

R = TypeVar("R", bound=Record)

Timer = Callable[[], float]
ANALYST = "analyst"
COORDINATOR = "coordinator"
SIMULATION = "simulation"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """A message that was sent in a session: a task or a contribution."""

    sender: str
    receiver: str
    round: int
    attempt: int
    payload: bytes = field(repr=False)


@dataclass(slots=True, kw_only=True)
class RoleCost:
    """The computing time of a role, and the number of bytes that it sent."""

    seconds: float = 0.0
    sent_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationResult:
    """The outcomes, messages and costs of a session.

    outcomes: mapping of slot to its outcome, in the order of the slot's own rows.
    orders: mapping of slot to int64 array; ``orders[slot][k]`` is the slot's row that
        was sent at position k.
    summary: the summary of the result that the coordinator receives.
    figures: the figures of each run that the coordinator receives.
    chosen: the number of the run to which the outcomes belong.
    trace: the input of the pooled reference computation.
    sent: all messages, in the order in which they were sent.
    """

    outcomes: Mapping[str, Outcome] = field(repr=False)
    orders: Mapping[str, IntArray] = field(repr=False)
    summary: Record | None
    figures: Sequence[Figures]
    chosen: int
    trace: Trace = field(repr=False)
    sent: Sequence[SentMessage] = field(repr=False)
    costs: Mapping[str, RoleCost]
    rounds: int


def derive_entropies(seed: int, session: str, names: Sequence[str]) -> dict[str, bytes]:
    """Derive 32 bytes of entropy from a seed, for each slot and the coordinator."""
    return {
        name: hashlib.sha256(
            length_prefixed("coterie/simulation/1", seed, session, name)
        ).digest()
        for name in (COORDINATOR, *names)
    }


def enrol(
    terms: bytes, slot: str, entropies: Mapping[str, bytes], source: DataSource
) -> Member:
    """Return a slot's entry in the roster.

    terms: the exact bytes of the session's terms.
    entropies: mapping of name to entropy, for the slot and the coordinator.
    source: the participating rows of the slot's table, which determine the numbers of
        rows and columns in the roster.
    """
    parsed = read_terms(terms)
    return roster_entries.create_roster_line(
        roster_entries.derive_session_secret(entropies[COORDINATOR], parsed.session),
        terms,
        slot,
        entropies[slot],
        Institution.derive(entropies[slot]),
        n_rows=source.n_rows,
        n_columns=len(parsed.columns(slot, source.columns)),
    )


def build_agreement(
    params: Params,
    layout: Layout,
    data: Mapping[str, DataSource],
    seed: int,
    **options: Any,
) -> bytes:
    """Return the agreement of a session that all slots of the layout have joined.

    The parameters are those of :func:`agree_and_join`.

    Raises CoterieError if the terms are invalid, or if a party could not join.
    """
    return agree_and_join(params, layout, data, seed, **options)[0]


def agree_and_join(
    params: Params,
    layout: Layout,
    data: Mapping[str, DataSource],
    seed: int,
    *,
    session: str = SIMULATION,
    analyst: str | None = None,
    **sections: Any,
) -> tuple[bytes, dict[str, AdmittedTable]]:
    """Return the agreement, and the part of each party's table that the session uses.

    session: the id of the session.
    analyst: the analyst's public key (hex) in the terms; None for terms without one.
    **sections: further sections of the terms, by name; see
        :class:`~clustering_protocols.terms.terms.SessionRequest`.
    """
    keys = derive_entropies(seed, session, layout.names)
    coordinator = Institution.derive(keys[COORDINATOR]).key
    request_fields = {
        "about": About(title=session),
        "identities": Identities(coordinator=coordinator, analyst=analyst),
        "seed": seed,
        **sections,
    }
    request = session_terms.build_request(params, layout, **request_fields)
    terms = session_terms.draw_up_terms(session, request)
    parsed = read_terms(terms)
    tables = {
        slot: admit_table(parsed, params, slot, own) for slot, own in data.items()
    }
    roster = {
        slot: enrol(terms, slot, keys, table.data) for slot, table in tables.items()
    }
    return roster_entries.build_agreement(terms, roster), tables


class Session:
    """The analyst and the parties of a session whose first round has been opened.

    Every step is a method, so that a subclass can deviate from the protocol: for example,
    by an analyst that forges tasks, or by parties that answer in another order.

    params: the parameters of any protocol in the catalogue.
    seed: the seed in the terms, from which all entropy is derived as well.
    choices: the decisions of each party; see :class:`.PartyContext`.
    timer: a function that returns the time in seconds, for measuring costs.
    runs_on: the engine on which the analyst computes over blocks of rows.
    **options: see :func:`agree_and_join`.

    entropies: the 32 bytes of entropy of each party and of the coordinator.
    tables: the part of each party's table that the session uses.
    data: the participating rows of each party.
    memories: the memory of each party after the last round that was not void.
    journals: the journal of each party, which a void attempt does not reset.
    move: the open round, the choice of a run that is due, or the end of the session.
    last: the round that was opened last.
    profiles: the cluster profiles for the coordinator, as JSON values.
    sent: all tasks and contributions, in the order in which they were sent.
    stored: the payloads that the analyst stores in addition to the agreement: states,
        tasks, contributions, results and the summary.

    Raises CoterieError if a session over HTTP would fail before its first task.
    """

    def __init__(
        self,
        params: Params,
        layout: Layout,
        data: Mapping[str, DataSource],
        seed: int,
        *,
        choices: Mapping[str, Mapping[str, Any]] | None = None,
        timer: Timer = lambda: 0.0,
        runs_on: Engine = ONE_THREAD,
        **options: Any,
    ) -> None:
        self.agreement, self.tables = agree_and_join(
            params, layout, data, seed, **options
        )
        session = options.get("session", SIMULATION)
        self.entropies = derive_entropies(seed, session, layout.names)
        self.data = {slot: table.data for slot, table in self.tables.items()}
        self.choices = choices or {}
        self.memories = {slot: Memory() for slot in layout.names}
        self.journals = {slot: engine.Journal() for slot in layout.names}
        self.timer = timer
        self.runs_on = runs_on
        self.last: engine.Opened | None = None
        self.profiles: list[dict[str, Any]] = []
        self.sent: list[SentMessage] = []
        self.stored: list[bytes] = []
        self.costs = {role: RoleCost() for role in (ANALYST, *layout.names)}
        with self.measure_time(ANALYST):
            move = engine.begin_session(self.agreement)
        self.move = self.store_move(move)

    # State

    @property
    def session(self) -> SessionContext:
        """Return the context of the session, as derived from the agreement."""
        return engine.load_session(self.agreement)[0]

    @property
    def is_over(self) -> bool:
        """Return whether the session has ended."""
        return isinstance(self.move, engine.Closed)

    @property
    def open(self) -> engine.Opened:
        """Return the open round; raise :class:`RuntimeError` if no round is open."""
        if not isinstance(self.move, engine.Opened):
            raise RuntimeError("The session is over.")  # noqa: TRY004  no wrong type
        return self.move

    @property
    def final_step(self) -> engine.Closed:
        """Return the last move; raise RuntimeError if the session has not ended."""
        if not isinstance(self.move, engine.Closed):
            raise RuntimeError("The session continues.")  # noqa: TRY004  no wrong type
        return self.move

    @property
    def conclusion(self) -> engine.Conclusion:
        """Return the figures of all runs; raise RuntimeError before the last round."""
        if self.last is None or self.last.conclusion is None:
            raise RuntimeError("The last round was not opened yet.")
        return self.last.conclusion

    @property
    def received_messages(self) -> list[SentMessage]:
        """Return the messages that the analyst received, in order."""
        return [message for message in self.sent if message.receiver == ANALYST]

    def party(self, slot: str) -> engine.PartyEngine:
        """Return the engine of a party, which holds neither its memory nor its data."""
        return engine.PartyEngine(
            agreement=self.agreement,
            slot=slot,
            entropy=self.entropies[slot],
            choices=self.choices.get(slot, {}),
        )

    def recall(self, slot: str, kind: type[R]) -> R:
        """Return a record from a party's memory; raise :class:`KeyError` if it has none."""
        record = self.memories[slot].get(kind)
        if record is None:
            raise KeyError(kind.kind)
        return record

    def restart_parties(self, *slots: str) -> None:
        """Restart parties, by default all of them, from their encoded memory and journal.

        Cached agreements are dropped as well.
        """
        for slot in slots or self.memories:
            memory = self.memories[slot]
            entries = {k: np.frombuffer(v, np.uint8) for k, v in memory.entries.items()}
            _, arrays = codec.decode(codec.encode({}, entries))
            self.memories[slot] = Memory(
                {kind: array.tobytes() for kind, array in arrays.items()}
            )
            self.journals[slot] = engine.Journal.decode(self.journals[slot].encode())
        engine.load_session.cache_clear()

    def context(self, slot: str) -> PartyContext:
        """Return a party's context in the last round, which shows what it can read."""
        last, party = self.last or self.open, self.party(slot)
        journal, memory = self.journals[slot], self.memories[slot]
        if slot in last.tasks:
            journal = party.follow_transcript(journal, last.tasks[slot])
        return party.context(journal, memory, last.stage, last.round, last.attempt)

    def answer(self, slot: str, task: bytes | None = None) -> engine.TaskOutcome:
        """Return a party's answer to a task, by default to its task in the open round.

        Nothing is sent, and neither memory nor journal changes.
        """
        task = self.open.tasks[slot] if task is None else task
        state = (self.journals[slot], self.memories[slot])
        return self.party(slot).reply(*state, task, self.data[slot])

    # Rounds

    def choose(self, run: int | None) -> None:
        """Choose a run as coordinator; None stands for a deadline that has passed."""
        if not isinstance(self.move, engine.Choosing):
            raise RuntimeError("There is nothing to choose.")  # noqa: TRY004  no wrong type
        self.move = self.store_move(
            engine.choose_run(self.agreement, self.move.state, run)
        )

    def play_round(
        self,
        absent: Collection[str] = (),
        forged: Mapping[str, bytes] | None = None,
    ) -> None:
        """Let the parties answer the open round, and let the analyst continue.

        If the attempt is void, the memories stay as they were before the round.

        absent: the slots that do not fetch their tasks.
        forged: mapping of slot to the task that it receives instead of its own.

        Raises CoterieError if a role refuses to continue. The round then stays open,
            and no memory changes.
        """
        opened = self.open
        tasks = {**opened.tasks, **(forged or {})}
        tasks = {slot: tasks[slot] for slot in opened.tasks if slot not in absent}
        for slot, task in tasks.items():
            self.record_message(ANALYST, slot, task)
        answers = {
            slot: self.ask_party(slot, tasks[slot])
            for slot in self.answering_order(tasks)
        }
        self.advance({slot: answer.contribution for slot, answer in answers.items()})
        if not self.is_round_reopened(opened):
            self.memories |= {slot: answer.memory for slot, answer in answers.items()}

    def play_until(self, kind: type[Record], number: int | None = None) -> None:
        """Play rounds until a task of this kind (and this number, if given) is open."""
        while True:
            task = packets.parse(next(iter(self.open.tasks.values()))).header.record
            numbers = {None, task["values"].get("number")}
            if task["kind"] == kind.kind and number in numbers:
                return
            self.play_round()

    def run_to_end(self, forged: Mapping[str, bytes] | None = None) -> SimulationResult:
        """Play all remaining rounds; ``forged`` replaces tasks of the open round."""
        if forged:
            self.play_round(forged=forged)
        while not self.is_over:
            if isinstance(self.move, engine.Choosing):
                self.choose(None)
            self.play_round()
        return self.build_result()

    # The steps of a round

    def answering_order(self, slots: Collection[str]) -> Sequence[str]:
        """Return the slots in the order in which they are to answer."""
        return list(slots)

    def ask_party(self, slot: str, task: bytes) -> engine.TaskOutcome:
        """Return a party's answer to a task, and update its journal.

        A party that stops because the analyst broke the rules does not start again.

        Raises GuardRefused if the party's rows look wrong, unless its choices allow them.
        """
        with self.measure_time(slot):
            try:
                answer = self.answer(slot, task)
            except engine.FINAL as error:
                self.journals[slot] = self.journals[slot].stop_by_error(error)
                raise
        self.journals[slot] = answer.journal
        if answer.doubts:  # there is no operator who could confirm the rows
            raise GuardRefused(answer.doubts)
        return answer

    def advance(self, contributions: Mapping[str, bytes]) -> None:
        """Let the analyst process the contributions to the open round."""
        opened = self.open
        for slot, contribution in contributions.items():
            self.record_message(slot, ANALYST, contribution)
        self.stored += contributions.values()
        with self.measure_time(ANALYST):
            move = engine.advance_session(
                *(self.agreement, opened.state, opened.tasks, contributions),
                runs_on=self.runs_on,
            )
        self.move = self.store_move(move)

    def store_move(self, move: engine.Move) -> engine.Move:
        """Record the payloads of a move as stored by the analyst, and return the move."""
        if isinstance(move, engine.Opened):
            self.last = move
            self.profiles = move.profiles or self.profiles
        self.stored += move.payloads
        return move

    def is_round_reopened(self, before: engine.Opened) -> bool:
        """Return whether the same round is open again because its attempt was void."""
        now = self.move
        return isinstance(now, engine.Opened) and now.round == before.round

    def record_message(self, sender: str, receiver: str, payload: bytes) -> None:
        """Record a message that is sent in the open round, and its size."""
        self.costs[sender].sent_bytes += len(payload)
        self.sent.append(
            SentMessage(
                sender=sender,
                receiver=receiver,
                round=self.open.round,
                attempt=self.open.attempt,
                payload=payload,
            )
        )

    @contextmanager
    def measure_time(self, role: str) -> Iterator[None]:
        """Add the time that the ``with`` block takes to the cost of a role."""
        begin = self.timer()
        yield
        self.costs[role].seconds += self.timer() - begin

    # The end

    def outcomes(self) -> dict[str, Outcome]:
        """Return the outcome of each party, by slot."""
        return {
            slot: self.outcome_of(slot, result, self.data[slot])
            for slot, result in self.final_step.results.items()
        }

    def outcome_of(self, slot: str, result: bytes, data: DataSource | None) -> Outcome:
        """Return the outcome that a party derives from a result, in table order.

        data: the party's participating rows, or None if they are no longer available.
        """
        state = (self.journals[slot], self.memories[slot])
        outcome = self.party(slot).conclude(*state, result, data)
        return self.tables[slot].put_back(outcome)

    def list_sent_rows(self, slot: str) -> IntArray:
        """Return the row numbers of a slot's table in the order in which they were sent."""
        memory = self.memories[slot]
        selection, order = memory.get(Selection), memory.get(RowOrder)
        rows = selection.rows if selection else np.arange(self.data[slot].n_rows)
        rows = rows if order is None else rows[order.order]
        own = self.tables[slot].rows
        return rows if own is None else own[rows]

    def summary(self) -> Record | None:
        """Return the coordinator's summary, or None if the protocol has none."""
        summary = self.final_step.summary
        return engine.read_result(self.agreement, summary) if summary else None

    def build_result(self) -> SimulationResult:
        """Return the result of the simulation; raise RuntimeError if it has not ended."""
        summary, conclusion = self.summary(), self.conclusion
        run = conclusion.chosen if len(self.session.runs) > 1 else None
        memories = {
            slot: memory.scope_to_run(run) for slot, memory in self.memories.items()
        }
        return SimulationResult(
            outcomes=self.outcomes(),
            orders={slot: self.list_sent_rows(slot) for slot in self.memories},
            summary=summary,
            figures=[Figures(**values) for values in conclusion.figures],
            chosen=conclusion.chosen,
            trace=Trace(
                session=self.session.for_run(run), summary=summary, memories=memories
            ),
            sent=self.sent,
            costs=self.costs,
            rounds=self.last.round if self.last else 0,
        )


def run(
    params: Params,
    layout: Layout,
    data: Mapping[str, DataSource],
    seed: int,
    **options: Any,
) -> SimulationResult:
    """Run a session to its end; the parameters are those of :class:`Session`.

    If the terms let the coordinator choose among several runs, the simulation continues
    as if the deadline for this choice had passed.

    Raises CoterieError if a session over HTTP would end with this error.
    """
    return Session(params, layout, data, seed, **options).run_to_end()

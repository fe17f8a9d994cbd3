"""A session in which one process plays all roles, a round at a time."""

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
    """One message of a session."""

    sender: str
    receiver: str
    round: int
    attempt: int
    payload: bytes = field(repr=False)


@dataclass(slots=True, kw_only=True)
class Cost:
    """The time and traffic of a role."""

    seconds: float = 0.0
    sent_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationResult:
    """The outcomes, messages and costs of a session.

    outcomes: mapping of slot to its outcome, in the order of the slot's own rows.
    orders: mapping of slot to int64 array; ``orders[slot][k]`` is the slot's row that
        travelled at position k.
    summary: the summary of the result for the coordinator.
    figures: the figures of each run for the coordinator.
    chosen: the number of the run that the outcomes belong to.
    trace: input of the pooled reference.
    sent: every message, in order.
    """

    outcomes: Mapping[str, Outcome] = field(repr=False)
    orders: Mapping[str, IntArray] = field(repr=False)
    summary: Record | None
    figures: Sequence[Figures]
    chosen: int
    trace: Trace = field(repr=False)
    sent: Sequence[SentMessage] = field(repr=False)
    costs: Mapping[str, Cost]
    rounds: int


def derive_entropies(seed: int, session: str, names: Sequence[str]) -> dict[str, bytes]:
    """Return 32 bytes derived from a seed for each slot and the coordinator."""
    return {
        name: hashlib.sha256(
            length_prefixed("coterie/simulation/1", seed, session, name)
        ).digest()
        for name in (COORDINATOR, *names)
    }


def enrol(
    terms: bytes, slot: str, entropies: Mapping[str, bytes], source: DataSource
) -> Member:
    """Return a slot's line of the roster.

    terms: the exact bytes of the session's terms.
    entropies: those of the slot and of the coordinator, by name.
    source: the rows of the slot's table that take part; the roster has the numbers of
        these rows and of the columns.
    """
    parsed = read_terms(terms)
    return roster_entries.enrol(
        roster_entries.session_secret(entropies[COORDINATOR], parsed.session),
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

    Parameters are those of :func:`agree_and_join`.

    Raises CoterieError where the coordinator could not draw up the terms, or a party
        could not join.
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
    """Return the agreement, and the part of each table that the session admits.

    session: its id.
    analyst: the analyst's public key (hex) for the terms; None leaves it out.
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
    terms = session_terms.draw_up(session, request, simulated=True)
    parsed = read_terms(terms)
    tables = {
        slot: admit_table(parsed, params, slot, own) for slot, own in data.items()
    }
    roster = {
        slot: enrol(terms, slot, keys, table.data) for slot, table in tables.items()
    }
    return roster_entries.agree(terms, roster), tables


class Session:
    """Analyst and parties of one session; its first round is open.

    Every step is a method of its own, so that a subclass can deviate: with an analyst that
    hands out other tasks, or parties that answer in another order.

    params: parameters of any protocol of the catalogue.
    seed: the seed in the terms, and of all entropy of coordinator and parties.
    choices: what each party decides alone; see :class:`.PartyContext`.
    timer: a clock in seconds, to measure costs.
    runs_on: the analyst's engine, for kernels over blocks of rows.
    **options: see :func:`agree_and_join`.

    entropies: 32 bytes for every party, and for the coordinator.
    tables: the part of each party's table that the session admits.
    data: the rows of each table that take part, as the engine sees them.
    memories: the memory of each party after the last round that was not void.
    journals: the journal of each party; a void attempt does not reset it.
    move: the open round, the open choice, or the end.
    last: the round that was opened last.
    profiles: cluster profiles for the coordinator, as JSON values.
    sent: every task and contribution that travelled, in order.
    stored: the bytes that the analyst stores besides the agreement: states, tasks,
        contributions, results, summary.

    Raises CoterieError where a session over HTTP would not come to its first task.
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
        self.costs = {role: Cost() for role in (ANALYST, *layout.names)}
        with self.measure_time(ANALYST):
            move = engine.begin(self.agreement)
        self.move = self.store_move(move)

    # State

    @property
    def session(self) -> SessionContext:
        """Return the session that follows from the agreement."""
        return engine.load(self.agreement)[0]

    @property
    def is_over(self) -> bool:
        """Return whether the session has ended with results."""
        return isinstance(self.move, engine.Closed)

    @property
    def open(self) -> engine.Opened:
        """Return the open round; raise :class:`RuntimeError` after the end."""
        if not isinstance(self.move, engine.Opened):
            raise RuntimeError("The session is over.")  # noqa: TRY004  no wrong type
        return self.move

    @property
    def final_step(self) -> engine.Closed:
        """Return the last move; raise :class:`RuntimeError` before it."""
        if not isinstance(self.move, engine.Closed):
            raise RuntimeError("The session continues.")  # noqa: TRY004  no wrong type
        return self.move

    @property
    def conclusion(self) -> engine.Conclusion:
        """Return the figures of the runs; raise RuntimeError before the last round."""
        if self.last is None or self.last.conclusion is None:
            raise RuntimeError("The last round was not opened yet.")
        return self.last.conclusion

    @property
    def received_messages(self) -> list[SentMessage]:
        """Return the contributions that came to the analyst, in order."""
        return [message for message in self.sent if message.receiver == ANALYST]

    def party(self, slot: str) -> engine.PartyEngine:
        """Return a party between rounds, without its memory and data."""
        return engine.PartyEngine(
            agreement=self.agreement,
            slot=slot,
            entropy=self.entropies[slot],
            choices=self.choices.get(slot, {}),
        )

    def recall(self, slot: str, kind: type[R]) -> R:
        """Return a record of a party's memory; raise :class:`KeyError` if there is none."""
        record = self.memories[slot].get(kind)
        if record is None:
            raise KeyError(kind.kind)
        return record

    def reply(self, slot: str, task: bytes) -> engine.TaskOutcome:
        """Return a party's answer to a task; its memory and journal do not change."""
        state = (self.journals[slot], self.memories[slot])
        return self.party(slot).reply(*state, task, self.data[slot])

    def restart_parties(self, *slots: str) -> None:
        """Restart parties (all by default) from their stored bytes.

        Memory and journal are encoded and decoded, and every role's cached agreement is
        dropped.
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

    def context(self, slot: str) -> PartyContext:
        """Return a party's context in the last round, to read what it could read."""
        last, party = self.last or self.open, self.party(slot)
        journal, memory = self.journals[slot], self.memories[slot]
        if slot in last.tasks:
            journal = party.follow_transcript(journal, memory, last.tasks[slot])
        return party.context(journal, memory, last.stage, last.round, last.attempt)

    def answer(self, slot: str, task: bytes | None = None) -> engine.TaskOutcome:
        """Return a party's answer to a task, by default its own in the open round.

        Nothing is sent, and no memory changes.
        """
        return self.reply(slot, self.open.tasks[slot] if task is None else task)

    # Rounds

    def choose(self, run: int | None) -> None:
        """Let the coordinator choose a run; None lets the deadline pass."""
        if not isinstance(self.move, engine.Choosing):
            raise RuntimeError("There is nothing to choose.")  # noqa: TRY004  no wrong type
        self.move = self.store_move(engine.choose(self.agreement, self.move.state, run))

    def play_round(
        self,
        absent: Collection[str] = (),
        forged: Mapping[str, bytes] | None = None,
    ) -> None:
        """Let the parties answer the open round, and the analyst continue.

        An attempt that was void leaves the memories as they were before the round.

        absent: slots that do not fetch their task.
        forged: tasks that a slot receives instead of its own.

        Raises CoterieError where a role refuses; the round stays open, and no memory
            changes.
        """
        opened = self.open
        tasks = self.tasks() | dict(forged or {})
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
        """Play rounds with everybody up to a task of this kind (and number, if given)."""
        while True:
            task = packets.read(next(iter(self.open.tasks.values()))).header.record
            numbers = {None, task["values"].get("number")}
            if task["kind"] == kind.kind and number in numbers:
                return
            self.play_round()

    def run_to_end(self, forged: Mapping[str, bytes] | None = None) -> SimulationResult:
        """Play all rounds with everybody; ``forged`` replaces tasks of the open round."""
        if forged:
            self.play_round(forged=forged)
        while not self.is_over:
            if isinstance(self.move, engine.Choosing):
                self.choose(None)
            self.play_round()
        return self.build_result()

    # The steps of a round

    def tasks(self) -> dict[str, bytes]:
        """Return the tasks that the analyst hands out in the open round, by slot."""
        return dict(self.open.tasks)

    def answering_order(self, slots: Collection[str]) -> Sequence[str]:
        """Return the slots in the order in which they answer."""
        return list(slots)

    def ask_party(self, slot: str, task: bytes) -> engine.TaskOutcome:
        """Return a party's answer to a task, and keep its journal.

        A party that refuses an analyst which broke the rules stays stopped.

        Raises GuardRefused if its rows look wrong, unless its choices allow them.
        """
        with self.measure_time(slot):
            try:
                answer = self.reply(slot, task)
            except engine.FINAL as error:
                self.journals[slot] = self.journals[slot].stop_by_error(error)
                raise
        self.journals[slot] = answer.journal
        if answer.doubts:  # no operator confirms that the rows are right
            raise GuardRefused(answer.doubts)
        return answer

    def advance(self, contributions: Mapping[str, bytes]) -> None:
        """Let the analyst receive contributions to the open round, and continue."""
        opened = self.open
        for slot, contribution in contributions.items():
            self.record_message(slot, ANALYST, contribution)
        self.stored += contributions.values()
        with self.measure_time(ANALYST):
            move = engine.advance(
                *(self.agreement, opened.state, opened.tasks, contributions),
                runs_on=self.runs_on,
            )
        self.move = self.store_move(move)

    def store_move(self, move: engine.Move) -> engine.Move:
        """Let the analyst store the payloads of a move; return the move."""
        if isinstance(move, engine.Opened):
            self.last = move
            self.profiles = move.profiles or self.profiles
        self.stored += move.payloads
        return move

    def is_round_reopened(self, before: engine.Opened) -> bool:
        """Return whether this round is open again: its attempt was void."""
        now = self.move
        return isinstance(now, engine.Opened) and now.round == before.round

    def record_message(self, sender: str, receiver: str, payload: bytes) -> None:
        """Record a message of the open round."""
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
        """Add the time that the block takes to a role's cost."""
        begin = self.timer()
        yield
        self.costs[role].seconds += self.timer() - begin

    # The end

    def outcomes(self) -> dict[str, Outcome]:
        """Return the outcome of each party."""
        return {
            slot: self.outcome_of(slot, result, self.data[slot])
            for slot, result in self.final_step.results.items()
        }

    def outcome_of(self, slot: str, result: bytes, data: DataSource | None) -> Outcome:
        """Return the outcome that one party derives from a result, with or without rows.

        Its order is that of the party's own table; ``data`` are the rows that take part.
        """
        state = (self.journals[slot], self.memories[slot])
        outcome = self.party(slot).conclude(*state, result, data)
        return self.tables[slot].put_back(outcome)

    def list_travelled_rows(self, slot: str) -> IntArray:
        """Return a slot's own rows in the order in which they travelled."""
        memory = self.memories[slot]
        selection, order = memory.get(Selection), memory.get(RowOrder)
        rows = selection.rows if selection else np.arange(self.data[slot].n_rows)
        rows = rows if order is None else rows[order.order]
        own = self.tables[slot].rows
        return rows if own is None else own[rows]

    def summary(self) -> Record | None:
        """Return the coordinator's summary."""
        summary = self.final_step.summary
        return engine.read_result(self.agreement, summary) if summary else None

    def build_result(self) -> SimulationResult:
        """Return the result of the simulation, once the session is over."""
        summary, conclusion = self.summary(), self.conclusion
        run = conclusion.chosen if len(self.session.runs) > 1 else None
        memories = {
            slot: memory.scope_to_run(run) for slot, memory in self.memories.items()
        }
        return SimulationResult(
            outcomes=self.outcomes(),
            orders={slot: self.list_travelled_rows(slot) for slot in self.memories},
            summary=summary,
            figures=[Figures(**values) for values in conclusion.figures],
            chosen=conclusion.chosen,
            trace=Trace(
                session=self.session.of_run(run), summary=summary, memories=memories
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
    """Run a session of all slots to its end; parameters as in :class:`Session`.

    Where the coordinator is to choose among runs, the deadline passes.

    Raises CoterieError where a session over HTTP would end with that problem.
    """
    return Session(params, layout, data, seed, **options).run_to_end()

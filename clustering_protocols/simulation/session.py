"""A session of all roles under one hand, a round at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from clustering_protocols import engine
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import Outcome, Params, PartyContext, Trace
from clustering_protocols.engine import packets
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.simulation.parties import (
    ANALYST,
    SIMULATION,
    Parties,
    PendingTask,
    agree_and_join,
    entropies,
)
from clustering_protocols.terms.terms import Layout

Timer = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """One message as it travelled."""

    sender: str
    receiver: str
    round: int
    attempt: int
    payload: bytes = field(repr=False)


@dataclass(slots=True, kw_only=True)
class Cost:
    """What a role spent."""

    seconds: float = 0.0
    sent_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationResult:
    """How a session went.

    outcomes: labels in the order of that slot's own rows.
    orders: mapping of slot to int64 array; ``orders[slot][k]`` is the slot's row that
        travelled at position k.
    summary: what the coordinator reads.
    figures: of each run, as the coordinator reads them.
    chosen: which of the runs the outcomes are of.
    trace: what the session left, for the pooled reference.
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


class Session(Parties):
    """Analyst and parties of one session; the first round is open.

    Every step is a method of its own, so that a subclass can be a role that does
    something else: an analyst that hands out other tasks, parties that answer in
    another order.

    params: parameters of any protocol of the catalogue.
    seed: stands for all entropy of coordinator and parties, and is the terms' seed.
    choices: what a party decides alone; see
        :class:`~clustering_protocols.contract.PartyContext`.
    timer: a clock in seconds, where costs are wanted.
    runs_on: the analyst's, for blocks of many rows.
    **given: see :func:`~.parties.agree_and_join`.

    entropies: 32 bytes of every party, and of the coordinator.
    memories: as after the last round that was not void.
    journals: what each party has answered; no void attempt takes it back.
    asked: what each party was told last.
    move: the open round, the open choice, or the end.
    last: the round that was opened last.
    profiles: what the coordinator reads of the clusters, as JSON values, once it is
        told.
    sent: every task and contribution that travelled, in order.
    stored: all that the analyst ever stores beside the agreement: states, tasks,
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
        **given: Any,
    ) -> None:
        agreement, arrivals = agree_and_join(params, layout, data, seed, **given)
        keys = entropies(seed, given.get("session", SIMULATION), layout.names)
        super().__init__(agreement, keys, arrivals, choices or {})
        self.timer = timer
        self.runs_on = runs_on
        self.last: engine.Opened | None = None
        self.profiles: list[dict[str, Any]] = []
        self.sent: list[SentMessage] = []
        self.stored: list[bytes] = []
        self.costs = {role: Cost() for role in (ANALYST, *layout.names)}
        with self.clock(ANALYST):
            move = engine.begin(self.agreement)
        self.move = self.keep(move)

    # Where it stands

    @property
    def is_over(self) -> bool:
        """Return whether the results are there."""
        return isinstance(self.move, engine.Closed)

    @property
    def open(self) -> engine.Opened:
        """Return the open round; :class:`RuntimeError` after the end."""
        if not isinstance(self.move, engine.Opened):
            raise RuntimeError("The session is over.")  # noqa: TRY004  no wrong type
        return self.move

    @property
    def final_step(self) -> engine.Closed:
        """Return the end; :class:`RuntimeError` before it."""
        if not isinstance(self.move, engine.Closed):
            raise RuntimeError("The session continues.")  # noqa: TRY004  no wrong type
        return self.move

    @property
    def conclusion(self) -> engine.Conclusion:
        """Return what the runs are like; :class:`RuntimeError` before the last round."""
        if self.last is None or self.last.conclusion is None:
            raise RuntimeError("The last round was not opened yet.")
        return self.last.conclusion

    @property
    def received_messages(self) -> list[SentMessage]:
        """Return the contributions that came to the analyst, in order."""
        return [message for message in self.sent if message.receiver == ANALYST]

    def context(self, slot: str) -> PartyContext:
        """Return where a party stands in the last round, to read what it could."""
        last, party = self.last or self.open, self.party(slot)
        journal, memory = self.journals[slot], self.memories[slot]
        if slot in last.tasks:
            journal = party.follow_transcript(journal, memory, last.tasks[slot])
        return party.context(journal, memory, last.stage, last.round, last.attempt)

    def answer(self, slot: str, task: bytes | None = None) -> engine.TaskOutcome:
        """Return a party's answer to a task, its own in the open round by default.

        Nothing is sent, no memory changes.
        """
        return self.reply(slot, self.open.tasks[slot] if task is None else task)

    # Going on

    def choose(self, run: int | None) -> None:
        """Let the coordinator choose a run, or say nothing in time."""
        if not isinstance(self.move, engine.Choosing):
            raise RuntimeError("There is nothing to choose.")  # noqa: TRY004  no wrong type
        self.move = self.keep(engine.choose(self.agreement, self.move.state, run))

    def turn(
        self,
        absent: Collection[str] = (),
        told: Mapping[str, bytes] | None = None,
    ) -> None:
        """Let the parties answer the open round, and the analyst continue.

        An attempt that was void leaves the memories as they were before the round.

        absent: slots that do not come for their task.
        told: tasks that reach a slot instead of its own.

        Raises CoterieError where a role refuses; the round stays open, and no memory
            changes.
        """
        opened = self.open
        tasks = self.tasks() | dict(told or {})
        tasks = {slot: tasks[slot] for slot in opened.tasks if slot not in absent}
        for slot, task in tasks.items():
            self.record(ANALYST, slot, task)
        answers = {
            slot: self.ask(slot, tasks[slot]) for slot in self.answering_order(tasks)
        }
        self.advance({slot: answer.contribution for slot, answer in answers.items()})
        if not self.is_reopened(opened):
            self.memories |= {slot: answer.memory for slot, answer in answers.items()}

    def until(self, kind: type[Record], number: int | None = None) -> None:
        """Go on, with everybody, to the first round whose task is of this kind.

        ``number``: and says this in its field of that name.
        """
        while True:
            task = packets.read(next(iter(self.open.tasks.values()))).header.record
            numbers = {None, task["values"].get("number")}
            if task["kind"] == kind.kind and number in numbers:
                return
            self.turn()

    def to_the_end(self, told: Mapping[str, bytes] | None = None) -> SimulationResult:
        """Go on with everybody; tell some another task in the round that is open."""
        if told:
            self.turn(told=told)
        while not self.is_over:
            if isinstance(self.move, engine.Choosing):
                self.choose(None)
            self.turn()
        return self.build_simulated()

    # What a turn consists of

    def tasks(self) -> dict[str, bytes]:
        """Return what the analyst hands out in the open round, by slot."""
        return dict(self.open.tasks)

    def answering_order(self, slots: Collection[str]) -> Sequence[str]:
        """Return the slots in the order in which they answer."""
        return list(slots)

    def ask(self, slot: str, task: bytes) -> engine.TaskOutcome:
        """Tell a party a task; return its answer.

        Raises GuardRefused if its rows look wrong, and its choices do not say
            otherwise.
        """
        self.asked[slot] = PendingTask(task, self.journals[slot], self.memories[slot])
        with self.clock(slot):
            answer = self.admit_task(slot, task)
        if answer.doubts:  # nobody is there to say that the rows are right
            raise GuardRefused(answer.doubts)
        return answer

    def advance(self, contributions: Mapping[str, bytes]) -> None:
        """Let the analyst receive contributions to the open round, and continue."""
        opened = self.open
        for slot, contribution in contributions.items():
            self.record(slot, ANALYST, contribution)
        self.stored += contributions.values()
        with self.clock(ANALYST):
            move = engine.advance(
                *(self.agreement, opened.state, opened.tasks, contributions),
                runs_on=self.runs_on,
            )
        self.move = self.keep(move)

    def keep(self, move: engine.Move) -> engine.Move:
        """Let the analyst store what a move consists of; return the move."""
        if isinstance(move, engine.Opened):
            self.last = move
            self.profiles = move.profiles or self.profiles
        self.stored += move.payloads
        return move

    def is_reopened(self, before: engine.Opened) -> bool:
        """Return whether this round is open again: its attempt was void."""
        now = self.move
        return isinstance(now, engine.Opened) and now.round == before.round

    def record(self, sender: str, receiver: str, payload: bytes) -> None:
        """Note that a message of the open round travelled."""
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
    def clock(self, role: str) -> Iterator[None]:
        """Add what is done inside to a role's seconds."""
        begin = self.timer()
        yield
        self.costs[role].seconds += self.timer() - begin

    # The end

    def outcomes(self) -> dict[str, Outcome]:
        """Return what each party gets."""
        return self.conclude(self.final_step.results)

    def summary(self) -> Record | None:
        """Return what the coordinator reads."""
        summary = self.final_step.summary
        return engine.read_result(self.agreement, summary) if summary else None

    def build_simulated(self) -> SimulationResult:
        """Return how the session went, once it is over."""
        summary, ended = self.summary(), self.conclusion
        run = ended.chosen if len(self.session.runs) > 1 else None
        memories = {
            slot: each.scope_to_run(run) for slot, each in self.memories.items()
        }
        return SimulationResult(
            outcomes=self.outcomes(),
            orders={slot: self.list_travelled_rows(slot) for slot in self.memories},
            summary=summary,
            figures=[Figures(**each) for each in ended.figures],
            chosen=ended.chosen,
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
    *,
    choices: Mapping[str, Mapping[str, Any]] | None = None,
    timer: Timer = lambda: 0.0,
    runs_on: Engine = ONE_THREAD,
    **given: Any,
) -> SimulationResult:
    """Run a session of all slots to its end; parameters as of :class:`Session`.

    Where the coordinator is to choose among runs, nobody does in time.

    Raises CoterieError where a session over HTTP would end with that problem.
    """
    whole = Session(
        *(params, layout, data, seed),
        choices=choices,
        timer=timer,
        runs_on=runs_on,
        **given,
    )
    return whole.to_the_end()

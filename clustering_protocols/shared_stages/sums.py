"""Programs of sums, in which a column group computes one checked blind sum after another.

A program is a generator that reads like the algorithm it implements. The generator
yields a :class:`Sum` and receives the decoded total over all members::

    def mean_of_rows(context: PartyContext, data: DataSource) -> Sums[Findings]:
        n, width = n_rows(context), context.session.member(context.slot.name).n_columns
        code = FixedPoint.of(np.full(width, n * 1.0))  # values of at most 1
        total = yield from Sum(
            "values",
            local=lambda: code.encode(add_rows(data)),
            fits=code.fits,
            decode=code.decode,
        )
        return Findings([Means(mean=total / n)])

    PROGRAM = SumProgram(
        "means", 1, mean_of_rows, lambda session, slot: [session.member(slot).n_columns]
    )

``PROGRAM.build_stage()`` returns the stage; it needs the secrets of column groups. Each
total comes with the next task. A final task, which is answered with an empty share,
brings the last total:

| round | task → contribution |
|---|---|
| 1 to n | `add-up` → `share`: the masked share of a sum |
| n + 1 | `add-up` → `share`, empty: the program ends with the last total |

The totals are a program's whole state (:class:`SumTotals`). For every task, a party runs
the program from the beginning, sends it the totals that it has, and stops at the first
sum without a total, whose :attr:`Sum.local` it calls once. So a program must

- read rows and draw random numbers only within ``local``, or after its last total;
- yield as many sums as it declares, of the declared sizes, because the analyst cannot
  read the sums and has to know these sizes in advance;
- raise ``GuardRefused`` or ``ProtocolFailed`` if a total does not allow it to continue.

The totals are deleted when the program ends. Records for later stages are returned in
:attr:`Findings.remember`, or in :attr:`Sum.remember` if they are to be stored with a
share. To delete a record, a program remembers an empty record of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
from pydantic import Field

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Exchange,
    Finish,
    Params,
    PartyContext,
    PartyRole,
    Reply,
    SessionContext,
    Stage,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import IntArray, Spec, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_tagged_shares
from clustering_protocols.shared_stages.masked_sums import CheckedSum, MaskedSum
from clustering_protocols.shared_stages.secrets import group_of

T = TypeVar("T")
R = TypeVar("R")
Group = tuple[str, ...]
Groups = Sequence[Group]
_NO_WORDS = np.empty(0, dtype=np.uint64)


class AddUp(Record):
    """Task: send your share of a sum.

    phase: the number of the sum, from 1.
    total: the total of the previous sum; empty with the first.
    """

    kind = "add-up"

    phase: int = Field(ge=1, le=64)
    total: Annotated[WordArray, Spec("before")]


class Share(Record):
    """Contribution: the party's masked share of a sum."""

    kind = "share"
    reach = "hidden"
    meaning = "Sums over your rows, masked: nobody can read them alone."

    words: Annotated[WordArray, Spec("words")]


class AddingUp(Record):
    """The analyst's state: the number of the current sum."""

    kind = "adding-up"

    phase: int


class SumTotals(Record):
    """Memory: the progress of a program.

    number, transcript: the number of the latest sum, and its transcript (hex).
    totals, sizes: the concatenated totals of the earlier sums, and the size of each.
    own: the party's own elements of the latest sum, if these elements are already the
        total or will be compared with the total; otherwise empty.
    """

    kind = "sum-totals"

    program: str
    number: int
    transcript: str
    sizes: list[int]
    totals: Annotated[WordArray, Spec("totals")]
    own: Annotated[WordArray, Spec("own")]

    @property
    def earlier_totals(self) -> list[WordArray]:
        """Return a list of the totals of the earlier sums."""
        ends = np.cumsum(self.sizes)
        return [
            self.totals[end - n : end] for n, end in zip(self.sizes, ends, strict=True)
        ]


class RowsSummed(Record):
    """Memory for the party's own audit: it has sent a sum over all of its rows."""

    kind = "rows-summed"


@dataclass(frozen=True, slots=True)
class Sum(Generic[T]):
    """A sum over the members; ``yield from`` on it evaluates to the decoded total.

    name: the name on which the masks depend.
    local: returns the party's own ring elements (m,), uint64 or int64.
    fits: returns whether a total (m,) is possible.
    decode: converts a total (m,) to the value that the program receives.
    compare: called with a total (m,) and the party's own elements (m,); raises if they
        contradict each other.
    remember: called before ``local``; returns the records to remember with the share.
    """

    name: str
    local: Callable[[], WordArray | IntArray]
    fits: Callable[[WordArray], bool]
    decode: Callable[[WordArray], T]
    compare: Callable[[WordArray, WordArray], None] | None = None
    remember: Callable[[], Sequence[Record]] = tuple

    def __iter__(self) -> Generator[Sum[Any], Any, T]:
        total: T = yield self
        return total


Sums = Generator[Sum[Any], Any, R]


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a program that is a stage: its records, and any doubts."""

    remember: Sequence[Record]
    doubts: str = ""


@dataclass(frozen=True, slots=True)
class ProgramStep(Generic[R]):
    """A party's answer to a task: its share of a sum, or the result of the program."""

    words: WordArray
    remember: Sequence[Record]
    result: R | None = None

    @property
    def outcome(self) -> R:
        """Return the program's result; raise RuntimeError if it has not ended."""
        if self.result is None:
            raise RuntimeError("The program has not ended.")
        return self.result


@dataclass(frozen=True)
class SumProgram(Generic[R]):
    """A program, with the facts that parties and analyst must know in advance.

    name: the name of the stage.
    sizes: returns the number of ring elements that a slot sends for each sum.
    groups: returns the column groups that take part.
    hiding: returns the object that masks shares and verifies totals.
    alone_below: the smallest group that computes sums. In a smaller group, each member
        sends nothing and uses its own elements as the total.
    """

    name: str
    n_sums: int
    program: Callable[[PartyContext[Any], DataSource], Sums[R]]
    sizes: Callable[[SessionContext[Any], str], Sequence[int]]
    groups: Callable[[SessionContext[Any]], Groups] = lambda session: (
        session.layout.column_groups
    )
    hiding: Callable[[PartyContext[Any]], CheckedSum] = lambda _: CheckedSum(
        scope="column"
    )
    alone_below: int = 0

    def build_stage(self: SumProgram[Findings]) -> Stage:
        """Return the stage that runs this program."""
        return Stage(
            name=self.name,
            analyst=self.build_analyst,
            party=self.build_party,
            exchanges=(build_exchange(self.n_sums, self.slots),),
        )

    def build_analyst(self) -> SumAnalyst:
        """Return the role of the analyst in the stage."""
        return SumAnalyst(self)

    def build_party(self: SumProgram[Findings]) -> SumParty:
        """Return the role of a party in the stage."""
        return SumParty(self)

    def slots(self, session: SessionContext[Any]) -> list[str]:
        """Return the slots of the column groups that take part."""
        return [slot for group in self.groups(session) for slot in group]

    def n_words(self, session: SessionContext[Any], slot: str, number: int) -> int:
        """Return the length of a share, tag included; 0 if nothing is sent."""
        if number > self.n_sums or self.is_alone(session, slot):
            return 0
        return 1 + self.sizes(session, slot)[number - 1]

    def share_sizes(
        self, session: SessionContext[Any], slots: Iterable[str], number: int
    ) -> dict[str, dict[str, int]]:
        """Return the required size of each slot's ``words``, as in ``Ask.dims``."""
        return {slot: {"words": self.n_words(session, slot, number)} for slot in slots}

    def is_alone(self, session: SessionContext[Any], slot: str) -> bool:
        """Return whether a slot's column group is too small for sums."""
        column = session.layout.slot(slot).column
        return len(session.layout.column_group(column)) < self.alone_below

    def run_to_sum(
        self,
        context: PartyContext[Any],
        data: DataSource,
        number: int,
        task: Record,
        total: WordArray,
    ) -> ProgramStep[R]:
        """Run the program over all totals so far, up to this sum or the program's end.

        task: the record that contains ``total``, whose size has the symbol ``before``.

        Raises ProtocolFailed if ``number`` is out of order, or if the total is not the sum
            of the members' shares; InvalidArray if the total has a wrong size.
        """
        previous = context.memory.get(SumTotals)
        if previous is not None and previous.program != self.name:
            previous = None
        due = 1 if previous is None else previous.number + 1
        if number != due or number > self.n_sums + 1:
            raise ProtocolFailed("The analyst asks for a phase out of order.")
        run = self.program(context, data)
        current, totals = next(run), list[WordArray]()
        if previous is None:
            task.require({"before": 0})
        else:
            totals = previous.earlier_totals
            for words in totals:
                current = run.send(current.decode(words))
            totals.append(self._read_total(context, previous, current, task, total))
            try:
                current = run.send(current.decode(totals[-1]))
            except StopIteration as end:
                final_state = self._build_record(number, "", [], _NO_WORDS)
                return ProgramStep(_NO_WORDS, [final_state], end.value)
        remember = current.remember()
        own: WordArray = current.local().view(np.uint64)
        alone = self.is_alone(context.session, context.slot.name)
        stored = own if alone or current.compare else _NO_WORDS
        state = self._build_record(number, context.transcript, totals, stored)
        share = _NO_WORDS
        if not alone:
            masked_sum = _masked_sum(context, state, current)
            share = self.hiding(context).mask(context, own, masked_sum)
        return ProgramStep(share, [*remember, state])

    def _build_record(
        self, number: int, transcript: str, totals: Sequence[WordArray], own: WordArray
    ) -> SumTotals:
        return SumTotals(
            program=self.name,
            number=number,
            transcript=transcript,
            sizes=[len(words) for words in totals],
            totals=np.concatenate([_NO_WORDS, *totals]),
            own=own,
        )

    def _read_total(
        self,
        context: PartyContext[Any],
        previous: SumTotals,
        current: Sum[Any],
        task: Record,
        total: WordArray,
    ) -> WordArray:
        slot = context.slot.name
        task.require({"before": self.n_words(context.session, slot, previous.number)})
        if self.is_alone(context.session, slot):
            return previous.own
        masked_sum = _masked_sum(context, previous, current)
        words = self.hiding(context).unmask(context, total, masked_sum, current.fits)
        if current.compare is not None:
            current.compare(words, previous.own)
        return words


def _masked_sum(
    context: PartyContext[Any], state: SumTotals, current: Sum[Any]
) -> MaskedSum:
    return MaskedSum(
        members=column_group_members(context),
        name=current.name,
        transcript=state.transcript,
    )


@dataclass(frozen=True)
class SumParty(PartyRole[Params, AddUp]):
    """Runs a program, one sum per task."""

    program: SumProgram[Findings]

    def reply(self, context: PartyContext, task: AddUp, data: DataSource) -> Reply:
        """Reply with the share of the current sum or, at the end, with the findings."""
        turn = self.program.run_to_sum(context, data, task.phase, task, task.total)
        findings = turn.result or Findings(())
        return Reply(
            contribution=Share(words=turn.words),
            remember=[*turn.remember, *findings.remember],
            doubts=findings.doubts,
        )


@dataclass(frozen=True)
class SumAnalyst(AnalystRole[Params, Share, AddingUp]):
    """Adds up shares that it cannot read, and returns each total with the next task."""

    program: SumProgram[Any]

    state = AddingUp

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask for the shares of the first sum."""
        totals = dict.fromkeys(self.program.groups(session), _NO_WORDS)
        return self._ask_for_sum(session, 1, totals)

    def step(
        self,
        session: SessionContext,
        state: AddingUp,
        contributions: Mapping[str, Share],
    ) -> Ask | Finish:
        """Return the totals with the next task, or finish after the last one."""
        if state.phase > self.program.n_sums:
            return Finish()
        totals = add_shares(self.program.groups(session), contributions)
        return self._ask_for_sum(session, state.phase + 1, totals)

    def _ask_for_sum(
        self, session: SessionContext, phase: int, totals: Mapping[Group, WordArray]
    ) -> Ask:
        tasks = build_total_tasks(totals, lambda total: AddUp(phase=phase, total=total))
        return Ask(
            state=AddingUp(phase=phase),
            tasks={slot: tasks[slot] for slot in session.slots if slot in tasks},
            dims=self.program.share_sizes(session, tasks, phase),
        )


def add_shares(
    groups: Groups, contributions: Mapping[str, Any]
) -> dict[Group, WordArray]:
    """Return the total of each group's shares; empty if the shares are empty.

    contributions: records with the shares as ``words``, by slot.
    """
    shares = {group: [contributions[slot].words for slot in group] for group in groups}
    return {
        group: add_tagged_shares(words) if words[0].size else words[0]
        for group, words in shares.items()
    }


def build_total_tasks(
    totals: Mapping[Group, WordArray], build_task: Callable[[WordArray], Record]
) -> dict[str, Record]:
    """Return a task for each slot, built from the total of its group."""
    tasks: dict[str, Record] = {}
    for group, total in totals.items():
        tasks |= dict.fromkeys(group, build_task(total))
    return tasks


def column_group_members(context: PartyContext[Any]) -> tuple[str, ...]:
    """Return the members of the party's column group."""
    return group_of(context.session.layout, context.slot, "column")


def n_group_rows(context: PartyContext[Any]) -> int:
    """Return the number of participating rows in the party's column group."""
    return sum(context.session.n_rows(slot) for slot in column_group_members(context))


def build_exchange(
    n_sums: int, slots: Callable[[SessionContext], Collection[str]] | None = None
) -> Exchange:
    """Return the exchange of a stage that computes this number of sums."""
    n_tasks = n_sums + 1
    return Exchange(AddUp, Share, n_tasks, n_tasks, audience="column", slots=slots)

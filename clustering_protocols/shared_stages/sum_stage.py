"""Checked sums of column groups in phases: the analyst adds up what it cannot read.

Each phase's total comes with the task of the next, so the last phase's share is empty.
A stage says of each phase what a party adds, which totals there can be and what one
teaches (:class:`Phase`). Order, transcript, reading and refusal are :class:`SumStage`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic

import numpy as np
from pydantic import Field
from typing_extensions import TypeVar

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Exchange,
    Finish,
    Params,
    PartyContext,
    Reopen,
    SessionContext,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import Spec, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_tagged
from clustering_protocols.shared_stages.checked_sums import CheckedSum
from clustering_protocols.shared_stages.masked_sums import MaskedSum
from clustering_protocols.shared_stages.secrets import group_of

Groups = Sequence[tuple[str, ...]]
MOST_PHASES: Final = 5
"""Of any stage; each says how many it has."""


class AddUp(Record):
    """Task: the phase in hand, and the total of the phase before."""

    kind = "add-up"

    phase: int = Field(ge=1, le=MOST_PHASES)
    total: Annotated[WordArray, Spec("before")]


class Share(Record):
    """Contribution: this party's masked share of the phase's sum."""

    kind = "share"
    reach = "hidden"
    meaning = "Sums over your rows, masked: nobody can read them alone."

    words: Annotated[WordArray, Spec("words")]


class AddingUp(Record):
    """The analyst's state."""

    kind = "adding-up"

    phase: int


@dataclass(frozen=True)
class PhasesAnalyst(AnalystRole[Params, Share, AddingUp]):
    """Adds up, phase by phase.

    last: the number of the last phase.
    groups: returns the groups that take part, given the session.
    n_words: returns the size of a share, given session, slot and phase.
    """

    last: int
    groups: Callable[[SessionContext], Groups]
    n_words: Callable[[SessionContext, str, int], int]

    state = AddingUp

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask for the first phase."""
        nothing = np.empty(0, dtype=np.uint64)
        return self._ask(session, 1, dict.fromkeys(self.groups(session), nothing))

    def step(
        self,
        session: SessionContext,
        state: AddingUp,
        contributions: Mapping[str, Share],
    ) -> Ask | Reopen | Finish:
        """Hand back the totals with the next phase."""
        if state.phase == self.last:
            return Finish()
        totals = {
            group: add_shares([contributions[slot].words for slot in group])
            for group in self.groups(session)
        }
        return self._ask(session, state.phase + 1, totals)

    def _ask(
        self,
        session: SessionContext,
        phase: int,
        totals: Mapping[tuple[str, ...], WordArray],
    ) -> Ask:
        tasks = {
            slot: AddUp(phase=phase, total=total)
            for group, total in totals.items()
            for slot in group
        }
        return Ask(
            state=AddingUp(phase=phase),
            tasks={slot: tasks[slot] for slot in session.slots if slot in tasks},
            dims={
                slot: {"words": self.n_words(session, slot, phase)} for slot in tasks
            },
        )


def _no_words() -> WordArray:
    return np.empty(0, dtype=np.uint64)


class SumState(Record):
    """Memory: the phase in hand; a stage adds what the totals before have taught.

    transcript: when the share of this phase was made (hex).
    own: what a party that is alone would have sent, or one that compares the total.
    """

    kind = "sum-state"

    phase: int
    transcript: str
    own: Annotated[WordArray, Spec("own")] = Field(default_factory=_no_words)


S = TypeVar("S", bound=SumState, default=Any)


@dataclass(frozen=True)
class Phase(Generic[S]):
    """One sum of a stage, as a party plays it.

    words: returns a party's own ring elements (m,).
    fits: returns whether members can have sent such a total (m,).
    learn: returns the fields of the state that follow from the total.
    """

    words: Callable[[PartyContext[Any], S, DataSource], WordArray]
    fits: Callable[[PartyContext[Any], S, WordArray], bool]
    learn: Callable[[PartyContext[Any], S, WordArray], Mapping[str, object]]


def _sum_of_columns(_context: PartyContext[Any]) -> CheckedSum:
    return CheckedSum(scope="column")


@dataclass(frozen=True, kw_only=True)
class SumStage(Generic[S]):
    """A party's side of checked sums in phases.

    name: of each phase's sum, ``{}`` its number; masks are bound to it.
    phases: those in which something is added up; one more reads the last total.
    state: what a party remembers from phase to phase.
    n_words: returns the size of a share, its tag included, given context and state.
    hiding: returns how sums are hidden and checked.
    alone_below: of how many members a group adds nothing up: its own words are the total.
    keeps_own: whether own words are kept beside the sum, to be compared with the total.
    """

    name: str
    phases: Sequence[Phase[S]]
    state: type[S]
    n_words: Callable[[PartyContext[Any], S], int]
    hiding: Callable[[PartyContext[Any]], CheckedSum] = _sum_of_columns
    alone_below: int = 0
    keeps_own: bool = False

    def follow(
        self,
        context: PartyContext[Any],
        number: int,
        task: Record,
        total: WordArray,
        **first: object,
    ) -> S:
        """Return the state of a phase: it knows the total of the phase before.

        task: with the symbol ``before`` for the size of its total.
        first: other fields of the state in phase 1.

        Raises ProtocolFailed if the phase is out of order, or the total not the sum of
            what the members sent; InvalidArray if it is of another size.
        """
        before = context.memory.get(self.state)
        last = len(self.phases) + 1
        if number != (1 if before is None else before.phase + 1) or number > last:
            raise ProtocolFailed("The analyst asks for a phase out of order.")
        now = {"phase": number, "transcript": context.transcript}
        if before is None:
            task.require({"before": 0})
            return self.state.model_validate(now | first)
        phase = self.phases[before.phase - 1]
        words = self._read(context, before, phase, task, total)
        learnt = phase.learn(context, before, words)
        return self.state.model_validate(dict(before) | {**learnt, **now})

    def add(
        self, context: PartyContext[Any], known: S, data: DataSource
    ) -> tuple[WordArray, S]:
        """Return the share of the phase in hand as it is sent, and what to remember."""
        phase, alone = self.phases[known.phase - 1], self.is_alone(context)
        own = phase.words(context, known, data)
        kept = own if alone or self.keeps_own else _no_words()
        known = known.model_copy(update={"own": kept})
        if alone:
            return _no_words(), known
        of = self._sum_of(context, known)
        return self.hiding(context).share(context, own, of), known

    def is_alone(self, context: PartyContext[Any]) -> bool:
        """Return whether a party's column group is too small to add up."""
        return len(members(context)) < self.alone_below

    def _read(
        self,
        context: PartyContext[Any],
        before: S,
        phase: Phase[S],
        task: Record,
        total: WordArray,
    ) -> WordArray:
        if self.is_alone(context):
            task.require({"before": 0})
            return before.own
        task.require({"before": self.n_words(context, before)})
        hiding, of = self.hiding(context), self._sum_of(context, before)

        def fits(words: WordArray) -> bool:
            return phase.fits(context, before, words)

        return hiding.read(context, total, of, fits)

    def _sum_of(self, context: PartyContext[Any], at: S) -> MaskedSum:
        name = self.name.format(at.phase)
        return MaskedSum(members=members(context), name=name, transcript=at.transcript)


def add_shares(shares: Sequence[WordArray]) -> WordArray:
    """Return the sum of shares; a party that is alone adds nothing up."""
    return add_tagged(shares) if shares[0].size else shares[0]


def members(context: PartyContext) -> tuple[str, ...]:
    """Return who adds up with a party: its column group."""
    return group_of(context.session.layout, context.slot, "column")


def n_rows(context: PartyContext) -> int:
    """Return how many rows of a party's column group take part."""
    return sum(context.session.n_rows(slot) for slot in members(context))


def exchange(last: int) -> Exchange:
    """Return the exchange of a stage with so many phases."""
    return Exchange(AddUp, Share, last, last, audience="column")


def no_share() -> Share:
    """Return the answer to the last phase, in which nothing is added up."""
    return Share(words=np.empty(0, dtype=np.uint64))

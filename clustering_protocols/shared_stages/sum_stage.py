"""Checked sums of column groups in phases: the analyst adds up what it cannot read.

Each phase's total comes with the task of the next, so the last phase's share is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from pydantic import Field

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
from clustering_protocols.records.arrays import Spec, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_tagged
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

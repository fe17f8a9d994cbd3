"""The analyst's side of a stage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self

from typing_extensions import TypeVar

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.record import Record

from .session import Params, SessionContext

R = TypeVar("R", bound=Record)
P = TypeVar("P", bound=Params, default=Params)
Answer = TypeVar("Answer", bound=Record, default=Record)
State = TypeVar("State", bound=Record, default=Record)


class NoState(Record):
    """The state of an analyst that remembers nothing between its rounds."""

    kind = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One more round.

    tasks: one task per slot that takes part, all of one kind.
    state: for the next step of the analyst role; by default nothing.
    dims: sizes that a slot's contribution must have, by slot and symbol of its arrays.
    quorum: how many contributions suffice after the deadline; None for all.
    progress: JSON values on the progress of a protocol of many rounds. Empty:
        unchanged.
    profiles: cluster profiles that the coordinator may read from this round on.
    """

    tasks: Mapping[str, Record]
    state: Record = field(default_factory=NoState)
    dims: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    quorum: int | None = None
    progress: Mapping[str, Any] = field(default_factory=dict)
    profiles: Sequence[Profile] = ()

    @classmethod
    def everybody(cls, session: SessionContext, task: Record, **more: Any) -> Self:
        """Return a round with one task for every slot; ``more``: other attributes."""
        return cls(tasks=dict.fromkeys(session.slots, task), **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopen:
    """The round is void: open it again under a new attempt.

    reason: stands in the error if the round is void too often.
    ask: new tasks, for example for fewer slots, with their own state; None repeats the
        tasks. The envelopes of the void attempt's tasks are delivered again.
    """

    state: Record
    reason: str
    ask: Ask | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The results of a run.

    results: the result for each slot; labels go to the slots of their row group only.
    summary: the summary for the coordinator.
    figures: the figures of the run, which everybody may read.
    labelled_at_home: whether parties find the labels, and number the clusters,
        themselves.
    """

    results: Mapping[str, Record]
    summary: Record | None = None
    figures: Figures | None = None
    labelled_at_home: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The end of the stage.

    runs: for a stage with results: one run if the stage belongs to one, else all runs of
        the session.
    n_rows: the new number of rows of each slot where this stage selected some; its
        parties remember a :class:`~.published.Selection`.
    """

    runs: Sequence[Run] = ()
    n_rows: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def with_results(cls, results: Mapping[str, Record], **more: Any) -> Self:
        """Return the end with one run's results; ``more``: attributes of :class:`Run`."""
        return cls(runs=(Run(results=results, **more),))


class AnalystRole(ABC, Generic[P, Answer, State]):
    """The analyst's side of a stage: pure, deterministic.

    Generic in the protocol's parameters, the answers to its tasks (a union, where a
    stage asks for several kinds), and the state.

    state: the kind of ``Ask.state`` that the role returns; by default nothing.
    """

    state: ClassVar[type[Record]] = NoState

    @abstractmethod
    def start(self, session: SessionContext[P]) -> Ask | Finish:
        """Return the first round, or Finish if there is nothing to ask."""

    @abstractmethod
    def step(
        self,
        session: SessionContext[P],
        state: State,
        contributions: Mapping[str, Answer],
    ) -> Ask | Reopen | Finish:
        """Return the next move after a round's contributions, which are in slot order.

        Raises :class:`~clustering_protocols.common.errors.CoterieError` if the session
        cannot continue; its problem becomes the reason of the session's end.
        """


def all_of(kind: type[R], contributions: Mapping[str, Record]) -> dict[str, R]:
    """Return contributions as records of one kind; raise Malformed for others."""
    return {slot: kind.narrow(record) for slot, record in contributions.items()}


@dataclass(frozen=True)
class Relay(AnalystRole[Params, Record]):
    """Gives everybody one task, once; the answers' envelopes go out with the next stage."""

    task: Record

    def start(self, session: SessionContext) -> Ask:
        """Ask everybody."""
        return Ask.everybody(session, self.task)

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Record],
    ) -> Finish:
        """Finish."""
        return Finish()

"""The base class of the analyst's side of a stage, and the moves that it can make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self

from typing_extensions import TypeVar

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.record import Record

from .session import Params, SessionContext

R = TypeVar("R", bound=Record)
P = TypeVar("P", bound=Params, default=Params)
Answer = TypeVar("Answer", bound=Record, default=Record)
State = TypeVar("State", bound=Record, default=Record)


class NoState(Record):
    """The state of an analyst role that remembers nothing between rounds."""

    kind = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A move that opens one more round.

    tasks: one task for each slot that takes part, all of the same kind.
    state: the state that the analyst role receives in its next step; empty by default.
    dims: mapping of slot to the sizes that the arrays in its contribution must have, by
        the symbol of each dimension.
    quorum: how many contributions suffice after the deadline; None requires all.
    progress: JSON values that report the progress of a protocol of many rounds. If
        empty, the previous report stays.
    profiles: cluster profiles that the coordinator may read from this round on.
    """

    tasks: Mapping[str, Record]
    state: Record = field(default_factory=NoState)
    dims: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    quorum: int | None = None
    progress: Mapping[str, Any] = field(default_factory=dict)
    profiles: Sequence[Profile] = ()

    @classmethod
    def to_everybody(cls, session: SessionContext, task: Record, **more: Any) -> Self:
        """Return a round in which all slots get this task; ``more``: further fields."""
        return cls(tasks=dict.fromkeys(session.slots, task), **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopen:
    """A move that declares the round void and opens it again under a new attempt.

    reason: the explanation in the error that is raised if the round is void too often.
    ask: the tasks of the new attempt, for example for fewer slots, with their state.
        The envelopes of the void attempt's tasks are delivered again.
    """

    reason: str
    ask: Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The results of one run of the clustering.

    results: the result for each slot; labels go to the slots of their row group only.
    summary: the summary for the coordinator.
    figures: the quality figures of the run, which everybody may read.
    labelled_at_home: whether parties compute the labels, and number the clusters,
        themselves.
    """

    results: Mapping[str, Record]
    summary: Record | None = None
    figures: Figures | None = None
    labelled_at_home: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """A move that ends the stage.

    runs: the results; empty for a stage without results. A stage that belongs to one
        run returns this run, and any other stage returns all runs of the session.
    n_rows: the number of rows of each slot that this stage has selected; empty if it
        selects none. Every party of such a stage remembers a
        :class:`~.published.Selection`.
    """

    runs: Sequence[Run] = ()
    n_rows: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def with_results(cls, results: Mapping[str, Record], **more: Any) -> Self:
        """Return the end of a stage with one run; ``more``: fields of the run."""
        return cls(runs=(Run(results=results, **more),))


class AnalystRole(ABC, Generic[P, Answer, State]):
    """The analyst's side of a stage, whose methods are pure and deterministic.

    The class is generic in the protocol's parameters, the answers to its tasks (a union
    if a stage asks for several kinds), and the state.

    state: the record type of the ``Ask.state`` that the role returns.
    """

    state: ClassVar[type[Record]] = NoState

    @abstractmethod
    def start(self, session: SessionContext[P]) -> Ask | Finish:
        """Return the first round, or Finish if the stage needs no round."""

    @abstractmethod
    def step(
        self,
        session: SessionContext[P],
        state: State,
        contributions: Mapping[str, Answer],
    ) -> Ask | Reopen | Finish:
        """Return the next move after a round, whose contributions are in slot order.

        Raises :class:`~clustering_protocols.common.errors.CoterieError` if the session
            cannot continue. The session then ends, and states the error's problem as
            the reason.
        """


def agreed(answers: Mapping[str, Record], field: str, on: str) -> Any:
    """Return the value of a field that is equal in all answers.

    on: what the field is, for the error.

    Raises ProtocolFailed if two answers differ.
    """
    first, *others = (getattr(answer, field) for answer in answers.values())
    if any(other != first for other in others):
        raise ProtocolFailed(f"The parties do not agree on {on}.")
    return first


def narrow_all(kind: type[R], contributions: Mapping[str, Record]) -> dict[str, R]:
    """Return the contributions; raise Malformed if one is of another kind."""
    return {slot: kind.narrow(record) for slot, record in contributions.items()}

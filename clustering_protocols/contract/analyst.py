"""The analyst's side of a stage: what it asks, and how a stage ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from clustering_protocols.records import Record

from .session import SessionContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One more round.

    Attributes
    ----------
    state : Record
        What the analyst role wants back at the next step.
    tasks : mapping of slot to Record
        One task per slot that takes part.
    expects : type of Record
        The kind of contribution that answers these tasks.
    dims : mapping of slot to mapping of symbol to int
        Sizes that the contribution's arrays must have.
    quorum : int, optional
        How many contributions suffice once the deadline has passed; None for all.
    progress : mapping
        JSON values for those who watch: how far a protocol of many rounds has come.
    """

    state: Record
    tasks: Mapping[str, Record]
    expects: type[Record]
    dims: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    quorum: int | None = None
    progress: Mapping[str, Any] = field(default_factory=dict)


def ask_all(
    session: SessionContext,
    task: Record,
    *,
    expects: type[Record],
    state: Record,
    dims: Mapping[str, Mapping[str, int]] | None = None,
    quorum: int | None = None,
    progress: Mapping[str, Any] | None = None,
) -> Ask:
    """Return a round in which every slot gets the same task; see :class:`Ask`."""
    return Ask(
        state=state,
        tasks=dict.fromkeys(session.slots, task),
        expects=expects,
        dims=dims or {},
        quorum=quorum,
        progress=progress or {},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopen:
    """The round is void: open it again under a new attempt.

    Attributes
    ----------
    state : Record
    reason : str
        Why, for the reader of a session that was void too often.
    ask : Ask, optional
        What is asked now, for example of fewer slots; None for the same tasks. Its
        state counts, and envelopes of the round before come along again.
    """

    state: Record
    reason: str
    ask: Ask | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The stage is over; the last stage hands out results and a summary.

    Attributes
    ----------
    results : mapping of slot to Record
        What each slot may read; labels go to the slots of their row group only.
    summary : Record, optional
        What the coordinator may read.
    n_rows : mapping of slot to int
        How many rows take part from here on, of slots of which this stage has selected
        some; its parties remember a :class:`~.selection.Selection`.
    """

    results: Mapping[str, Record] = field(default_factory=dict)
    summary: Record | None = None
    n_rows: Mapping[str, int] = field(default_factory=dict)


class AnalystRole(ABC):
    """The analyst's side of a stage: pure, deterministic.

    Class attributes
    ----------------
    state : type of Record
        What :meth:`start` and :meth:`step` leave in ``Ask.state``.
    """

    state: ClassVar[type[Record]]

    @abstractmethod
    def start(self, session: SessionContext) -> Ask | Finish:
        """Return the first round, or Finish where there is nothing to ask."""

    @abstractmethod
    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Return what follows from a round's contributions, in slot order.

        Raises :class:`~clustering_protocols.errors.CoterieError` where the session
        cannot go on; its problem becomes the reason of the session's end.
        """

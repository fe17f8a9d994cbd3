"""What follows a round: the next one, or the end of the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from typing_extensions import TypeVar

Payload = TypeVar("Payload", default=bytes)
Stored = TypeVar("Stored")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What the runs are like, as JSON values, and which of them counts.

    sizes: of the clusters of each of several runs, in fives; empty of a single run.
    """

    figures: list[dict[str, Any]]
    sizes: list[list[int]] = field(default_factory=list)
    chosen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(Generic[Payload]):
    """A round is open: keep the state, hand out the tasks, wait for contributions.

    Generic in the payload: state and tasks are bytes, or the digests under which the
    bytes are stored.
    """

    round: int
    attempt: int
    stage: str
    stage_index: int
    n_stages: int
    quorum: int
    state: Payload = field(repr=False)
    tasks: Mapping[str, Payload] = field(repr=False)
    progress: Mapping[str, Any] | None = None  # None: as before
    conclusion: Conclusion | None = None  # once a run is chosen
    profiles: list[dict[str, Any]] | None = None  # once they are told, as JSON values

    def map_payloads(self, put: Callable[[Payload], Stored]) -> Opened[Stored]:
        """Return the same with what ``put`` returns for each payload."""
        return Opened(
            round=self.round,
            attempt=self.attempt,
            stage=self.stage,
            stage_index=self.stage_index,
            n_stages=self.n_stages,
            quorum=self.quorum,
            state=put(self.state),
            tasks={slot: put(task) for slot, task in self.tasks.items()},
            progress=self.progress,
            conclusion=self.conclusion,
            profiles=self.profiles,
        )

    @property
    def payloads(self) -> list[Payload]:
        """Return state and tasks."""
        return [self.state, *self.tasks.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing(Generic[Payload]):
    """All runs are done: the coordinator says which of them counts.

    figures: of each run, as JSON values.
    sizes: of the clusters of each run, in fives.
    """

    state: Payload = field(repr=False)
    figures: list[dict[str, Any]]
    sizes: list[list[int]] = field(default_factory=list)

    def map_payloads(self, put: Callable[[Payload], Stored]) -> Choosing[Stored]:
        """Return the same with what ``put`` returns for each payload."""
        return Choosing(state=put(self.state), figures=self.figures, sizes=self.sizes)

    @property
    def payloads(self) -> list[Payload]:
        """Return the state."""
        return [self.state]


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Generic[Payload]):
    """The session is complete."""

    results: Mapping[str, Payload] = field(repr=False)
    summary: Payload | None = field(repr=False)

    def map_payloads(self, put: Callable[[Payload], Stored]) -> Closed[Stored]:
        """Return the same with what ``put`` returns for each payload."""
        return Closed(
            results={slot: put(result) for slot, result in self.results.items()},
            summary=None if self.summary is None else put(self.summary),
        )

    @property
    def payloads(self) -> list[Payload]:
        """Return results and summary."""
        summary = [] if self.summary is None else [self.summary]
        return [*self.results.values(), *summary]


Move = Opened[Payload] | Choosing[Payload] | Closed[Payload]

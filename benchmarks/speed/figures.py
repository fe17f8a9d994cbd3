"""A figure beside its goal, and what one run is asked for."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Figure(NamedTuple):
    """Something measured; its goal is met if the value is at most the goal."""

    name: str
    value: float
    goal: float | None = None

    @property
    def is_met(self) -> bool:
        """Return whether there is no goal, or it is reached."""
        return self.goal is None or self.value <= self.goal

    def __str__(self) -> str:
        goal = "" if self.goal is None else f"{self.goal:g}"
        missed = "" if self.is_met else "missed"
        return f"| {self.name} | {self.value:.3g} | {goal} | {missed} |"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run is asked for.

    base: a checkout of an older commit with its environment in ``.venv``; sessions of
        both take turns.
    small: whether sizes are those of a smoke test, whose figures mean nothing.
    """

    base: Path | None = None
    small: bool = False


def children_seconds() -> float:
    """Return the CPU time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


Part = Callable[[Run], Iterator[Figure]]

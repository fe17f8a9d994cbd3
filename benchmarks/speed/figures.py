"""A figure beside its goal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


Part = Callable[..., Iterator[Figure]]
"""Yields figures; ``small``: in sizes of a smoke test, whose figures mean nothing."""

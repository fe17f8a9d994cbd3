"""Work that comes together is done together: one transaction for all that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from clustering_protocols.common.errors import CoterieError

_MOST = 100  # in one go: nobody waits behind more than these

T = TypeVar("T")
R = TypeVar("R")


def outcomes(work: Callable[[T], R], items: Iterable[T]) -> list[R | CoterieError]:
    """Return what work makes of each item, or its refusal: the others continue."""
    found: list[R | CoterieError] = []
    for item in items:
        try:
            found.append(work(item))
        except CoterieError as refused:
            found.append(refused)
    return found


class Batcher:
    """Does work of one kind in a thread; what comes meanwhile is done in the next go.

    Nothing waits for company: who comes alone is served alone. Used from one event loop.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._turns: asyncio.Task[None] | None = None

    async def do(
        self, work: Callable[[Sequence[T]], Sequence[R | Exception]], item: T
    ) -> R:
        """Return what work makes of an item, or raise it if it is an exception.

        work: the same for all items; returns or raises. What it raises is raised for
            each item of its go.
        """
        outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, outcome))
        if self._turns is None:
            self._turns = asyncio.create_task(self._take_turns(work))
        return await outcome

    async def _take_turns(self, work: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        try:
            while self._waiting:
                turn, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
                items = [item for item, _ in turn]
                try:
                    outcomes = await asyncio.to_thread(work, items)
                except Exception as error:  # noqa: BLE001  it is theirs who wait
                    outcomes = [error] * len(turn)
                for (_, waiting), outcome in zip(turn, outcomes, strict=True):
                    _settle(waiting, outcome)
        finally:
            self._turns = None


def _settle(waiting: asyncio.Future[Any], outcome: Any) -> None:
    if waiting.done():  # anyone who waited has gone
        return
    if isinstance(outcome, Exception):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)

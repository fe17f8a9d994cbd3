"""What comes together is done together: once for all, and each gets its own outcome."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from analyst_service.transactions.batching import Batcher, outcomes
from clustering_protocols.common.errors import NotFound

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it in a thread: a browser that is open here has a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def test_what_comes_while_others_are_served_is_done_in_one_go() -> None:
    goes: list[list[int]] = []
    is_begun, may_end = threading.Event(), threading.Event()

    def double(items: Sequence[int]) -> list[int | Exception]:
        goes.append(list(items))
        is_begun.set()
        may_end.wait(10)
        return [2 * item for item in items]

    async def all_of_them() -> list[int]:
        together = Batcher()
        first = asyncio.create_task(together.do(double, 0))
        await asyncio.to_thread(is_begun.wait, 10)
        others = [asyncio.create_task(together.do(double, n)) for n in range(1, 251)]
        await asyncio.sleep(0)
        may_end.set()
        return list(await asyncio.gather(first, *others))

    assert run(all_of_them()) == [2 * n for n in range(251)]
    assert [len(go) for go in goes] == [1, 100, 100, 50]


def test_who_is_refused_does_not_hold_up_the_others() -> None:
    def refuse_odd(items: Sequence[int]) -> list[int | Exception]:
        def even(item: int) -> int:
            if item % 2:
                raise NotFound(str(item))
            return item

        return list(outcomes(even, items))

    async def all_of_them() -> list[int | BaseException]:
        together = Batcher()
        asked = (together.do(refuse_odd, n) for n in range(4))
        return list(await asyncio.gather(*asked, return_exceptions=True))

    zero, one, two, three = run(all_of_them())
    assert (zero, two) == (0, 2)
    assert isinstance(one, NotFound)
    assert isinstance(three, NotFound)


def test_what_goes_wrong_is_told_to_all_and_the_next_are_served() -> None:
    is_away = True

    def work(items: Sequence[int]) -> list[int | Exception]:
        if is_away:
            raise OSError("away")
        return list(items)

    async def again() -> int:
        nonlocal is_away
        together = Batcher()
        for _ in range(2):
            with pytest.raises(OSError, match="away"):
                await together.do(work, 1)
        is_away = False
        return await together.do(work, 1)

    assert run(again()) == 1


def test_who_has_gone_is_not_waited_for() -> None:
    may_end = threading.Event()

    def work(items: Sequence[int]) -> list[int | Exception]:
        may_end.wait(10)
        return list(items)

    async def one_goes() -> int:
        together = Batcher()
        gone = asyncio.create_task(together.do(work, 1))
        stays = asyncio.create_task(together.do(work, 2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        may_end.set()
        return await stays

    assert run(one_goes()) == 2

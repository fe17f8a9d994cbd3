"""Handing out tasks, and waiting for one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Final

from analyst_service.contributions.repository import OpenTask
from analyst_service.contributions.service import ContributionService, TaskRequest
from analyst_service.process_context import Service
from analyst_service.transactions.notifier import Waiter
from clustering_protocols.common.errors import CoterieError, SessionOver

StepAside = Callable[[], AbstractContextManager[bool]]
MAX_WAIT_SECONDS: Final = 25.0  # of a long poll: under the timeouts of proxies
_LOOK_SECONDS = 5.0  # where no driver rings, one looks all the same


def open_tasks(
    service: Service, asking: Sequence[TaskRequest]
) -> list[OpenTask | CoterieError | None]:
    """Return the open tasks of all who ask, and audit those given the first time."""
    with service.database.read() as transaction:
        found = ContributionService(transaction, service.clock).tasks(asking)
    fresh = {
        task for task in found if isinstance(task, OpenTask) and task.sent_at is None
    }
    if fresh:
        service.database.transact(
            lambda transaction: ContributionService(
                transaction, service.clock
            ).note_sent(fresh)
        )
    return found


async def wait_for_next(
    service: Service,
    asking: TaskRequest,
    waiter: Waiter,
    seconds: float,
    step_aside: StepAside,
    *,
    is_new: bool,
) -> OpenTask | None:
    """Return the task after an answer; None if there is none in time, or none at all.

    The answer is stored: whatever has become of the session, its receipt is due. Behind
    one that ``is_new`` there is no task yet, and a ring says when there may be.
    """
    try:
        return await wait_for_task(
            service, asking, waiter, seconds, step_aside, looks=not is_new
        )
    except SessionOver:
        return None


async def wait_for_task(
    service: Service,
    asking: TaskRequest,
    waiter: Waiter,
    seconds: float,
    step_aside: StepAside,
    *,
    looks: bool = True,
) -> OpenTask | None:
    """Return the caller's open task; None if there is none for so long.

    Nobody waits for a process that is about to end: another one has the next task. A
    place among the requests under way is for those that are served: who waits steps
    aside, and is sent away where too many do.

    waiter: of the session, since before the caller's last answer was stored.
    looks: whether there may be a task already.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + min(seconds, MAX_WAIT_SECONDS)
    look, task = partial(open_tasks, service), None
    while True:
        if looks:
            task = await service.handing_out.do(look, asking)
        left = 0 if service.draining.is_set() else until - loop.time()
        if task is not None or left <= 0:
            return task
        with step_aside() as is_held:
            if not is_held:
                return None
            await waiter.wait(min(left, _LOOK_SECONDS))
        looks = True

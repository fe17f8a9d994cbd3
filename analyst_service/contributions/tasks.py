"""Handing out tasks, and waiting for one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

from starlette.concurrency import run_in_threadpool

from analyst_service.auth.service import Caller
from analyst_service.contributions.service import ContributionService
from analyst_service.models import Task
from analyst_service.process_context import Service
from clustering_protocols.errors import SessionOver

_LOOK_SECONDS = 5.0  # where no driver rings, one looks all the same


def open_task(service: Service, caller: Caller, session_id: str) -> Task | None:
    """Return the caller's open task, and audit that it was given the first time."""
    with service.database.read() as transaction:
        task = ContributionService(transaction, service.clock).task(caller, session_id)
    if task is not None and task.sent_at is None:
        service.database.transact(
            lambda transaction: ContributionService(
                transaction, service.clock
            ).note_sent(task)
        )
    return task


async def wait_for_next(
    service: Service,
    caller: Caller,
    session_id: str,
    seconds: float,
    step_aside: Callable[[], AbstractContextManager[bool]],
) -> Task | None:
    """Return the task after an answer; None if there is none in time, or none at all.

    The answer is stored: whatever has become of the session, its receipt is due.
    """
    try:
        return await wait_for_task(service, caller, session_id, seconds, step_aside)
    except SessionOver:
        return None


async def wait_for_task(
    service: Service,
    caller: Caller,
    session_id: str,
    seconds: float,
    step_aside: Callable[[], AbstractContextManager[bool]],
) -> Task | None:
    """Return the caller's open task; None if there is none for so long.

    A place among the requests under way is for those that are served: who waits steps
    aside, and is sent away where too many do.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + min(seconds, service.settings.max_wait_seconds)
    with service.notifier.subscribe(caller.session_id or "") as waiter:
        while True:
            task = await run_in_threadpool(open_task, service, caller, session_id)
            left = until - loop.time()
            if task is not None or left <= 0:
                return task
            with step_aside() as is_held:
                if not is_held:
                    return None
                await waiter.wait(min(left, _LOOK_SECONDS))

"""A process that runs one step at a time, on a leash."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor

from analyst_service.jobs import worker


class Process:
    """One worker process; it starts with its first step.

    A step that takes its process down takes no other step with it. The leash is a pipe
    whose one end this process holds: when it is closed, even by a ``kill -9``, the
    worker ends.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        end, self._leash = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(
            max_workers=1,
            mp_context=context,
            initializer=worker.on_leash,
            initargs=(end,),
        )

    def submit(self, job: worker.Job) -> Future[worker.Followed]:
        """Begin a step.

        Raises
        ------
        BrokenProcessPool
            If the process has died.
        """
        return self._pool.submit(worker.run, job)

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._leash.close()
        self._pool.shutdown(cancel_futures=True)

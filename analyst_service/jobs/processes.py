"""A process that runs one step at a time, and is watched while it lives."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import threading
from concurrent.futures import Future
from typing import Final

from analyst_service.jobs import worker
from analyst_service.monitoring.logs import OwnWords

_REAP_SECONDS: Final = 5.0


class WorkerDied(OwnWords):
    """A worker process ended before its step did; the text says how."""


class Process:
    """One worker process; it stays, and what it has imported with it.

    A step that takes its process down takes no other step with it. One pipe leads to
    the process: jobs go in, outcomes come out, and when either end is closed, even by a
    ``kill -9``, the other one notices. So a death cannot be missed, whenever it comes.

    ``has_own``: whether it starts processes of its own, which a daemon may not.
    """

    def __init__(self, *, has_own: bool = False) -> None:
        context = multiprocessing.get_context("spawn")
        self._channel, theirs = context.Pipe()
        self._child = context.Process(
            target=worker.serve, args=(theirs,), daemon=not has_own
        )
        try:
            self._child.start()
        finally:
            theirs.close()  # the child alone holds it now: its death closes it
        self._lock = threading.Lock()
        self._pending: Future[worker.Outcome] | None = None
        self._is_over = False
        self._how = ""
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def submit(self, job: worker.Job) -> Future[worker.Outcome]:
        """Begin a step; the future raises :class:`WorkerDied` if the process ends.

        Raises WorkerDied if the process has ended while it had nothing to do.
        """
        future: Future[worker.Outcome] = Future()
        with self._lock:
            if self._is_over:
                raise WorkerDied(self._how)
            self._pending = future
        try:
            self._channel.send(job)
        except OSError:
            raise WorkerDied("The worker process ended before it had a step.") from None
        return future

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._child.kill()
        self._child.join()
        self._listener.join()
        self._channel.close()

    def _listen(self) -> None:
        while (outcome := self._next_outcome()) is not None:
            self._settle().set_result(outcome)
        self._child.join(_REAP_SECONDS)
        with self._lock:
            self._is_over, self._how = True, _how_ended(self._child.exitcode)
            is_waited_for = self._pending is not None
        if is_waited_for:
            self._settle().set_exception(WorkerDied(self._how))

    def _next_outcome(self) -> worker.Outcome | None:
        """Return what the process says next, or None if it is dead."""
        try:
            outcome: worker.Outcome = self._channel.recv()
        except (EOFError, OSError):  # the latter where it died within a message
            return None
        return outcome

    def _settle(self) -> Future[worker.Outcome]:
        """Return the future of the step under way, which is over now."""
        with self._lock:
            future, self._pending = self._pending, None
        if future is None:
            raise RuntimeError("the worker process spoke unasked")
        return future


def _how_ended(status: int | None) -> str:
    """Return how a process ended that was waited for, and what it may have lacked.

    status: its exit code; of a signal, minus its number. None if it is not known.
    """
    if status is None or status >= 0:
        return f"The worker process ended with status {status}."
    number = signal.Signals(-status)
    by = f"The worker process was killed by signal {number.value} ({number.name})"
    if number is not signal.SIGKILL:
        return f"{by}."
    # in KiB on Linux: the largest that any process of ours held that has ended
    held = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return f"{by}: short of memory? It held at most {held:,.0f} MiB."

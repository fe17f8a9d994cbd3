"""One step in a process of its own: blobs in, blobs out.

The processes exchange digests only. A step is deterministic and blobs are
content-addressed, so a step that is repeated after a crash writes the same blobs.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Final

from typing_extensions import Buffer

from analyst_service.blobs import ROW_BYTES, BlobPlace, FileBlobStore
from analyst_service.engines.engine_factory import EngineChoice
from analyst_service.logs import LoggableError, describe
from clustering_protocols import engine
from clustering_protocols.common.errors import CoterieError, StorageFull, Unavailable
from clustering_protocols.protocol_packages import use_packages

_TEMPORARY = (StorageFull, Unavailable)
_WRITERS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The input of a step; ``state`` is None for the session's first step.

    ``tasks``, ``contributions``: by slot, bytes of short ones and digests of long ones.
    ``chooses``: whether the step follows the selection of the run ``chosen``.
    ``packages``: the distributions whose protocols are offered.
    """

    blobs: BlobPlace
    agreement: bytes = field(repr=False)
    state: str | None
    tasks: Mapping[str, str | bytes] = field(repr=False)
    contributions: Mapping[str, str | bytes] = field(repr=False)
    engine: EngineChoice = field(default_factory=EngineChoice)
    chooses: bool = False
    chosen: int | None = None
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The session cannot continue."""

    reason: str
    detail: str

    payloads: Sequence[str] = ()  # a failure has no blobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """The step did not finish; ``is_temporary`` if the cause lies in the machine."""

    cause: str
    is_temporary: bool


StepResult = engine.Move[str | bytes] | Failed
Outcome = StepResult | Crashed


@cache
def _use_packages(names: tuple[str, ...]) -> None:
    use_packages(lambda: names)


def run(job: Job) -> StepResult:
    """Run one step; the result holds the bytes of short tasks, and digests of blobs."""
    _use_packages(job.packages)
    blobs = _open_store(job.blobs)
    # outside of `try`: an unavailable store fails no session
    mapped = {
        digest: blobs.map(digest)
        for digest in {job.state, *job.tasks.values(), *job.contributions.values()}
        if isinstance(digest, str)
    }
    try:
        move = _advance(job, mapped)
    except _TEMPORARY:
        raise  # the machine's fault, not the session's
    except CoterieError as error:
        return Failed(reason=error.problem.slug, detail=error.detail)
    short = {}
    if isinstance(move, engine.Opened):
        short = {s: task for s, task in move.tasks.items() if len(task) < ROW_BYTES}
        long = {s: task for s, task in move.tasks.items() if s not in short}
        move = replace(move, tasks=long)
    # in parallel, because each waits for the disk or the store
    futures = move.map_payloads(lambda payload: _writers().submit(blobs.put, payload))
    stored: engine.Move[Any] = futures.map_payloads(Future.result)
    if isinstance(stored, engine.Opened):
        return replace(stored, tasks={**stored.tasks, **short})
    return stored


@lru_cache(maxsize=1)
def _open_store(place: BlobPlace) -> FileBlobStore:
    """Return the cached store; starting Dask removes the store's keys from `os.environ`."""
    return place.open()


@cache
def _writers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WRITERS)


def _advance(job: Job, mapped: Mapping[str, Buffer]) -> engine.Move:
    """Return the next move; ``mapped``: the blobs of the step, by digest."""
    if job.state is None:
        return engine.begin_session(job.agreement)
    if job.chooses:
        return engine.choose_run(job.agreement, mapped[job.state], job.chosen)
    tasks, contributions = (
        {slot: mapped[p] if isinstance(p, str) else p for slot, p in payloads.items()}
        for payloads in (job.tasks, job.contributions)
    )
    return engine.advance_session(
        job.agreement,
        mapped[job.state],
        tasks,
        contributions,
        job.engine.open(job.blobs, mapped),
    )


def attempt(job: Job) -> Outcome:
    """Run one step; return a description of the error if it crashes."""
    try:
        return run(job)
    except Exception as error:  # noqa: BLE001  the driver decides
        return describe_crash(error)


def describe_crash(error: Exception) -> Crashed:
    """Describe an exception for the driver.

    The text of an error that is not our own may hold values, so it is left out.
    """
    cause = error.detail if isinstance(error, _TEMPORARY) else describe(error)
    return Crashed(cause=cause, is_temporary=isinstance(error, (*_TEMPORARY, OSError)))


def serve(channel: Connection) -> None:
    """Run the jobs that come through a channel, until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver
    jobs: SimpleQueue[Job] = SimpleQueue()
    # listens during steps too, and ends the process when its driver is dead
    threading.Thread(target=_listen, args=(channel, jobs), daemon=True).start()
    while True:
        run_next(jobs, channel.send)


def run_next(jobs: SimpleQueue[Job], send: Callable[[Outcome], None]) -> None:
    """Run the next job and send its outcome.

    If no other job waits, import what the session's later steps need while its parties
    answer, because a process imports only the mathematics of its own sessions.
    """
    job = jobs.get()
    outcome = attempt(job)
    send(outcome)
    if isinstance(outcome, engine.Opened) and jobs.empty():
        engine.import_analyst_roles(job.agreement)


def _listen(channel: Connection, jobs: SimpleQueue[Job]) -> None:
    with suppress(EOFError, OSError):
        while True:
            jobs.put(channel.recv())
    os._exit(1)


# The driver's end: a process that runs one step at a time

_REAP_SECONDS: Final = 5.0


class WorkerDied(LoggableError):
    """A worker process ended during its step; the text says how."""


class Process:
    """A worker process, which is reused with everything that it has imported.

    A step that kills its process harms no other step. Jobs and outcomes go through one
    pipe; when the process at one end dies, even by ``kill -9``, the other end notices.

    ``spawns``: whether it starts processes of its own, which a daemon may not.
    """

    def __init__(self, *, spawns: bool = False) -> None:
        context = multiprocessing.get_context("spawn")
        self._channel, far_end = context.Pipe()
        self._child = context.Process(target=serve, args=(far_end,), daemon=not spawns)
        try:
            self._child.start()
        finally:
            far_end.close()  # only the child holds it now, so its death closes the pipe
        self._lock = threading.Lock()
        self._pending: Future[Outcome] | None = None
        self._is_over = False
        self._cause = ""
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def submit(self, job: Job) -> Future[Outcome]:
        """Start a step; the future raises :class:`WorkerDied` if the process ends.

        Raises WorkerDied if the process ended while it was idle.
        """
        future: Future[Outcome] = Future()
        with self._lock:
            if self._is_over:
                raise WorkerDied(self._cause)
            self._pending = future
        try:
            self._channel.send(job)
        except OSError:
            raise WorkerDied("The worker process ended before it had a step.") from None
        return future

    def end(self) -> None:
        """Kill the process."""
        self._child.kill()
        self._child.join()
        self._listener.join()
        self._channel.close()

    def _listen(self) -> None:
        with suppress(EOFError, OSError):  # OSError if it died within a message
            while True:
                outcome: Outcome = self._channel.recv()
                self._finish().set_result(outcome)
        self._child.join(_REAP_SECONDS)
        with self._lock:
            self._is_over, self._cause = True, _describe_end(self._child.exitcode)
            is_pending = self._pending is not None
        if is_pending:
            self._finish().set_exception(WorkerDied(self._cause))

    def _finish(self) -> Future[Outcome]:
        """Return the future of the finished step, and make the process free."""
        with self._lock:
            future, self._pending = self._pending, None
        if future is None:
            raise RuntimeError("the worker process sent an outcome without a job")
        return future


def _describe_end(status: int | None) -> str:
    """Return a sentence on how a process ended, with a likely reason.

    status: its exit code, or minus the number of a signal; None if it is not known.
    """
    if status is None or status >= 0:
        return f"The worker process ended with status {status}."
    number = signal.Signals(-status)
    sentence = f"The worker process was killed by signal {number.value} ({number.name})"
    if number is not signal.SIGKILL:
        return f"{sentence}."
    # the largest of all ended child processes; KiB on Linux
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return f"{sentence}: short of memory? It held at most {peak:,.0f} MiB."

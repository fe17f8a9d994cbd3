"""Worker processes, which run one step at a time.

Only short messages and digests are exchanged with a worker; it reads and writes blobs
itself. Steps are deterministic and blobs are content-addressed, so a step that is
repeated after a crash writes the same blobs again.
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

from analyst_service.blobs import ROW_BYTES, BlobLocation, FileBlobStore
from analyst_service.engines import open_engine
from analyst_service.logs import LoggableError, describe_error
from clustering_protocols import engine
from clustering_protocols.common.errors import CoterieError, StorageFull, Unavailable
from clustering_protocols.protocol_packages import use_packages

_TEMPORARY = (StorageFull, Unavailable)
_WRITERS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The input of a step.

    state: the digest of the session's state; None for the first step.
    tasks, contributions: by slot, the bytes of a short one or the digest of a long one.
    engine: the value of the setting ``engine``.
    chooses: whether the step follows the choice of a run, whose number is ``chosen``.
    packages: the distributions whose protocols are offered.
    """

    blobs: BlobLocation
    agreement: bytes = field(repr=False)
    state: str | None
    tasks: Mapping[str, str | bytes] = field(repr=False)
    contributions: Mapping[str, str | bytes] = field(repr=False)
    engine: str = "local"
    chooses: bool = False
    chosen: int | None = None
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The result of a step after which the session cannot continue."""

    reason: str
    detail: str

    payloads: Sequence[str] = ()  # a failed step stores no blobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """A step that did not finish; ``is_temporary`` if the machine is the cause."""

    cause: str
    is_temporary: bool


StepResult = engine.Move[str | bytes] | Failed
Outcome = StepResult | Crashed


@cache
def _use_packages(names: tuple[str, ...]) -> None:
    use_packages(lambda: names)


def run_step(job: Job) -> StepResult:
    """Run a step and return its result, with blobs given by their digests."""
    _use_packages(job.packages)
    blobs = _open_store(job.blobs)
    # Outside of `try`, because an unavailable store must not fail the session.
    mapped = {
        digest: blobs.map(digest)
        for digest in {job.state, *job.tasks.values(), *job.contributions.values()}
        if isinstance(digest, str)
    }
    try:
        move = _compute_move(job, mapped)
    except _TEMPORARY:
        raise  # the machine is at fault, not the session
    except CoterieError as error:
        return Failed(reason=error.problem.slug, detail=error.detail)
    short = {}
    if isinstance(move, engine.Opened):
        short = {s: task for s, task in move.tasks.items() if len(task) < ROW_BYTES}
        long = {s: task for s, task in move.tasks.items() if s not in short}
        move = replace(move, tasks=long)
    # Write in parallel, because each write waits for the disk or the object store.
    futures = move.map_payloads(lambda payload: _writers().submit(blobs.put, payload))
    stored: engine.Move[Any] = futures.map_payloads(Future.result)
    if isinstance(stored, engine.Opened):
        return replace(stored, tasks={**stored.tasks, **short})
    return stored


@lru_cache(maxsize=1)
def _open_store(place: BlobLocation) -> FileBlobStore:
    """Open the store once: starting Dask removes its credentials from ``os.environ``."""
    return place.open()


@cache
def _writers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WRITERS)


def _compute_move(job: Job, mapped: Mapping[str, Buffer]) -> engine.Move:
    """Compute the result of the step; ``mapped`` contains the step's blobs by digest."""
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
        open_engine(job.engine, job.blobs, mapped),
    )


def run_step_safely(job: Job) -> Outcome:
    """Run a step; if it crashes, return a description of the error."""
    try:
        return run_step(job)
    except Exception as error:  # noqa: BLE001  the driver handles it
        return describe_crash(error)


def describe_crash(error: Exception) -> Crashed:
    """Describe an exception for the driver, which logs the description.

    The message of an exception that is not our own may contain data, so it is omitted.
    """
    cause = error.detail if isinstance(error, _TEMPORARY) else describe_error(error)
    return Crashed(cause=cause, is_temporary=isinstance(error, (*_TEMPORARY, OSError)))


def serve_jobs(channel: Connection) -> None:
    """Run the jobs that arrive through a channel, until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the driver handles Ctrl-C
    jobs: SimpleQueue[Job] = SimpleQueue()
    # Receives jobs even during a step, and ends the process if its driver dies.
    threading.Thread(target=_receive_jobs, args=(channel, jobs), daemon=True).start()
    while True:
        run_next_job(jobs, channel.send)


def run_next_job(jobs: SimpleQueue[Job], send: Callable[[Outcome], None]) -> None:
    """Run the next job and send its outcome.

    If no other job is waiting, import what later steps of the session need, while its
    parties answer. A process imports numerical code only for the sessions that it runs.
    """
    job = jobs.get()
    outcome = run_step_safely(job)
    send(outcome)
    if isinstance(outcome, engine.Opened) and jobs.empty():
        engine.import_analyst_roles(job.agreement)


def _receive_jobs(channel: Connection, jobs: SimpleQueue[Job]) -> None:
    with suppress(EOFError, OSError):
        while True:
            jobs.put(channel.recv())
    os._exit(1)


# The driver's side

_REAP_SECONDS: Final = 5.0


class WorkerDied(LoggableError):
    """Raised if a worker process ended unexpectedly; the message says how."""


class WorkerProcess:
    """A worker process, which is reused so that its imports are reused too.

    A step that kills its process does not affect other steps. Jobs and outcomes are
    sent through a pipe. If the process at one end dies, even by ``kill -9``, the other
    one notices.

    spawns: whether it starts processes of its own, which a daemon cannot do.
    """

    def __init__(self, *, spawns: bool = False) -> None:
        context = multiprocessing.get_context("spawn")
        self._channel, far_end = context.Pipe()
        self._child = context.Process(
            target=serve_jobs, args=(far_end,), daemon=not spawns
        )
        try:
            self._child.start()
        finally:
            far_end.close()  # only the child has it now, so its death closes the pipe
        self._lock = threading.Lock()
        self._pending: SimpleQueue[Future[Outcome]] = SimpleQueue()
        self._exit = ""  # how the process ended, once it has
        self._listener = threading.Thread(target=self._receive_outcomes, daemon=True)
        self._listener.start()

    def submit(self, job: Job) -> Future[Outcome]:
        """Start a step; the future raises :class:`WorkerDied` if the process dies.

        Raises WorkerDied if the process has already died.
        """
        future: Future[Outcome] = Future()
        with self._lock:
            if self._exit:
                raise WorkerDied(self._exit)
            self._pending.put(future)
        try:
            self._channel.send(job)
        except OSError:
            raise WorkerDied("The worker process ended before it had a step.") from None
        return future

    def kill(self) -> None:
        """Kill the process and wait for its end."""
        self._child.kill()
        self._child.join()
        self._listener.join()
        self._channel.close()

    def _receive_outcomes(self) -> None:
        with suppress(EOFError, OSError):  # OSError if it died while it sent a message
            while True:
                outcome: Outcome = self._channel.recv()
                self._pending.get().set_result(outcome)
        self._child.join(_REAP_SECONDS)
        with self._lock:
            self._exit = _describe_exit(self._child.exitcode)
        while not self._pending.empty():
            self._pending.get().set_exception(WorkerDied(self._exit))


def _describe_exit(status: int | None) -> str:
    """Return a sentence that says how a process ended.

    status: the exit code, or minus the number of a signal; None if it is not known.
    """
    if status is None or status >= 0:
        return f"The worker process ended with status {status}."
    number = signal.Signals(-status)
    sentence = f"The worker process was killed by signal {number.value} ({number.name})"
    if number is not signal.SIGKILL:
        return f"{sentence}."
    # The maximum over all ended child processes, which Linux reports in KiB.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return f"{sentence}: out of memory? It used at most {peak:,.0f} MiB."

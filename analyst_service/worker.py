"""One step, in a process of its own: blobs in, blobs out.

Only digests cross the border of the process. The step is deterministic and blobs are
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
from dataclasses import dataclass, field
from functools import cache, lru_cache
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Final

from typing_extensions import Buffer

from analyst_service.blobs import BlobPlace, FileBlobStore
from analyst_service.engines.engine_factory import EngineChoice
from analyst_service.logs import OwnWords, describe
from clustering_protocols import engine
from clustering_protocols.common.errors import CoterieError, StorageFull, Unavailable
from clustering_protocols.protocol_packages import use_packages

_PASSING = (StorageFull, Unavailable)
_WRITERS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a step needs; without a state it is the first.

    ``contributions``: the bytes of short ones, and the digests of others.
    ``chooses``: whether it follows a choice among runs, of the run ``chosen``.
    ``packages``: the distributions whose protocols count, as the settings name them.
    """

    blobs: BlobPlace
    agreement: bytes = field(repr=False)
    state: str | None
    tasks: Mapping[str, str]
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

    payloads: Sequence[str] = ()  # nothing is stored for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """The step came to no end; ``is_passing`` if the trouble is the machine's."""

    what: str
    is_passing: bool


Followed = engine.Move[str] | Failed
Outcome = Followed | Crashed


@cache
def _use_packages(names: tuple[str, ...]) -> None:
    use_packages(lambda: names)


def run(job: Job) -> Followed:
    """Run one step."""
    _use_packages(job.packages)
    blobs = _open_store(job.blobs)
    named = {each for each in job.contributions.values() if isinstance(each, str)}
    states = () if job.state is None else (job.state,)
    # a store that is away fails no session
    mapped = {d: blobs.map(d) for d in {*states, *job.tasks.values(), *named}}
    try:
        move = _advance(job, mapped)
    except _PASSING:
        raise  # the machines' trouble, and no session's
    except CoterieError as error:
        return Failed(reason=error.problem.slug, detail=error.detail)
    # each waits for the disk, or for the store: some of them wait together
    written = move.map_payloads(lambda payload: _writers().submit(blobs.put, payload))
    return written.map_payloads(Future.result)


@lru_cache(maxsize=1)
def _open_store(place: BlobPlace) -> FileBlobStore:
    """Return the store, opened once: workers started here cost the process its keys."""
    return place.open()


@cache
def _writers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WRITERS)


def _advance(job: Job, mapped: Mapping[str, Buffer]) -> engine.Move:
    """Return the next move; ``mapped``: the blobs of the step, by digest."""
    if job.state is None:
        return engine.begin(job.agreement)
    if job.chooses:
        return engine.choose(job.agreement, mapped[job.state], job.chosen)
    return engine.advance(
        job.agreement,
        mapped[job.state],
        {slot: mapped[digest] for slot, digest in job.tasks.items()},
        {
            slot: mapped[each] if isinstance(each, str) else each
            for slot, each in job.contributions.items()
        },
        job.engine.open(job.blobs, mapped),
    )


def attempt(job: Job) -> Outcome:
    """Run one step; tell what went wrong if it crashes."""
    try:
        return run(job)
    except Exception as error:  # noqa: BLE001  whatever it is, the driver has to know
        return describe_crash(error)


def describe_crash(error: Exception) -> Crashed:
    """Return what a driver needs to know of an exception.

    Its text only where it is ours and of the machines: another may hold values.
    """
    what = error.detail if isinstance(error, _PASSING) else describe(error)
    return Crashed(what=what, is_passing=isinstance(error, (*_PASSING, OSError)))


def serve(channel: Connection) -> None:
    """Run the jobs that come through a channel, until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver
    jobs: SimpleQueue[Job] = SimpleQueue()
    # listens beside the steps: a step whose driver is dead is for nobody
    threading.Thread(target=_listen, args=(channel, jobs), daemon=True).start()
    while True:
        take(jobs, channel.send)


def take(jobs: SimpleQueue[Job], tell: Callable[[Outcome], None]) -> None:
    """Run the next job and tell what came of it.

    Where no job waits, what later steps of its session need is imported then, while
    parties answer: a process imports the mathematics of its own sessions alone.
    """
    job = jobs.get()
    outcome = attempt(job)
    tell(outcome)
    if isinstance(outcome, engine.Opened) and jobs.empty():
        engine.prepare(job.agreement)


def _listen(channel: Connection, jobs: SimpleQueue[Job]) -> None:
    with suppress(EOFError, OSError):
        while True:
            jobs.put(channel.recv())
    os._exit(1)


# The other end: a process that runs one step at a time, and is watched while it lives

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
        self._child = context.Process(target=serve, args=(theirs,), daemon=not has_own)
        try:
            self._child.start()
        finally:
            theirs.close()  # the child alone holds it now: its death closes it
        self._lock = threading.Lock()
        self._pending: Future[Outcome] | None = None
        self._is_over = False
        self._how = ""
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def submit(self, job: Job) -> Future[Outcome]:
        """Begin a step; the future raises :class:`WorkerDied` if the process ends.

        Raises WorkerDied if the process has ended while it had nothing to do.
        """
        future: Future[Outcome] = Future()
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

    def _next_outcome(self) -> Outcome | None:
        """Return what the process says next, or None if it is dead."""
        try:
            outcome: Outcome = self._channel.recv()
        except (EOFError, OSError):  # the latter where it died within a message
            return None
        return outcome

    def _settle(self) -> Future[Outcome]:
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

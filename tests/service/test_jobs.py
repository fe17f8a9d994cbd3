"""Steps: the driver, its leases, and worker processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import sqlalchemy as sa
from support.analyst_process import wait_for
from support.in_process import Api, ByHand, StartApi
from support.repeats import thorough

from analyst_service import models, steps, worker
from analyst_service.blobs import BlobLocation, FileBlobStore
from analyst_service.database import Database
from analyst_service.driver import RETRY_SECONDS, Driver
from analyst_service.models import Session, Task
from analyst_service.process_context import LEASE_SECONDS
from analyst_service.settings import Settings
from analyst_service.steps import (
    STEP_ATTEMPTS,
    Lease,
    close_and_lease,
    close_rounds,
    take_lease,
)
from analyst_service.worker import WorkerProcess
from clustering_protocols import engine, simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import StorageFull
from clustering_protocols.engine import Opened
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from tests.service.drivers import race, with_a_worker
from tests.service.samples import LAYOUT, PARTS


def stepping(api: Api, params: Dummy | None = None) -> ByHand:
    """Return a session whose first step is due and not yet taken."""
    session = api.open(params or Dummy(), PARTS).join(turn=False)
    assert session.status["state"] == "stepping"
    return session


def complete(session: ByHand) -> ByHand:
    session.answer(turn=False)
    return session


def blob_of(session: ByHand) -> Path:
    """Return the path of a blob that only this session's next step reads."""
    place = (session.id, 1, 1, LAYOUT.names[0])
    with session.api.service.database.read() as transaction:
        digest = transaction.get_one(models.Contribution, place).digest
    return session.api.service.blobs.path(digest)


def standing(session: ByHand) -> tuple[str, int]:
    return session.status["state"], session.status["round"]


# Steps that crash


def a_bad_and_a_good_one(
    api: Api, params: Dummy, stage: str = "opening"
) -> tuple[ByHand, ByHand]:
    """Return two sessions, each with a complete round."""
    both = api.open(params, PARTS).join(), api.open(Dummy(n_clusters=3), PARTS).join()
    for session in both:
        session.until(stage)
    for session in both:
        complete(session)
    return both


def assert_tried_and_failed(
    api: Api, bad: ByHand, good: ByHand, caplog: pytest.LogCaptureFixture
) -> None:
    limit = STEP_ATTEMPTS
    for _ in range(limit + 2):  # one worker: one step at a turn
        api.turn()
    assert standing(bad)[0] == "failed"
    assert bad.status["reason"] == Problem.INTERNAL.slug
    assert f"started {limit} times" in bad.status["detail"]
    assert caplog.text.count(f"step of {bad.id}: ") == limit
    assert standing(good) == ("collecting", standing(bad)[1] + 1)
    assert good.finish().status["state"] == "completed"


@pytest.mark.usefixtures("in_blobs")
def test_a_step_that_crashes_is_tried_again_and_fails_alone(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = a_bad_and_a_good_one(api, Dummy())
    missing = blob_of(bad)
    missing.unlink()
    assert_tried_and_failed(api, bad, good, caplog)
    assert missing.name not in caplog.text, "the text of an error is not logged"


def test_an_unstorable_outcome_fails_only_its_session(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    """The database refuses the row of the session's next round."""
    bad, good = a_bad_and_a_good_one(api, Dummy())

    @sa.event.listens_for(api.service.database.engine, "before_cursor_execute")
    def refuse(_c: Any, _cursor: Any, text: str, values: Any, *_more: Any) -> None:
        if text.startswith("UPDATE sessions") and "quorum" in text and bad.id in values:
            raise OverflowError("a value that this database does not take")

    assert_tried_and_failed(api, bad, good, caplog)


@pytest.mark.usefixtures("in_blobs")
def test_a_step_that_recovers_is_not_failed_for_its_past(api: Api) -> None:
    session = complete(api.open(Dummy(), PARTS).join())
    blob = blob_of(session)
    content = blob.read_bytes()
    for _ in range(STEP_ATTEMPTS - 1):
        blob.unlink()
        api.turn()
        blob.write_bytes(content)
    api.turn()
    assert standing(session) == ("collecting", 2)


# Worker processes that die


class Doomed(WorkerProcess):
    """A process that is killed whenever it steps for one session."""

    def __init__(self, session: str, when: str) -> None:
        super().__init__()
        self.session, self.when = session, when

    def submit(self, job: worker.Job) -> Future[worker.Outcome]:
        if self.session.encode() not in job.agreement:
            return super().submit(job)
        if self.when == "idle":
            self._child.kill()
            self._child.join()
        else:
            os.kill(self._child.pid or 0, signal.SIGSTOP)
        future = super().submit(job)
        time.sleep(0.2 if self.when == "stepping" else 0)
        self._child.kill()
        return future


@pytest.mark.parametrize("when", ["idle", "stepping"])
@pytest.mark.quick(1)
def test_a_session_that_kills_its_worker_fails_alone(
    start_api: StartApi,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    monkeypatch.setattr("analyst_service.steps.STEP_ATTEMPTS", 3)
    with start_api() as api:
        bad, good = a_bad_and_a_good_one(api, Dummy())

        class DoomedDriver(Driver):
            def _start_process(self) -> WorkerProcess:
                return Doomed(bad.id, when)

        with DoomedDriver(api.service):
            wait_for(lambda: bad.status["state"] == "failed", 60)
            wait_for(lambda: standing(good) == ("collecting", 2), 60)
        assert bad.status["reason"] == Problem.INTERNAL.slug
        assert "started 3 times" in bad.status["detail"]
        assert "WorkerDied" in caplog.text
        api.driver.turn()
        assert good.finish().status["state"] == "completed"


def test_a_worker_ends_with_the_process_that_it_works_for() -> None:
    heard, told = FORKS.Pipe(duplex=False)
    service = FORKS.Process(target=with_a_worker, args=(told,))
    service.start()
    pid = heard.recv()
    service.kill()
    service.join()
    wait_for(lambda: not Path(f"/proc/{pid}").exists())


# Steps that are repeated, or come too late


def job_of(session: ByHand) -> tuple[Lease, worker.Job]:
    service = session.api.service
    taken = service.database.transact(close_and_lease, service)
    assert taken is not None
    assert taken[0].session.id == session.id
    return taken


def follow(session: ByHand, lease: Lease, followed: worker.StepResult) -> bool:
    service = session.api.service
    stored = service.database.transact(
        steps.store_result, service.blobs, lease, followed
    )
    return bool(stored)


def confirming(api: Api) -> ByHand:
    session = api.open(Dummy(fail_at="confirm"), PARTS).join().until("count")
    session.answer()
    return complete(session)


OUTCOMES: dict[type[worker.StepResult], Callable[[Api], ByHand]] = {
    engine.Opened: lambda api: complete(api.open(Dummy(), PARTS).join()),
    engine.Closed: lambda api: complete(
        api.open(Dummy(), PARTS).join().until("closing")
    ),
    worker.Failed: confirming,
}


@pytest.mark.threat(54)
@pytest.mark.parametrize("kind", OUTCOMES, ids=lambda kind: kind.__name__)
def test_only_the_driver_with_the_lease_stores_an_outcome(
    api: Api, kind: type[worker.StepResult]
) -> None:
    session = OUTCOMES[kind](api)
    slow, job = job_of(session)
    api.clock.forward(LEASE_SECONDS)
    quick, same = job_of(session)
    backwards = dict(reversed(same.contributions.items()))
    first, second = (
        worker.run_step(job),
        worker.run_step(replace(same, contributions=backwards)),
    )
    assert first == second, "in whatever order answers came"
    assert not follow(session, slow, second)
    assert standing(session)[0] == "stepping"
    assert follow(session, quick, first)
    stored = api.stored()
    assert not follow(session, slow, second)
    assert not follow(session, quick, first)
    assert api.stored() == stored


def test_a_last_answer_during_the_deadline_check_counts(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL counts answers when a query begins, and locks rows when it ends."""
    late = api.open(Dummy(), PARTS, deadlines={"round": 60}).join()
    session = complete(api.open(Dummy(), PARTS, deadlines={"round": 60}).join())
    api.clock.forward(61)
    counted_before = sa.select(models.Session, sa.false().label("is_complete")).where(
        models.Session.state == "collecting"
    )
    with monkeypatch.context() as patch:
        patch.setattr(steps, "_CLOSING", counted_before)
        api.service.database.transact(close_rounds)
    assert standing(session) == ("stepping", 1)
    assert standing(late)[0] == "expired"


# What a worker imports, and when


def test_an_idle_worker_prepares_the_later_steps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = BlobLocation(folder=tmp_path)
    first, second = (any_job(place, agreement) for agreement in (b"1", b"2"))
    done: list[bytes] = []
    monkeypatch.setattr(worker, "run_step_safely", lambda _: OPENED)
    monkeypatch.setattr(worker.engine, "import_analyst_roles", done.append)
    jobs: SimpleQueue[worker.Job] = SimpleQueue()
    jobs.put(first)
    jobs.put(second)
    told: list[worker.Outcome] = []
    worker.run_next_job(jobs, told.append)
    assert (told, done) == ([OPENED], [])
    worker.run_next_job(jobs, told.append)
    assert (told, done) == ([OPENED, OPENED], [b"2"])
    over = engine.Closed(results={}, summary=None)
    monkeypatch.setattr(worker, "run_step_safely", lambda _: over)
    jobs.put(first)
    worker.run_next_job(jobs, told.append)
    assert done == [b"2"], "a session that is over has no later steps"


OPENED = engine.Opened(
    round=1,
    attempt=1,
    stage="s",
    stage_index=0,
    n_stages=2,
    quorum=1,
    state="",
    tasks={},
    progress=None,
)


def any_job(place: BlobLocation, agreement: bytes) -> worker.Job:
    return worker.Job(
        blobs=place,
        agreement=agreement,
        state=None,
        tasks={},
        contributions={},
    )


# Leases: several drivers, in several processes, and one outcome


DRIVERS = thorough(ci=4, nightly=8)
FORKS = multiprocessing.get_context("forkserver")
# each of many processes would import these anew
FORKS.set_forkserver_preload(
    [
        "analyst_service.driver",
        "clustering_protocols.protocols.dummy.analyst",
        "psycopg",
        "sqlalchemy.dialects.postgresql.psycopg",
        "sqlalchemy.dialects.sqlite",
    ]
)


def row_of(session: ByHand) -> Session:
    with session.api.service.database.read() as transaction:
        return transaction.get_one(Session, session.id)


# Drivers in processes of their own


@contextmanager
def racing(settings: Settings, rounds: int) -> Iterator[tuple[Any, Any]]:
    """Start processes that race; yield their barrier and the queue of winners."""
    barrier, wins = FORKS.Barrier(DRIVERS + 1), FORKS.Queue()
    arguments = (settings, barrier, wins, rounds)
    drivers = [FORKS.Process(target=race, args=arguments) for _ in range(DRIVERS)]
    for driver in drivers:
        driver.start()
    try:
        yield barrier, wins
    finally:
        barrier.abort()
        for driver in drivers:
            driver.join()


def step_again(database: Database, session_id: str) -> None:
    """Put a session back before its first step."""
    with database.write() as transaction:
        transaction.execute(sa.delete(Task).where(Task.session_id == session_id))
        first = {"state": "stepping", "round": 0, "attempt": 0, "state_digest": None}
        transaction.execute(
            sa.update(Session).where(Session.id == session_id).values(first)
        )


@pytest.mark.thorough
@pytest.mark.threat(53)
def test_of_processes_that_race_for_a_step_one_wins_each_time(each_api: Api) -> None:
    rounds = thorough(ci=20, nightly=1000)
    session = stepping(each_api)
    service = each_api.service
    with racing(service.settings, rounds) as (barrier, wins):
        for turn in range(rounds):
            step_again(service.database, session.id)
            barrier.wait(60)
            barrier.wait(60)
            assert wins.get(timeout=60)
            assert wins.empty(), turn
            assert (row_of(session).state, row_of(session).round) == ("collecting", 1)


# Leases by hand


def take_of(api: Api) -> Lease | None:
    return api.service.database.transact(take_lease, api.service.lease_span)


@pytest.mark.threat(55)
def test_heartbeats_renew_the_lease_of_a_long_step(each_api: Api) -> None:
    session = stepping(each_api)
    driver = Beating(each_api.service)
    driver.begin()
    token = row_of(session).lease_token
    for _ in range(10):
        each_api.clock.forward(LEASE_SECONDS / 2)
        driver._renew_leases()
        assert take_of(each_api) is None
    assert (row_of(session).lease_token, row_of(session).step_attempts) == (token, 1)
    driver.finish()
    assert session.status["state"] == "collecting"


class Beating(Driver):
    """A driver whose steps end when a test says so."""

    def _start_process(self) -> Unfinished:
        return Unfinished()

    def begin(self) -> None:
        self._start_processes()
        self._start_steps()

    def finish(self) -> None:
        [step] = self._running
        process = step.process
        assert isinstance(process, Unfinished)
        step.future.set_result(worker.run_step(process.job))
        self._collect_outcomes()


class Unfinished(WorkerProcess):
    job: worker.Job
    ended = False

    def __init__(self) -> None:
        pass

    def submit(self, job: worker.Job) -> Future[worker.Outcome]:
        self.job = job
        return Future()

    def kill(self) -> None:
        self.ended = True


@pytest.mark.threat(55)
def test_a_driver_that_lost_its_lease_ends_the_step(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    session = stepping(api)
    driver = Beating(api.service)
    driver.begin()
    [step] = driver._running
    api.clock.forward(LEASE_SECONDS)
    assert take_of(api) is not None
    driver._renew_leases()
    assert step.process.ended
    assert driver._running == []
    assert f"step of {session.id}: the lease was lost" in caplog.text


@pytest.mark.threat(56)
def test_a_step_begun_too_often_fails_only_its_session(api: Api) -> None:
    """Each of its drivers was killed, so none reported a crash."""
    bad = stepping(api)
    for begun in range(1, STEP_ATTEMPTS + 1):
        lease = take_of(api)
        assert lease is not None
        assert lease.begun == begun
        api.clock.forward(LEASE_SECONDS)
    good = stepping(api)
    api.turn()
    assert bad.status["state"] == "failed"
    assert bad.status["reason"] == Problem.INTERNAL.slug
    assert f"started {STEP_ATTEMPTS} times" in bad.status["detail"]
    assert good.finish().status["state"] == "completed"


def test_a_driver_that_stops_gives_its_steps_back_at_once(api: Api) -> None:
    session = stepping(api)
    with Beating(api.service) as driver:
        wait_for(lambda: driver._running)
    row = row_of(session)
    assert (row.lease_token, row.step_attempts) == (None, 0)
    api.turn()
    assert session.status["state"] == "collecting"


@pytest.mark.threat(59)
def test_a_step_on_a_full_disk_is_retried_without_counting(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session = stepping(api)
    with monkeypatch.context() as full:
        full.setattr(worker, "run_step", Mock(side_effect=StorageFull("No room.")))
        for _ in range(3 * STEP_ATTEMPTS):
            api.turn()
            api.clock.forward(RETRY_SECONDS)
    assert row_of(session).step_attempts == 0
    assert f"step of {session.id}: No room." in caplog.text
    api.turn()
    assert session.status["state"] == "collecting"


@pytest.mark.threat(62)
def test_a_clock_that_jumps_back_neither_stops_nor_repeats_a_step(
    each_api: Api,
) -> None:
    """Two analysts that disagree about the time may take a step from each other."""
    session, service = stepping(each_api), each_api.service
    leases = []
    for turn in range(2 * STEP_ATTEMPTS):
        leases.append(take_of(each_api))
        each_api.clock.forward(-3600 * (turn + 1))
    assert (session.status["state"], row_of(session).step_attempts) == ("stepping", 1)
    first, last = leases[0], leases[-1]
    assert first is not None
    assert last is not None
    job = service.database.query(steps.build_job, service, last.session)
    followed = worker.run_step(job)
    assert not follow(session, first, followed)
    assert follow(session, last, followed)
    assert session.status["state"] == "collecting"


# What a step writes


@pytest.mark.usefixtures("in_blobs")
def test_payloads_wait_for_the_disk_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is written only once a second one waits to be written."""
    layout = Layout.lattice(3)  # three tasks and the state
    data = simulation.split(np.eye(30), layout, seed=1).data
    agreement = simulation.build_agreement(Dummy(), layout, data, seed=1, session="s")
    pair, put = threading.Barrier(2, timeout=30), FileBlobStore.put

    def put_in_pairs(self: FileBlobStore, content: bytes) -> str:
        pair.wait()
        return put(self, content)

    monkeypatch.setattr(FileBlobStore, "put", put_in_pairs)
    opened = worker.run_step(any_job(BlobLocation(folder=tmp_path), agreement))
    assert isinstance(opened, Opened)
    assert len(opened.payloads) == 4
    assert all(map(FileBlobStore(tmp_path).has, opened.payloads))

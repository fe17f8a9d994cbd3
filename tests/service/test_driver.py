"""The driver: steps that crash, stop halfway, or come too late."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sqlalchemy as sa
from support.analyst_process import wait_for

from analyst_service.blobs.files import BlobPlace
from analyst_service.jobs import service as jobs_service, worker
from analyst_service.jobs.driver import Driver
from analyst_service.jobs.processes import Process
from analyst_service.jobs.service import (
    STEP_ATTEMPTS,
    Lease,
    close_and_take,
    close_rounds,
)
from analyst_service.process_context import LEASE_SECONDS
from analyst_service.storage import models
from clustering_protocols import engine, simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from support.in_process import Api, ByHand

StartApi = Callable[..., "AbstractContextManager[Api]"]

LAYOUT = Layout.lattice(2)
X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, LAYOUT, seed=1)


def stepping(api: Api, params: Dummy | None = None) -> ByHand:
    """A session whose first step has to run; the driver has not looked yet."""
    session = api.open(params or Dummy(), PARTS).join(turn=False)
    assert session.status["state"] == "stepping"
    return session


def complete(session: ByHand) -> ByHand:
    """Answer the open round; the driver has not looked yet."""
    session.answer(turn=False)
    return session


def blob_of(session: ByHand) -> Path:
    """A blob that the next step of this session reads, and of no other."""
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
    """Two sessions of which a round is complete."""
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
    assert f"begun {limit} times" in bad.status["detail"]
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
    """Whatever a database refuses: here the row of a session's next round."""
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


class Doomed(Process):
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


@pytest.mark.parametrize("when", ["idle", "beginning", "stepping"])
def test_a_session_that_kills_its_worker_fails_alone(
    start_api: StartApi,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    monkeypatch.setattr("analyst_service.jobs.service.STEP_ATTEMPTS", 3)
    with start_api() as api:
        bad, good = a_bad_and_a_good_one(api, Dummy())

        class DoomedDriver(Driver):
            def _new_process(self) -> Process:
                return Doomed(bad.id, when)

        with DoomedDriver(api.service):
            wait_for(lambda: bad.status["state"] == "failed", 60)
            wait_for(lambda: standing(good) == ("collecting", 2), 60)
        assert bad.status["reason"] == Problem.INTERNAL.slug
        assert "begun 3 times" in bad.status["detail"]
        assert "WorkerDied" in caplog.text
        api.driver.turn()
        assert good.finish().status["state"] == "completed"


def with_a_worker(told: Connection) -> None:
    told.send(Process()._child.pid)
    threading.Event().wait()


def test_a_worker_ends_with_the_process_that_it_works_for() -> None:
    spawn = multiprocessing.get_context("spawn")
    heard, told = spawn.Pipe(duplex=False)
    service = spawn.Process(target=with_a_worker, args=(told,))
    service.start()
    pid = heard.recv()
    service.kill()
    service.join()
    wait_for(lambda: not is_alive(pid))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# Steps that are repeated, or come too late


def job_of(session: ByHand) -> tuple[Lease, worker.Job]:
    """Take the step of a session, as a driver does."""
    service = session.api.service
    taken = service.database.transact(close_and_take, service)
    assert taken is not None
    assert taken[0].name == session.id
    return taken


def follow(session: ByHand, lease: Lease, followed: worker.Followed) -> bool:
    service = session.api.service
    stored = service.database.transact(
        jobs_service.follow, service.blobs, lease, followed
    )
    return bool(stored)


def confirming(api: Api) -> ByHand:
    session = api.open(Dummy(fail_at="confirm"), PARTS).join().until("count")
    session.answer()
    return complete(session)


OUTCOMES: dict[type[worker.Followed], Callable[[Api], ByHand]] = {
    engine.Opened: lambda api: complete(api.open(Dummy(), PARTS).join()),
    engine.Closed: lambda api: complete(
        api.open(Dummy(), PARTS).join().until("closing")
    ),
    worker.Failed: confirming,
}
every_outcome = pytest.mark.parametrize(
    "kind", OUTCOMES, ids=lambda kind: kind.__name__
)


@every_outcome
def test_no_outcome_of_a_cancelled_session_is_stored(
    api: Api, kind: type[worker.Followed]
) -> None:
    session = OUTCOMES[kind](api)
    lease, job = job_of(session)
    followed = worker.run(job)
    assert isinstance(followed, kind)
    api.send("POST", f"{session.path}/cancel", session.key)
    before = api.stored()
    assert not follow(session, lease, followed)
    assert api.stored() == before


@pytest.mark.threat(54)
@every_outcome
def test_only_the_driver_with_the_lease_stores_an_outcome(
    api: Api, kind: type[worker.Followed]
) -> None:
    session = OUTCOMES[kind](api)
    slow, job = job_of(session)
    api.clock.forward(LEASE_SECONDS)
    quick, same = job_of(session)
    first, second = worker.run(job), worker.run(same)
    assert first == second
    assert not follow(session, slow, second)
    assert standing(session)[0] == "stepping"
    assert follow(session, quick, first)
    stored = api.stored()
    assert not follow(session, slow, second)
    assert not follow(session, quick, first)
    assert api.stored() == stored


def test_a_step_does_not_depend_on_the_order_of_contributions(api: Api) -> None:
    _, job = job_of(OUTCOMES[engine.Closed](api))
    backwards = dict(reversed(job.contributions.items()))
    assert list(backwards) != list(job.contributions)
    assert worker.run(replace(job, contributions=backwards)) == worker.run(job)


# Restarts


def test_a_step_left_open_is_run_after_a_restart(
    start_api: StartApi,
) -> None:
    with start_api() as api:
        later = complete(api.open(Dummy(), PARTS).join())
        api.service.database.transact(close_rounds)
        first = stepping(api)
        assert standing(later) == ("stepping", 1)
    with start_api(driven=True) as api:
        first.api = later.api = api
        wait_for(lambda: standing(first) == ("collecting", 1))
        wait_for(lambda: standing(later) == ("collecting", 2))


def test_a_last_answer_during_the_deadline_check_counts(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL counts answers as of a query's beginning, and locks as it ends."""
    late = api.open(Dummy(), PARTS, deadlines={"round": 60}).join()
    session = complete(api.open(Dummy(), PARTS, deadlines={"round": 60}).join())
    api.clock.forward(61)
    counted_before = sa.select(models.Session, sa.false().label("is_complete")).where(
        models.Session.state == "collecting"
    )
    with monkeypatch.context() as patch:
        patch.setattr(jobs_service, "_CLOSING", counted_before)
        api.service.database.transact(close_rounds)
    assert standing(session) == ("stepping", 1)
    assert standing(late)[0] == "expired"


def test_a_driver_that_stops_leaves_its_sessions_for_the_next(api: Api) -> None:
    with Driver(api.service):
        pass
    session = stepping(api)
    api.turn()
    assert standing(session) == ("collecting", 1)


# What a worker imports, and when


def test_an_idle_worker_prepares_the_later_steps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = (any_job(tmp_path, agreement) for agreement in (b"1", b"2"))
    done: list[bytes] = []
    monkeypatch.setattr(worker, "attempt", lambda _: OPENED)
    monkeypatch.setattr(worker.engine, "prepare", done.append)
    jobs: SimpleQueue[worker.Job] = SimpleQueue()
    jobs.put(first)
    jobs.put(second)
    told: list[worker.Outcome] = []
    worker.take(jobs, told.append)
    assert (told, done) == ([OPENED], [])
    worker.take(jobs, told.append)
    assert (told, done) == ([OPENED, OPENED], [b"2"])


def test_a_worker_prepares_nothing_for_a_session_that_is_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    over = engine.Closed(results={}, summary=None)
    done: list[bytes] = []
    monkeypatch.setattr(worker, "attempt", lambda _: over)
    monkeypatch.setattr(worker.engine, "prepare", done.append)
    jobs: SimpleQueue[worker.Job] = SimpleQueue()
    jobs.put(any_job(tmp_path, b"1"))
    worker.take(jobs, lambda _: None)
    assert done == []


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


def any_job(folder: Path, agreement: bytes) -> worker.Job:
    return worker.Job(
        blobs=BlobPlace(folder=folder),
        agreement=agreement,
        state=None,
        tasks={},
        contributions={},
    )

"""Leases: several drivers, in several processes, and one outcome."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import numpy as np
import pytest
import sqlalchemy as sa
from support.analyst_process import wait_for
from support.repeats import thorough

from analyst_service.clock import SystemClock
from analyst_service.jobs import worker
from analyst_service.jobs.driver import RETRY_SECONDS, Driver
from analyst_service.jobs.processes import Process
from analyst_service.jobs.service import STEP_ATTEMPTS, Lease, follow, job_of, take
from analyst_service.process_context import LEASE_SECONDS
from analyst_service.settings import Settings
from analyst_service.storage.database import Database
from analyst_service.storage.models import Session, Task
from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import StorageFull
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from tests.service.drivers import drive, race

if TYPE_CHECKING:
    from support.in_process import Api, ByHand

LAYOUT = Layout.lattice(2)
X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, LAYOUT, seed=1)
DRIVERS = thorough(ci=4, nightly=8)
FORKS = multiprocessing.get_context("forkserver")
# each of many processes would import these anew
FORKS.set_forkserver_preload(
    [
        "analyst_service.jobs.driver",
        "clustering_protocols.protocols.dummy.analyst",
        "psycopg",
        "sqlalchemy.dialects.postgresql.psycopg",
        "sqlalchemy.dialects.sqlite",
    ]
)


def stepping(api: Api) -> ByHand:
    """A session whose first step has to run."""
    return api.open(Dummy(), PARTS).join(turn=False)


def row_of(session: ByHand) -> Session:
    with session.api.service.database.read() as transaction:
        return transaction.get_one(Session, session.id)


# Drivers in processes of their own


@contextmanager
def racing(settings: Settings, rounds: int) -> Iterator[tuple[Any, Any]]:
    """Lend the barrier and the list of winners of processes that race."""
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
def test_of_processes_that_race_for_a_step_one_wins_each_time(
    each_api: Api,
) -> None:
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


class DriverProcess:
    """A driver in a process of its own."""

    def __init__(self, settings: Settings, *, held: bool) -> None:
        self.heard, told = FORKS.Pipe(duplex=False)
        go, self.go = FORKS.Pipe(duplex=False)
        self.process = FORKS.Process(
            target=drive, args=(settings, told, go), kwargs={"held": held}
        )
        self.process.start()
        assert self.hears() == "drives"

    def hears(self) -> str:
        assert self.heard.poll(60)
        return str(self.heard.recv())

    def signal(self, which: signal.Signals) -> None:
        os.kill(self.process.pid or 0, which)

    def end(self) -> None:
        self.process.kill()
        self.process.join()


@pytest.fixture
def start_driver(each_api: Api) -> Iterator[Callable[..., DriverProcess]]:
    """Start drivers beside an analyst in this process; their leases are short."""
    each_api.clock.time = SystemClock().now()
    settings = each_api.service.settings
    with ExitStack() as started:

        def start(*, held: bool = False) -> DriverProcess:
            driver = DriverProcess(settings, held=held)
            started.callback(driver.end)
            return driver

        yield start


StartDriver = Callable[..., DriverProcess]


@pytest.mark.threat(54)
def test_a_driver_that_slept_through_its_lease_stores_nothing(
    each_api: Api, start_driver: StartDriver
) -> None:
    session = stepping(each_api)
    sleeper = start_driver(held=True)
    assert sleeper.hears() == "has stepped"
    sleeper.signal(signal.SIGSTOP)
    quick = start_driver()
    wait_for(lambda: session.status["state"] == "collecting")
    quick.end()
    stored = each_api.stored()
    sleeper.go.send("continue")
    sleeper.signal(signal.SIGCONT)
    other = stepping(each_api)
    assert sleeper.hears() == "has stepped", "it has been refused, and continues"
    mine = [row for row in each_api.stored()[0]["tasks"] if session.id in row]
    assert mine == [row for row in stored[0]["tasks"] if session.id in row]
    assert (row_of(session).round, row_of(other).state) == (1, "stepping")


@pytest.mark.threat(52)
def test_a_driver_that_is_killed_is_followed_by_another(
    each_api: Api, start_driver: StartDriver
) -> None:
    session = stepping(each_api)
    killed = start_driver(held=True)
    assert killed.hears() == "has stepped"
    killed.end()
    assert session.status["state"] == "stepping"
    start_driver()
    wait_for(lambda: session.status["state"] == "collecting")
    assert row_of(session).step_attempts == 0


# Leases by hand


def take_of(api: Api) -> Lease | None:
    return api.service.database.transact(take, api.service.lease_span)


@pytest.mark.threat(55)
def test_heartbeats_renew_the_lease_of_a_long_step(
    each_api: Api,
) -> None:
    session = stepping(each_api)
    driver = Beating(each_api.service)
    driver.begin()
    token = row_of(session).lease_token
    for _ in range(10):
        each_api.clock.forward(LEASE_SECONDS / 2)
        driver._renew()
        assert take_of(each_api) is None
    assert (row_of(session).lease_token, row_of(session).step_attempts) == (token, 1)
    driver.finish()
    assert session.status["state"] == "collecting"


class Beating(Driver):
    """A driver whose steps end when a test says so."""

    def _new_process(self) -> Unfinished:
        return Unfinished()

    def begin(self) -> None:
        self._start_processes()
        self._start_steps()

    def finish(self) -> None:
        [step] = self._running
        process = step.process
        assert isinstance(process, Unfinished)
        step.future.set_result(worker.run(process.job))
        self._collect_outcomes()


class Unfinished(Process):
    job: worker.Job
    ended = False

    def __init__(self) -> None:
        pass

    def submit(self, job: worker.Job) -> Future[worker.Outcome]:
        self.job = job
        return Future()

    def end(self) -> None:
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
    driver._renew()
    assert step.process.ended
    assert driver._running == []
    assert f"step of {session.id}: the lease was lost" in caplog.text


@pytest.mark.threat(56)
def test_a_step_begun_too_often_fails_only_its_session(
    each_api: Api,
) -> None:
    """Its drivers were killed, each time: nobody said that it crashed."""
    bad = stepping(each_api)
    for begun in range(1, STEP_ATTEMPTS + 1):
        lease = take_of(each_api)
        assert lease is not None
        assert lease.begun == begun
        each_api.clock.forward(LEASE_SECONDS)
    good = stepping(each_api)
    each_api.turn()
    assert bad.status["state"] == "failed"
    assert bad.status["reason"] == Problem.INTERNAL.slug
    assert f"begun {STEP_ATTEMPTS} times" in bad.status["detail"]
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
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = stepping(api)
    with monkeypatch.context() as full:
        full.setattr(worker, "run", Mock(side_effect=StorageFull("No room.")))
        for _ in range(3 * STEP_ATTEMPTS):
            api.turn()
            api.clock.forward(RETRY_SECONDS)
    assert row_of(session).step_attempts == 0
    api.turn()
    assert session.status["state"] == "collecting"


@pytest.mark.threat(62)
def test_to_take_over_a_lease_that_holds_is_no_attempt(each_api: Api) -> None:
    """Two analysts that disagree about the time may take a step from each other."""
    session = stepping(each_api)
    for turn in range(2 * STEP_ATTEMPTS):
        assert take_of(each_api) is not None
        each_api.clock.forward(-3600 * (turn + 1))
    assert (session.status["state"], row_of(session).step_attempts) == ("stepping", 1)


@pytest.mark.threat(62)
def test_a_driver_with_a_wrong_clock_takes_no_step(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    api.clock.ahead = timedelta(seconds=-7200)
    session = stepping(api)
    driver = Beating(api.service)
    driver._compare_clocks()
    driver.begin()
    assert driver._running == []
    assert "7200 seconds behind the database server's" in caplog.text
    refusal = api.send("GET", "/readyz")
    assert refusal.status_code == 503
    assert "7200 seconds behind" in refusal.json()["detail"]

    api.clock.ahead = timedelta(seconds=LEASE_SECONDS / 4)
    api.clock.forward(2)
    driver._compared = -math.inf
    driver._compare_clocks()
    driver.begin()
    assert [step.lease.name for step in driver._running] == [session.id]
    assert api.send("GET", "/readyz").status_code == 200


@pytest.mark.threat(62)
@pytest.mark.parametrize("jump", [-3600, -600, 600, 3600], ids="{:+} s".format)
def test_a_clock_jump_neither_stops_nor_repeats_a_step(
    each_api: Api, jump: int
) -> None:
    session = stepping(each_api)
    first = take_of(each_api)
    assert first is not None
    each_api.clock.forward(jump)
    second = take_of(each_api)
    assert second is not None
    database, service = each_api.service.database, each_api.service
    followed = worker.run(database.query(job_of, service, first.session))
    assert not database.transact(follow, service.blobs, first, followed)
    assert database.transact(follow, service.blobs, second, followed)
    assert session.status["state"] == "collecting"

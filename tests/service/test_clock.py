"""The clock that several analysts share."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from support.in_process import HandClock

from analyst_service.clock import ServerClock, SystemClock
from analyst_service.storage.database import Database

SECOND = timedelta(seconds=1)


def test_the_monotonic_clock_continues_from_the_servers_time() -> None:
    server, own = HandClock(), HandClock()
    own.forward(7200)
    clock = ServerClock(server.now, own)
    assert server.now() <= clock.now() < server.now() + SECOND
    assert abs(clock.skew() - 7200 * SECOND) < SECOND
    own.forward(-86_400)  # somebody sets the machine's clock: nobody here sees it
    read = [clock.now() for _ in range(100)]
    assert all(earlier <= later for earlier, later in pairwise(read))
    assert read[-1] < server.now() + SECOND
    server.forward(3600)  # the server's clock is set: it is the one that counts
    assert abs(clock.skew() + 82_800 * SECOND) < SECOND
    assert server.now() <= clock.now() < server.now() + SECOND


def test_a_server_that_does_not_answer_is_no_time() -> None:
    def away() -> datetime:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        ServerClock(away).now()


@pytest.mark.postgres
def test_analysts_of_one_server_share_its_clock(postgres_url: str) -> None:
    database = Database(postgres_url)
    clock = database.clock
    assert isinstance(clock, ServerClock)
    # of this machine, on which the server runs too
    assert abs(clock.now() - SystemClock().now()) < SECOND
    assert abs(clock.skew()) < SECOND
    database.close()


def test_a_file_is_of_one_machine_and_its_clock_counts(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'test.db'}")
    assert isinstance(database.clock, SystemClock)
    assert not database.clock.skew()
    database.close()

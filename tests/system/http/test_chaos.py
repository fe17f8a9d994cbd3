"""Three analysts over one PostgreSQL, killed again and again while sessions run."""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from support.analyst_process import Crowd, wait_for
from support.databases import Databases
from support.repeats import on_command
from support.warm import with_constants

from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from tests.system.http.several import PARTS, Fleet, arrived, assert_whole, fleet

N_SESSIONS = 25
N_AT_FIRST = 6
N_KILLS = 20
AWAY_BEFORE = (7, 14)  # kills before which the database is away for a moment
AWAY_SECONDS = 2.0
PROTOCOLS: tuple[Params, ...] = (
    DataCollaboration(n_clusters=3, dimensions="all_but_one"),
    LosslessFederated(
        n_clusters=2, max_iter=4, small_cohorts="allow", allow_two_parties=True
    ),
    Dummy(n_clusters=3, void_attempts=1),
)
SETTINGS = {
    **with_constants(
        {
            "analyst_service.process_context.LEASE_SECONDS": 3,
            "analyst_service.retention.SWEEP_SECONDS": 0.3,
        }
    ),
    "COTERIE_CACHE_BYTES": "0",
}

pytestmark = [*on_command("analysts killed at random"), pytest.mark.postgres]


@pytest.mark.threat(162)
def test_twenty_kills_over_twenty_five_sessions_lose_nothing(
    databases: Databases, tmp_path: Path, session_id: str
) -> None:
    """A killed analyst comes back without its blobs, as on another host."""
    chance = random.Random()  # kills come by chance even where what is drawn does not
    (tmp_path / "objects").mkdir()
    store = (tmp_path / "objects").as_uri()
    with (
        databases.current("postgresql", tmp_path) as url,
        fleet(tmp_path, url, store, environment=SETTINGS) as running,
        ExitStack() as stack,
    ):
        sessions = open_sessions(running, tmp_path, session_id, stack)
        crowds = [next(sessions) for _ in range(N_AT_FIRST)]
        for number in range(N_KILLS):
            stored = arrived(running, crowds) + chance.randint(1, 12)
            wait_for(lambda: arrived(running, crowds) >= stored)  # noqa: B023  waited for at once
            assert any(is_under_way(crowd) for crowd in crowds)
            if number in AWAY_BEFORE:
                take_away(url)
            kill_one(running, chance)
            crowds += [crowd for crowd in [next(sessions, None)] if crowd]
        assert len(crowds) == N_SESSIONS
        for crowd in crowds:
            assert_whole(crowd)
            assert crowd.session.status().state == "completed"


def open_sessions(
    running: Fleet, folder: Path, name: str, stack: ExitStack
) -> Iterator[Crowd]:
    """Open and start one session after another, each in a home of its own."""
    for number in range(N_SESSIONS):
        params = PROTOCOLS[number % len(PROTOCOLS)]
        home, session = folder / f"home-{number}", f"{name}-{number}"
        crowd = Crowd(running, home, params, PARTS, session=session)
        stack.callback(crowd.close)
        crowd.start()
        yield crowd


def is_under_way(crowd: Crowd) -> bool:
    return any(thread.is_alive() for thread in crowd.threads.values())


def kill_one(running: Fleet, chance: random.Random) -> None:
    """Kill any of the analysts at any moment; others continue without it for a while."""
    time.sleep(chance.uniform(0, 0.5))
    analyst = chance.choice(running.analysts)
    analyst.kill()
    time.sleep(chance.uniform(0, 0.5))
    running.on_new_host(analyst)


def take_away(url: str) -> None:
    """Cut everybody's connections to a database, and refuse new ones for a moment."""
    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [name],
        )
        time.sleep(AWAY_SECONDS)
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')

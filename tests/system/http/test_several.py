"""Several analysts on several hosts: one PostgreSQL, one store, no shared disk."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.analyst_process import wait_for
from support.databases import Databases
from support.repeats import thorough
from support.warm import with_constants

from clustering_protocols.protocols.dummy import Dummy
from tests.system.http.several import (
    LAYOUT,
    PARTS,
    Fleet,
    Gather,
    arrived,
    assert_whole,
    fleet,
    gatherer,
    start_sessions,
)

A = LAYOUT.names[0]
TURNS = thorough(ci=1, nightly=8)
# caches are emptied and orphaned blobs are looked for all the time
SETTINGS = {
    **with_constants(
        {
            "analyst_service.process_context.LEASE_SECONDS": 0.5,
            "analyst_service.retention.SWEEP_SECONDS": 0.2,
        }
    ),
    "COTERIE_CACHE_BYTES": "0",
    "COTERIE_DRAIN_SECONDS": "300",  # until a second signal, however busy the machine is
}


@pytest.fixture(scope="module")
def three(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("several")
    (folder / "objects").mkdir()
    store = (folder / "objects").as_uri()
    with (
        databases.current("postgresql", folder) as url,
        fleet(folder, url, store, environment=SETTINGS) as running,
    ):
        yield running


@pytest.fixture
def several(three: Fleet) -> Fleet:
    for each in three.analysts:
        each.start_unless_running()
    return three


@pytest.fixture
def gathering(several: Fleet, home: Path, session_id: str) -> Iterator[Gather]:
    with gatherer(several, home, session_id) as gather:
        yield gather


@pytest.mark.postgres
@pytest.mark.threat(50)
def test_an_analyst_stopping_answers_all_and_parties_move_on(
    several: Fleet, gathering: Gather
) -> None:
    """A rolling upgrade: one is told to end, says so, and is gone; others continue."""
    crowd = gathering(0, Dummy(n_clusters=3))
    going = several.analysts[0]
    assert going.process is not None
    held: list[httpx.Response] = []
    first = crowd.party(A, httpx.Client(base_url=going.url, timeout=60))
    first.enrol(PARTS.data[A])
    path = f"{going.url}/v1/sessions/{crowd.session.id}/task?wait=25"
    secret = {"Authorization": f"Bearer {first.stored.load_identity().token}"}
    poll = threading.Thread(target=lambda: held.append(httpx.get(path, headers=secret)))
    poll.start()
    time.sleep(0.5)  # until it is held
    going.process.send_signal(signal.SIGTERM)
    wait_for(lambda: httpx.get(f"{going.url}/readyz").status_code == 503)
    assert httpx.get(f"{going.url}/healthz").headers["connection"] == "close"
    poll.join(60)
    assert held[0].status_code == 204
    going.process.send_signal(signal.SIGTERM)
    assert going.process.wait(30) in {0, -signal.SIGTERM}
    going.process = None
    crowd.start()
    assert_whole(crowd)


@pytest.mark.postgres
@pytest.mark.thorough
@pytest.mark.threat(52)
def test_each_analyst_is_killed_in_turn_and_nothing_is_lost(
    several: Fleet, gathering: Gather
) -> None:
    """A killed analyst comes back without its blobs, as on another host."""
    for turn in range(TURNS):
        crowds = start_sessions(gathering, turn)
        for number, analyst in enumerate(several.analysts):
            wait_for(lambda: arrived(several, crowds) >= 20 * (number + 1))  # noqa: B023  waited for at once
            analyst.kill()
            several.on_new_host(analyst)
        assert any(thread.is_alive() for c in crowds for thread in c.threads.values())
        for crowd in crowds:
            assert_whole(crowd)

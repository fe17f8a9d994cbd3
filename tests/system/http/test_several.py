"""Several analysts on several hosts: one PostgreSQL, one store, no shared disk."""

import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import cycle
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest
from support.analyst_process import Analyst, Crowd, wait_for
from support.databases import Databases, cut_off
from support.repeats import thorough
from support.warm import with_constants

from clustering_protocols import simulation
from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms import signed_logs
from clustering_protocols.terms.terms import Layout
from party_sdk.analyst_client.http_analyst import HttpAnalyst, connect

LAYOUT = Layout.lattice(2)
PARTS = simulation.split(np.random.default_rng(0).normal(size=(60, 4)), LAYOUT, seed=1)
A = LAYOUT.names[0]
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
N_SESSIONS = thorough(ci=8, nightly=25)
N_AT_FIRST = 6
N_KILLS = thorough(ci=3, nightly=20)
AWAY_BEFORE = (1, 7, 14)  # kills before which the database is away for a moment
AWAY_SECONDS = 2.0
PROTOCOLS: tuple[Params, ...] = (
    DataCollaboration(n_clusters=3, dimensions="all_but_one"),
    LosslessFederated(
        n_clusters=2, max_iter=4, small_cohorts="allow", allow_two_parties=True
    ),
    Dummy(n_clusters=3, void_attempts=1),
)


class Rotating(httpx.BaseTransport):
    """Sends requests to one address, and to the next one after any error there."""

    def __init__(self, urls: Sequence[str], first: int) -> None:
        self._inner = httpx.HTTPTransport(verify=False)  # no https, no authorities
        self._urls = [httpx.URL(url) for url in urls]
        self._at = first

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        there = self._urls[self._at % len(self._urls)]
        request.url = request.url.copy_with(host=there.host, port=there.port)
        request.headers["Host"] = there.netloc.decode()
        try:
            answer = self._inner.handle_request(request)
        except httpx.TransportError:
            self._at += 1
            raise
        if answer.status_code in {502, 503, 504}:
            self._at += 1
        return answer

    def close(self) -> None:
        self._inner.close()


class Fleet(Analyst):
    """Analysts with separate data folders; each new client starts at the next address."""

    def __init__(self, analysts: Sequence[Analyst]) -> None:
        self.analysts = analysts
        self.url, self.key = analysts[0].url, analysts[0].key
        self.database_url = analysts[0].environment["COTERIE_DATABASE_URL"]
        self._firsts = cycle(range(len(analysts)))

    def connect(self, http: httpx.Client | None = None) -> HttpAnalyst:
        way = Rotating([each.url for each in self.analysts], next(self._firsts))
        there = http or httpx.Client(base_url=self.url, transport=way, timeout=60)
        return connect(self.url, patience=120, http=there)


@pytest.fixture(scope="module")
def three(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("several")
    (folder / "objects").mkdir()
    shared = {
        "COTERIE_BLOB_STORE": (folder / "objects").as_uri(),
        "COTERIE_IDENTITY_FILE": str(folder / "identity.json"),
        **SETTINGS,
    }
    with databases.current("postgresql", folder) as url, ExitStack() as running:
        analysts = [Analyst(folder / f"analyst-{n}", url, shared) for n in range(3)]
        yield Fleet([running.enter_context(each) for each in analysts])


@pytest.fixture
def several(three: Fleet) -> Fleet:
    for each in three.analysts:
        each.start_unless_running()
    return three


def assert_whole(crowd: Crowd) -> None:
    """Assert that labels equal the simulation's, and that audit and ledgers agree."""
    assert crowd.labels() == crowd.expected()
    audit = crowd.session.audit()
    for slot in crowd.layout.names:
        log = crowd.party(slot).stored.ledger
        own = Institution.derive(crowd.keys[slot])
        signed = signed_logs.sign_ledger(
            own, crowd.session.id, slot, log.verified_lines
        )
        receipts = [
            entry for entry in log.verified_entries() if entry["event"] == "receipt"
        ]
        assert signed_logs.compare_logs(audit, signed) == len(receipts) > 0


@pytest.mark.postgres
@pytest.mark.threat(50)
def test_an_analyst_stopping_answers_all_and_parties_move_on(
    several: Fleet, home: Path, session_id: str
) -> None:
    """A rolling upgrade: one is told to end, says so, and is gone; others continue."""
    params = Dummy(n_clusters=3)
    with closing(Crowd(several, home, params, PARTS, session=session_id)) as crowd:
        going = several.analysts[0]
        assert going.process is not None
        held: list[httpx.Response] = []
        first = crowd.party(A, httpx.Client(base_url=going.url, timeout=60))
        first.enrol(PARTS.data[A])
        path = f"{going.url}/v1/sessions/{crowd.session.id}/task?wait=25"
        secret = {"Authorization": f"Bearer {first.stored.load_identity().token}"}
        poll = threading.Thread(
            target=lambda: held.append(httpx.get(path, headers=secret))
        )
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
@pytest.mark.threat(52, 162)
def test_analysts_killed_at_random_lose_nothing(
    several: Fleet, tmp_path: Path, session_id: str
) -> None:
    """A killed analyst comes back without its blobs, as on another host."""
    chance = random.Random()  # kills come by chance even where what is drawn does not
    with ExitStack() as stack:
        sessions = open_sessions(several, tmp_path, session_id, stack)
        crowds = [next(sessions) for _ in range(N_AT_FIRST)]
        for number in range(N_KILLS):
            stored = count_uploads(several, crowds) + chance.randint(1, 12)
            wait_for(lambda: count_uploads(several, crowds) >= stored)  # noqa: B023  waited for at once
            assert any(
                thread.is_alive() for c in crowds for thread in c.threads.values()
            )
            if number in AWAY_BEFORE:
                with cut_off(several.database_url):
                    time.sleep(AWAY_SECONDS)
            kill_one(several, chance)
            crowds += [crowd for crowd in [next(sessions, None)] if crowd]
        crowds += sessions
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


def count_uploads(several: Fleet, crowds: Sequence[Crowd]) -> int:
    names = [crowd.session.id for crowd in crowds]
    with psycopg.connect(several.database_url) as connection:
        found = connection.execute(
            "SELECT count(*) FROM audit WHERE session_id = ANY(%s) "
            "AND line LIKE '%%\"contribution\"%%'",
            [names],
        ).fetchone()
    assert found is not None
    return int(found[0])


def kill_one(running: Fleet, chance: random.Random) -> None:
    """Kill any of the analysts at any moment; others continue without it for a while."""
    time.sleep(chance.uniform(0, 0.5))
    analyst = chance.choice(running.analysts)
    analyst.kill()
    time.sleep(chance.uniform(0, 0.5))
    shutil.rmtree(analyst.data_dir / "blobs")
    analyst.start()

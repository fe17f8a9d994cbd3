"""Several analysts with one database and one blob store, and clients for them."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path

import httpx
import numpy as np
import psycopg
from support.analyst_process import Analyst, Crowd
from support.warm import with_constants

from clustering_protocols import simulation
from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms import signed_logs
from clustering_protocols.terms.terms import Layout
from party_sdk.analyst_client.http_analyst import HttpAnalyst, connect

LAYOUT = Layout.lattice(2)
PARTS = simulation.split(np.random.default_rng(0).normal(size=(60, 4)), LAYOUT, seed=1)
N_SESSIONS = 8

Gather = Callable[[int, Params], Crowd]


class Rotating(httpx.BaseTransport):
    """Sends requests to one address, and to the next one after any error there."""

    def __init__(self, urls: Sequence[str], first: int = 0) -> None:
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
        self._firsts = cycle(range(len(analysts)))

    def connect(self, http: httpx.Client | None = None) -> HttpAnalyst:
        urls = [each.url for each in self.analysts]
        way = Rotating(urls, next(self._firsts))
        there = http or httpx.Client(base_url=self.url, transport=way, timeout=60)
        return connect(self.url, patience=120, http=there)

    def on_new_host(self, analyst: Analyst) -> None:
        """Start a killed analyst again without its blobs, as on a new host."""
        shutil.rmtree(analyst.data_dir / "blobs")
        analyst.start()


@contextmanager
def fleet(
    folder: Path,
    database_url: str,
    store: str,
    n_analysts: int = 3,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Fleet]:
    shared = {
        "COTERIE_BLOB_STORE": store,
        "COTERIE_IDENTITY_FILE": str(folder / "identity.json"),
        **with_constants({"analyst_service.process_context.LEASE_SECONDS": 0.5}),
        **(environment or {}),
    }
    analysts = [
        Analyst(folder / f"analyst-{number}", database_url, shared)
        for number in range(n_analysts)
    ]
    with ExitStack() as running:
        yield Fleet([running.enter_context(each) for each in analysts])


@contextmanager
def gatherer(several: Fleet, home: Path, name: str) -> Iterator[Gather]:
    """Yield a function that opens sessions by number and closes them at the end."""
    with ExitStack() as crowds:

        def make(number: int, params: Params) -> Crowd:
            session = f"{name}-{number}"
            crowd = Crowd(several, home, params, PARTS, session=session)
            crowds.callback(crowd.close)
            return crowd

        yield make


def start_sessions(gather: Gather, turn: int = 0) -> list[Crowd]:
    """Start eight sessions: one with large arrays, the others with a void attempt."""
    crowds = []
    for number in range(N_SESSIONS):
        params = Dummy(n_clusters=3, void_attempts=1)
        crowds.append(
            gather(
                turn * N_SESSIONS + number,
                params
                if number
                else DataCollaboration(n_clusters=3, dimensions="all_but_one"),
            )
        )
    for crowd in crowds:
        crowd.start()
    return crowds


def arrived(several: Fleet, crowds: Sequence[Crowd]) -> int:
    names = [crowd.session.id for crowd in crowds]
    url = several.analysts[0].environment["COTERIE_DATABASE_URL"]
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT count(*) FROM audit WHERE session_id = ANY(%s) "
            "AND line LIKE '%%\"contribution\"%%'",
            [names],
        ).fetchone()
    assert found is not None
    return int(found[0])


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

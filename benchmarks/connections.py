"""Many clients of several analysts over one PostgreSQL, which takes so many connections.

    python -m benchmarks.connections --postgres URL [--analysts 3] [--clients 180]
                                     [--requests 4500]

Clients ask for the list of sessions, each as soon as it is answered, of the analysts in
turn. Prints the answers by status, the most connections that were open at once, and how
many the server takes. Ends with 1 where an answer was not 200.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
from collections import Counter
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

import httpx
import psycopg

from benchmarks.analyst_process import AnalystProcess
from benchmarks.rounds import empty

_WATCH_SECONDS = 0.05


def main() -> int:
    """Print what came of all requests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--postgres", required=True, help="URL of a server's database.")
    parser.add_argument("--analysts", type=int, default=3)
    parser.add_argument("--clients", type=int, default=180)
    parser.add_argument("--requests", type=int, default=4500)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = stack.enter_context(empty(options.postgres))
        shared = {
            "COTERIE_IDENTITY_FILE": str(folder / "identity.json"),
            "COTERIE_BLOB_STORE": folder.as_uri(),
            "COTERIE_REQUESTS_PER_SECOND": "100000",
            "COTERIE_MAX_REQUESTS": "10000",
        }
        analysts = []
        for number in range(options.analysts):
            own = folder / f"analyst-{number}"
            own.mkdir()
            process = AnalystProcess(own, database, environment=shared)
            analysts.append(stack.enter_context(process))
        watch = stack.enter_context(Watch(database))
        statuses = asyncio.run(ask(analysts, options.clients, options.requests))
    answers = ", ".join(f"{n} x {status}" for status, n in sorted(statuses.items()))
    print(f"{answers}; at most {watch.most} of {watch.limit} connections")
    return 0 if set(statuses) == {200} else 1


class Watch:
    """Counts the connections to a database while it is entered."""

    def __init__(self, database: str) -> None:
        self.most = 0
        self._ended = threading.Event()
        self._connection = psycopg.connect(database, autocommit=True)
        self.limit = int(self._one("SHOW max_connections"))
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        self._connection.close()

    def _watch(self) -> None:
        while not self._ended.wait(_WATCH_SECONDS):
            here = "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            found = self._one(f"SELECT count(*) FROM pg_stat_activity {here}")  # noqa: S608  no word of it is given
            self.most = max(self.most, int(found))

    def _one(self, query: str) -> str:
        [(found,)] = self._connection.execute(query.encode()).fetchall()
        return str(found)


async def ask(
    analysts: list[AnalystProcess], clients: int, requests: int
) -> Counter[int]:
    """Return how often each status came."""
    statuses: Counter[int] = Counter()
    places = cycle(range(len(analysts)))
    left = requests

    async def one(analyst: AnalystProcess) -> None:
        nonlocal left
        headers = {"Authorization": f"Bearer {analyst.key}"}
        async with httpx.AsyncClient(
            base_url=analyst.url, headers=headers, timeout=120
        ) as client:
            while left > 0:
                left -= 1
                statuses[(await client.get("/v1/sessions")).status_code] += 1

    await asyncio.gather(*(one(analysts[next(places)]) for _ in range(clients)))
    return statuses


if __name__ == "__main__":
    raise SystemExit(main())

"""How long the analyst takes to refuse a request, and to list many sessions.

refusals  no credential, a malformed one, an unknown and a revoked key, in turns: medians,
          and how far they are apart. A difference would tell which keys exist.
lists     the first page of an administrator's sessions, and one from the middle.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from statistics import median

import httpx
import sqlalchemy as sa

from analyst_service.credentials import Role, create_key, revoke_credential
from analyst_service.database import Database, SystemClock
from analyst_service.models import Session, Task
from analyst_service.settings import Settings
from benchmarks.speed.analyst_process import AnalystProcess
from benchmarks.speed.figures import Figure

PATH = "/v1/sessions"
PAGES, PAGE = 20, 1000


def figures(*, small: bool) -> Iterator[Figure]:
    """Yield the figures of refusals and of lists."""
    tries, n_sessions = (20, 2000) if small else (1000, 100_000)
    with tempfile.TemporaryDirectory() as folder:
        analyst = AnalystProcess(Path(folder))
        revoked, administrator = fill_database(Path(folder), n_sessions)
        with analyst, httpx.Client(base_url=analyst.url, timeout=60) as http:
            yield from measure_refusals(http, revoked, tries)
            yield from measure_lists(http, administrator, n_sessions)


def fill_database(folder: Path, n_sessions: int) -> tuple[str, str]:
    """Fill the database; return a revoked key, and an administrator's."""
    settings, clock = Settings(data_dir=folder), SystemClock()
    database = Database(settings.database)
    # stored, so that no blob is missing at a start
    task = settings.blob_location.open().put(b"")
    with database.write() as transaction:
        gone, revoked = create_key(transaction, Role.COORDINATOR, "revoked", 86_400)
        revoke_credential(transaction, gone)
        owner, administrator = create_key(
            transaction, Role.ADMINISTRATOR, "benchmark", 86_400
        )
        transaction.execute(sa.insert(Session), rows(owner, clock, n_sessions))
        transaction.execute(sa.insert(Task), tasks(min(PAGE, n_sessions), task))
    database.close()
    return revoked, administrator


def rows(owner: str, clock: SystemClock, n_sessions: int) -> list[dict[str, object]]:
    """Return rows of sessions: the first PAGE await answers, the others are cancelled."""
    now = clock.now()
    numbers = ("round", "attempt", "stage_index", "n_stages", "quorum")
    same = {
        "owner_id": owner,
        "title": "",
        "terms": b'{"protocol":{"name":"dc"}}',
        "state": "cancelled",
        **dict.fromkeys(numbers, 0),
        "deadline": now + timedelta(days=1),
        "created_at": now,
        "changed_at": now,
    }
    names = [f"s-{number:06}" for number in range(n_sessions)]
    first = {"state": "collecting", "round": 3, "attempt": 1}
    return [
        {"id": name, "name": name, **same, **(first if number < PAGE else {})}
        for number, name in enumerate(names)
    ]


def tasks(n_sessions: int, digest: str) -> list[dict[str, object]]:
    """Return what the parties of the first sessions are asked."""
    return [
        {
            "session_id": f"s-{number:06}",
            "round": 3,
            "attempt": 1,
            "slot": slot,
            "digest": digest,
        }
        for number in range(n_sessions)
        for slot in ("north", "south", "west", "east")
    ]


def measure_refusals(http: httpx.Client, revoked: str, tries: int) -> Iterator[Figure]:
    """Yield how long refusals take."""
    headers = {
        "none": {},
        "malformed": {"Authorization": "Basic x"},
        "unknown": {"Authorization": "Bearer ck_" + "x" * 43},
        "revoked": {"Authorization": f"Bearer {revoked}"},
    }
    took: dict[str, list[float]] = {name: [] for name in headers}
    bodies = set()
    for _ in range(tries):
        for name, sent in headers.items():
            begin = time.perf_counter()
            answer = http.get(PATH, headers=sent)
            took[name].append(1000 * (time.perf_counter() - begin))
            document = answer.json() | {"request_id": ""}
            bodies.add((answer.status_code, repr(sorted(document.items()))))
    medians = [median(times) for times in took.values()]
    apart = max(medians) - min(medians)
    yield Figure("refusals, slowest kind, ms", max(medians))
    yield Figure("refusals, ms between the medians of two kinds", apart, 2)
    yield Figure("refusals, different answers", len(bodies), 1)


def measure_lists(http: httpx.Client, key: str, n_sessions: int) -> Iterator[Figure]:
    """Yield how long pages of a long list take."""
    sent = {"Authorization": f"Bearer {key}"}
    at = http.get(PATH, headers=sent).json()["next"].partition("~")[0]  # time of all
    for name, after in (("first", ""), ("middle", f"{at}~s-{n_sessions // 2:06}")):
        took = []
        for _ in range(PAGES):
            begin = time.perf_counter()
            page = http.get(PATH, headers=sent, params={"after": after})
            took.append(1000 * (time.perf_counter() - begin))
            page.raise_for_status()
        shown_as = f"list of {n_sessions:,} sessions, {name} page, ms"
        yield Figure(shown_as, median(took), 200)

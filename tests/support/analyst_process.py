"""A real analyst in a process of its own; coordinator and parties around any analyst."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, Self

import httpx
import sqlalchemy as sa

from analyst_service.credentials import Role, create_key
from analyst_service.database import Database
from analyst_service.models import Base
from analyst_service.settings import Settings
from clustering_protocols import simulation
from clustering_protocols.contract import Params
from clustering_protocols.terms.terms import Layout
from coterie import Coordinator, Party, Policy, Result
from party_sdk.analyst_client.http_analyst import HttpAnalyst, connect
from party_sdk.coordinator.session import CoordinatedSession
from party_sdk.party.asker import Asker
from support.databases import write_current_file
from support.in_process import Api
from support.warm import Warm, stock

COTERIE = str(Path(sys.executable).parent / "coterie")

# Below the ports that the system hands out, so that none goes to a connection between
# the probe and its use. Whoever holds the lock of a port's file has the port.
_PORTS = count(10_000 + os.getpid() * 331 % 20_000)
_LOCKS = Path(tempfile.gettempdir()) / f"ports-of-tests-{os.getuid()}"
_HELD: list[IO[str]] = []


def free_port() -> int:
    _LOCKS.mkdir(exist_ok=True)
    for port in _PORTS:
        lock = (_LOCKS / str(port)).open("w")
        with suppress(OSError), socket.socket() as probe:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            probe.bind(("127.0.0.1", port))
            _HELD.append(lock)
            return port
        lock.close()
    raise AssertionError("the ports do not end")


class Analyst:
    """`coterie serve` as a process that can be killed and started again.

    ``cold``: it starts a new Python; else it runs from the stock of imports.
    """

    def __init__(
        self,
        data_dir: Path,
        database_url: str = "",
        environment: Mapping[str, str] | None = None,
        program: str = COTERIE,
        *,
        cold: bool = False,
    ) -> None:
        self.program = program
        self.cold = cold
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.data_dir = data_dir
        self.log = data_dir / "analyst.log"
        self.environment = {
            **os.environ,
            "COTERIE_HIDDEN_PROTOCOLS": "",
            **(environment or {}),
            "COTERIE_DATA_DIR": str(data_dir),
            "COTERIE_DATABASE_URL": database_url,
        }
        self.process: subprocess.Popen[bytes] | Warm | None = None
        data_dir.mkdir(parents=True, exist_ok=True)
        settings = Settings(data_dir=data_dir, database_url=database_url)
        if not database_url:
            write_current_file(data_dir / "coterie.db")
        database = Database(settings.database)
        database.migrate()
        args = Role.COORDINATOR, "tests", 86_400
        _, self.key = database.transact(create_key, *args)
        database.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()

    def start(self) -> None:
        self.process = self._launch()
        until = time.monotonic() + 300  # much, for many things may start at once
        while self.process.poll() is None and time.monotonic() < until:
            # no request: that would cost as much CPU time as the start itself
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.02)
        raise RuntimeError(self.log.read_text())

    def _launch(self) -> subprocess.Popen[bytes] | Warm:
        words = [self.program, "serve", "--port", str(self.port)]
        where = {"env": self.environment, "cwd": self.data_dir}
        with self.log.open("ab") as log, Path(os.devnull).open("rb") as nothing:
            if not self.cold:
                stock()
                files = [each.fileno() for each in (nothing, log, log)]
                return Warm(words, files, **where)
            return subprocess.Popen(
                [sys.executable, *words], **where, stdin=nothing, stdout=log, stderr=log
            )

    def start_unless_running(self) -> None:
        """Start it, if a test has left it dead."""
        if self.process is None or self.process.poll() is not None:
            self.start()

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(30)
            self.process = None

    @contextmanager
    def database(self) -> Iterator[sa.Connection]:
        """Lend a connection to its database."""
        url = self.environment["COTERIE_DATABASE_URL"]
        settings = Settings(data_dir=self.data_dir, database_url=url)
        engine = sa.create_engine(settings.database)
        with engine.connect() as connection:
            yield connection
        engine.dispose()

    def kept(self) -> dict[str, bytes]:
        """Return everything that it keeps: files, its log among them, and rows."""
        files = {
            str(path): path.read_bytes()
            for path in self.data_dir.parent.rglob("*")
            if path.is_file()
        }
        assert files[str(self.log)], "the service logs"
        with self.database() as connection:
            for table in Base.metadata.sorted_tables:
                for number, row in enumerate(connection.execute(sa.select(table))):
                    values = (
                        v if isinstance(v, bytes) else str(v).encode() for v in row
                    )
                    files[f"{table.name} {number}"] = b"\t".join(values)
        return files

    def connect(self, http: httpx.Client | None = None) -> HttpAnalyst:
        return connect(self.url, patience=120, http=http)

    def coordinator(self, home: Path, entropy: bytes | None = None) -> Coordinator:
        return Coordinator(
            self.url, self.key, home=home, entropy=entropy, analyst=self.connect()
        )


class House:
    """Homes of a coordinator and of parties, beside an analyst: the SDK as it is.

    ``api``: an analyst, in this process or in one of its own. ``keys``: the entropy of
    each; without them all chance follows from fixed entropy, the name of the session and
    the analyst, or is real if not ``fixed``. ``shared``: all keep their secrets in
    one home, and each looks at what the others have kept of their sums. ``last`` are the
    parties that ran last.
    """

    def __init__(
        self,
        api: Analyst | Api,
        home: Path,
        *,
        keys: Mapping[str, bytes] | None = None,
        fixed: bool = True,
        shared: bool = False,
    ) -> None:
        self.api, self.home = api, home
        self.keys, self.fixed, self.shared = dict(keys or {}), fixed, shared
        self.last: dict[str, Party] = {}
        self.coordinator = api.coordinator(
            self.home_of("coordinator"), self._entropy(simulation.COORDINATOR, 0)
        )

    def home_of(self, who: str) -> Path:
        return self.home if self.shared else self.home / who

    def _entropy(self, who: str, number: int) -> bytes | None:
        fixed = bytes([number]) * 32 if self.fixed else None
        return self.keys[who] if self.keys else fixed

    def open(
        self, name: str, params: Params, layout: Layout, **more: Any
    ) -> CoordinatedSession:
        asked = {"about": "wards", "seed": 1, **more}
        return self.coordinator.create_session(
            params=params, layout=layout, session_id=name, **asked
        )

    def parties(self, session: CoordinatedSession) -> dict[str, Party]:
        invitations = session.invite()
        return {slot: self.accept(session, invitations, slot) for slot in invitations}

    def accept(
        self,
        session: CoordinatedSession,
        invitations: Mapping[str, str],
        slot: str,
        http: httpx.Client | None = None,
        *,
        asker: Asker | None = None,
        choices: Mapping[str, Any] | None = None,
        **rules: Any,
    ) -> Party:
        """Let a party join a session and accept its risks, with rules of its own."""
        accepted = frozenset(session.status().risks)
        return Party.join(
            invitations[slot],
            policy=Policy(**{"accepted_risks": accepted, "least_known": 0, **rules}),
            home=self.home_of(slot),
            entropy=self._entropy(slot, list(invitations).index(slot)),
            analyst=self.api.connect(http),
            asker=asker,
            choices=choices,
        )

    def run(
        self, session: CoordinatedSession, tables: Sequence[Any], **how: Any
    ) -> dict[str, Result]:
        """Let all parties of a session bring their tables; return what they get."""
        parties = self.last = self.parties(session)
        with ThreadPoolExecutor(len(parties)) as pool:
            waiting = {
                slot: pool.submit(party.run, table, **how)
                for (slot, party), table in zip(parties.items(), tables, strict=True)
            }
            return {slot: each.result() for slot, each in waiting.items()}


SEED = 7


class Crowd(House):
    """All parties of one session in threads, with the entropy of a simulation.

    ``at_home``: each party has a home of its own; else all share the coordinator's.
    ``sections``: those of the terms that are not as usual.
    """

    def __init__(
        self,
        analyst: Analyst,
        home: Path,
        params: Params,
        parts: simulation.Split,
        *,
        session: str = "s",
        at_home: bool = False,
        **sections: Any,
    ) -> None:
        keys = simulation.derive_entropies(SEED, session, parts.layout.names)
        super().__init__(analyst, home, keys=keys, shared=not at_home)
        self.analyst, self.params, self.sections = analyst, params, sections
        self.layout, self.data = parts.layout, parts.data
        self._opened = ExitStack()
        self._opened.enter_context(self.coordinator)
        terms = {"about": session, "seed": SEED, **sections}
        self.session = self.open(session, params, self.layout, **terms)
        self.invitations = self.session.invite()
        self.results: dict[str, Result] = {}
        self.errors: dict[str, Exception] = {}
        self.threads: dict[str, threading.Thread] = {}

    def close(self) -> None:
        self._opened.close()

    def party(self, slot: str, http: httpx.Client | None = None) -> Party:
        return self._opened.enter_context(
            self.accept(self.session, self.invitations, slot, http, minimum_rows=1)
        )

    def start(self, *slots: str) -> None:
        for slot in slots or self.layout.names:
            thread = threading.Thread(target=self._run, args=(slot,), daemon=True)
            self.threads[slot] = thread
            thread.start()

    def join(self, timeout: float = 300) -> dict[str, Result]:
        for slot, thread in self.threads.items():
            thread.join(timeout)
            assert not thread.is_alive(), f"{slot} still runs"
        if self.errors:
            raise next(iter(self.errors.values()))
        return self.results

    def labels(self) -> dict[str, list[int]]:
        return {slot: result.labels.tolist() for slot, result in self.join().items()}

    def simulated(self) -> simulation.SimulationResult:
        """The same session in one process: the same terms, data and draws."""
        return simulation.run(
            self.params,
            self.layout,
            self.data,
            seed=SEED,
            session=self.session.id,
            analyst=self.session.terms.identities.analyst,
            dictionary=self.sections.get("dictionary"),
        )

    def expected(self) -> dict[str, list[int]]:
        outcomes = self.simulated().outcomes
        return {slot: outcome.labels.tolist() for slot, outcome in outcomes.items()}

    def _run(self, slot: str) -> None:
        try:
            self.results[slot] = self.party(slot).run(self.data[slot])
        except Exception as error:  # noqa: BLE001  raised again in join
            self.errors[slot] = error


def wait_for(condition: Callable[[], Any], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)

"""A real analyst in a process of its own, and uploads that are ready to be sent.

Shared by the benchmarks of the service. Parties are the dummy's: what they send is as
large as the benchmark asks for, and checked as any contribution is.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import numpy as np

from analyst_service.auth.service import AuthService, Role
from analyst_service.clock import SystemClock
from analyst_service.database import Database
from analyst_service.settings import Settings
from clustering_protocols import engine, enrolment, packets, simulation
from clustering_protocols.contract.party import Memory
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms import Layout
from clustering_protocols.wire.answers import SessionStatus
from party_sdk import _requests
from party_sdk._transport import Transport
from party_sdk.client import AnalystClient


class Rows:
    """As many rows as are asked for, without any data: the dummy only counts."""

    columns: Sequence[str] = ("x",)
    ids = None

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows

    def batches(self) -> Iterator[Any]:
        """Yield nothing; the dummy does not look."""
        yield from ()


@dataclass(frozen=True, kw_only=True)
class Upload:
    """One contribution, ready to be sent."""

    path: str
    token: str
    content: bytes

    @property
    def request(self) -> bytes:
        """Return the head of its HTTP request."""
        headers = {
            "Host": "analyst",
            **_requests.bearer(self.token),
            **_requests.contribution_headers(self.content),
            "Content-Length": str(len(self.content)),
            "Connection": "close",
        }
        lines = [
            f"PUT {self.path} HTTP/1.1",
            *(f"{k}: {v}" for k, v in headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode()


class AnalystProcess:
    """`coterie serve` over an empty folder."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.folder = folder
        database = Database(Settings(data_dir=folder).database)
        database.migrate()
        with database.write() as unit:
            auth = AuthService(unit, SystemClock())
            _, self.key = auth.create_key(Role.COORDINATOR, "benchmark", 86_400)
        database.close()

    def __enter__(self) -> Self:
        environment = os.environ | {
            "COTERIE_HIDDEN_PROTOCOLS": "",
            "COTERIE_DATA_DIR": str(self.folder),
            "COTERIE_DATABASE_URL": "",
            "COTERIE_REQUEST_BURST": "1000000",
        }
        command = [sys.executable, "-m", "party_sdk.cli", "serve", "--port"]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*command, str(self.port)], env=environment, stdout=log, stderr=log
            )
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/readyz").raise_for_status()
            except httpx.HTTPError:
                time.sleep(0.05)
            else:
                return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.wait()

    def memory(self) -> dict[str, int]:
        """Return resident bytes of the service process: in all, and of its own."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        kibibytes = {
            line.split(":")[0]: int(line.split()[1])
            for line in status.splitlines()
            if line.startswith(("VmRSS", "RssAnon", "VmHWM"))
        }
        return {name: size << 10 for name, size in kibibytes.items()}

    @contextmanager
    def client(self) -> Iterator[AnalystClient]:
        """Lend a coordinator's client."""
        transport = Transport(f"http://127.0.0.1:{self.port}", patience=30)
        with transport:
            yield AnalystClient(transport, self.key)

    def uploads(self, session: str, parties: int, n_rows: int) -> list[Upload]:
        """Open a session, join all parties, and return their answers to its second round.

        The second round counts rows: 8 bytes for each.
        """
        layout = Layout.lattice(parties)
        with self.client() as client:
            body = {
                "protocol": {"name": "dummy", "params": Dummy().model_dump()},
                "layout": layout.model_dump(mode="json"),
            }
            client.put_session(session, body)
            codes = client.invite(session, None)
            keys = simulation.entropies(7, session, layout.names)
            members = [
                _Member(client, session, slot, keys, codes[slot], n_rows)
                for slot in layout.names
            ]
            _until(client, session, 1)
            agreement = client.agreement(session)
            for member in members:
                member.greet(agreement)
            _until(client, session, 2)
            return [member.count(agreement) for member in members]


class _Member:
    def __init__(
        self,
        client: AnalystClient,
        session: str,
        slot: str,
        keys: Mapping[str, bytes],
        code: str,
        n_rows: int,
    ) -> None:
        self.session, self.slot, self.entropy = session, slot, keys[slot]
        self.rows = Rows(n_rows)
        terms = client.preview(code).terms.encode()
        line = simulation.member(terms, slot, keys, self.rows)
        proof = enrolment.prove(self.entropy, session, line, code, joins=0)
        self.token = client.join(code, line, proof)
        self.client = client.as_party(self.token)
        self.journal, self.memory = engine.Journal(), Memory()

    def answer(self, agreement: bytes) -> bytes:
        task = self.client.task(self.session, wait=20) or b""
        party = engine.PartyEngine(
            agreement=agreement, slot=self.slot, entropy=self.entropy
        )
        self.journal, self.memory, content, _ = party.reply(
            self.journal, self.memory, task, self.rows
        )
        return content

    def greet(self, agreement: bytes) -> None:
        content = self.answer(agreement)
        self.client.contribute(self.session, 1, 1, content)

    def count(self, agreement: bytes) -> Upload:
        content = self.answer(agreement)
        here = packets.read(content).address
        where = f"rounds/{here.round}/attempts/{here.attempt}/contribution"
        path = f"/v1/sessions/{self.session}/{where}"
        return Upload(path=path, token=self.token, content=content)


def _until(client: AnalystClient, session: str, round_: int) -> SessionStatus:
    while True:
        status = client.session(session)
        if status.state == "collecting" and status.round == round_:
            return status
        if status.over:
            raise RuntimeError(f"the session is {status.state}")
        time.sleep(0.05)


def mebibytes(size: float) -> str:
    """Return a size for people."""
    return f"{size / 2**20:.0f} MiB"


def rows_for(size: int) -> int:
    """Return how many rows make a contribution of about this many bytes."""
    return size // np.dtype(np.int64).itemsize

"""A real analyst in a process of its own, and uploads that are ready to be sent.

Shared by the benchmarks of the service. Parties run `dummy`: what they send is as large
as the benchmark asks for, and checked as any contribution is.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from clustering_protocols import engine, simulation
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import packets
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.terms import Layout
from party_sdk.analyst_client import requests
from party_sdk.analyst_client.http_analyst import HttpAnalyst, connect
from party_sdk.coordinator.coordinator import Coordinator
from party_sdk.coordinator.session import CoordinatedSession

_PATIENCE_SECONDS = 60
_COMMAND = (sys.executable, "-m", "party_sdk.cli")


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
            **requests.bearer_header(self.token),
            **requests.contribution_headers(self.content),
            "Content-Length": str(len(self.content)),
            "Connection": "close",
        }
        lines = [
            f"PUT {self.path} HTTP/1.1",
            *(f"{k}: {v}" for k, v in headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode()


class AnalystProcess:
    """`coterie serve` over an empty folder, with SQLite."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))  # a port that nobody listens on
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = folder
        self._environment = os.environ | {
            "COTERIE_HIDDEN_PROTOCOLS": "",
            "COTERIE_DATA_DIR": str(folder),
            "COTERIE_DATABASE_URL": "",
            "COTERIE_REQUESTS_PER_SECOND": "1000000",
        }
        self._run_command("migrate")
        key = self._run_command("key", "create", "--role", "coordinator", "--json")
        self.key = str(json.loads(key)["key"])

    def _run_command(self, *words: str) -> str:
        """Run a command to its end; return what it printed."""
        return subprocess.run(
            [*_COMMAND, *words],
            env=self._environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def __enter__(self) -> Self:
        command = [*_COMMAND, "serve", "--port", str(self.port)]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                command,
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + _PATIENCE_SECONDS
        while self.process.poll() is None and time.monotonic() < until:
            with suppress(httpx.HTTPError):
                httpx.get(f"{self.url}/readyz").raise_for_status()
                return self
            time.sleep(0.05)
        raise RuntimeError((self.folder / "log").read_text())

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.wait()

    def memory(self) -> dict[str, int]:
        """Return resident bytes of the service process, by the kernel's names."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        kibibytes = {
            line.split(":")[0]: int(line.split()[1])
            for line in status.splitlines()
            if line.startswith(("VmRSS", "RssAnon", "VmHWM"))
        }
        return {name: size << 10 for name, size in kibibytes.items()}

    def processor_seconds(self) -> tuple[float, float]:
        """Return the CPU seconds so far: those of serving, and of stepping rounds.

        Child processes step rounds.
        """
        pid = self.process.pid
        threads = Path(f"/proc/{pid}/task").glob("*/children")
        children = " ".join(thread.read_text() for thread in threads).split()
        return _processor_seconds_of(pid), sum(map(_processor_seconds_of, children))

    @contextmanager
    def client(self) -> Iterator[HttpAnalyst]:
        """Lend a coordinator's client."""
        with connect(self.url, patience=30) as analyst:
            yield analyst.as_coordinator(self.key)

    def prepare_upload(self, session: str, n_rows: int) -> Upload:
        """Open a session of one party, and return its answer to the third round.

        The third round counts rows: 8 bytes for each. It follows the opening, and
        greetings.
        """
        with self.client() as client:
            [member] = join_all(client, session, 1, n_rows)
            for round_ in (1, 2, 3):
                content = member.reply(member.client.task(session, wait=20) or b"")
                if round_ < 3:
                    member.client.contribute(session, round_, 1, content)
            return member.upload(content)


@contextmanager
def open_session(
    folder: Path, parts: Sequence[Any], start: Any, n_updates: int
) -> Iterator[tuple[AnalystProcess, CoordinatedSession]]:
    """Run an analyst, and open a session of parties that hold these parts of the rows.

    The table of each party is ``SLOT.parquet`` in the folder, where everything lies. The
    session is of `llf`, and makes as many updates of the centroids that it starts from.
    """
    params = LosslessFederated(
        n_clusters=len(start),
        scaling="none",
        init="given",
        initial_centroids=tuple(tuple(map(float, row)) for row in start),
        max_iter=n_updates,
        tol=0,
    )
    layout = Layout.lattice(len(parts), 1)
    columns = [f"x{number}" for number in range(parts[0].shape[1])]
    for slot, part in zip(layout.names, parts, strict=True):
        table = pa.table(dict(zip(columns, part.T, strict=True)))
        parquet.write_table(table, folder / f"{slot}.parquet")
    bound = max(float(np.abs(part).max()) for part in parts)
    (folder / "analyst").mkdir()
    with (
        AnalystProcess(folder / "analyst") as analyst,
        Coordinator(analyst.url, analyst.key, home=folder) as coordinator,
    ):
        dictionary = [numeric_schema(columns, -bound, bound)]
        yield (
            analyst,
            coordinator.create_session(
                "benchmark", params, layout, dictionary=dictionary
            ),
        )


def run_parties(
    folder: Path, invitations: Mapping[str, str], risks: Sequence[str]
) -> list[dict[str, float]]:
    """Run all parties of an open session; return what each took, by its own report."""
    command = [sys.executable, "-m", "benchmarks.speed.party", str(folder)]
    parties = [
        subprocess.Popen(
            [*command, slot, invitation, *risks], stdout=subprocess.PIPE, text=True
        )
        for slot, invitation in invitations.items()
    ]
    return [json.loads(party.communicate()[0]) for party in parties]


def join_all(
    client: HttpAnalyst, session: str, parties: int, n_rows: int
) -> list[Member]:
    """Open a session and join all parties; return them once there is an agreement."""
    layout = Layout.lattice(parties)
    body = {
        "protocol": {"name": "dummy", "params": Dummy().model_dump()},
        "layout": layout.model_dump(mode="json"),
    }
    client.put_session(session, body)
    codes = client.invite(session, None)
    keys = simulation.derive_entropies(7, session, layout.names)
    members = [
        Member(client, session, slot, keys, codes[slot], n_rows)
        for slot in layout.names
    ]
    agreement = client.agreement(session)
    for member in members:
        member.agreement = agreement
    return members


class Member:
    """A party that keeps all it knows in memory."""

    def __init__(
        self,
        client: HttpAnalyst,
        session: str,
        slot: str,
        keys: Mapping[str, bytes],
        code: str,
        n_rows: int,
    ) -> None:
        self.session, self.slot, self.entropy = session, slot, keys[slot]
        self.rows = Rows(n_rows)
        terms = client.preview(code).terms.encode()
        line = simulation.enrol(terms, slot, keys, self.rows)
        proof = roster_entries.sign_join(self.entropy, session, line, code, joins=0)
        self.token = client.join(code, line, proof)
        self.client = client.as_party(self.token)
        self.journal, self.memory = engine.Journal(), Memory()
        self.agreement = b""

    def reply(self, task: bytes) -> bytes:
        """Return the answer to a task."""
        party = engine.PartyEngine(
            agreement=self.agreement, slot=self.slot, entropy=self.entropy
        )
        self.journal, self.memory, content, *_ = party.reply(
            self.journal, self.memory, task, self.rows
        )
        return content

    def upload(self, content: bytes) -> Upload:
        """Return an answer, ready to be sent."""
        at = packets.parse(content).address
        where = f"rounds/{at.round}/attempts/{at.attempt}/contribution"
        path = f"/v1/sessions/{self.session}/{where}"
        return Upload(path=path, token=self.token, content=content)


def _processor_seconds_of(pid: int | str) -> float:
    """Return the CPU time of a process, as the kernel counts it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

"""What a round costs the analyst: a hundred sessions of five parties of the dummy at once.

    python -m benchmarks.speed.rounds [--sessions 100] [--parties 5] [--postgres URL]

Prints, for each database, answers per second and per second of processor time, and
processor time for each answer: of the process that serves, and of those that step
rounds. Parties answer in this process, and wait for the next task as those of the SDK
do. Ends with 1 where a request was refused or a session has not completed.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from benchmarks.speed.analyst_process import AnalystProcess, Member, join_all
from clustering_protocols.wire.http_headers import wait_header
from party_sdk.analyst_client import requests

WAIT = wait_header(20)
PUT_OFF = frozenset({429, 500, 503})
GOAL_MS = 6.0


class Cost(NamedTuple):
    """What a run took, and what came of it."""

    answers: int
    seconds: float
    serving: float
    stepping: float
    refusals: dict[int, int]
    states: dict[str, int]

    def __str__(self) -> str:
        serving, stepping = (
            1000 * each / self.answers for each in (self.serving, self.stepping)
        )
        processor = self.serving + self.stepping
        return (
            f"{self.answers} answers in {self.seconds:.1f} s; "
            f"{self.answers / processor:.0f} per second of processor time; each "
            f"{serving:.1f} ms where it is served (goal {GOAL_MS:g}) and "
            f"{stepping:.1f} ms where rounds are stepped; "
            f"refused {self.refusals}, sessions {self.states}"
        )


def main() -> int:
    """Print what each analyst took on each database."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--parties", type=int, default=5)
    parser.add_argument("--postgres", default="", help="URL of a server's database.")
    options = parser.parse_args()
    is_well = True
    for server in ("", *([options.postgres] if options.postgres else [])):
        with (
            tempfile.TemporaryDirectory() as folder,
            empty(server) as database,
            AnalystProcess(Path(folder), database) as analyst,
        ):
            cost = run(analyst, options.sessions, options.parties)
        print(f"{'PostgreSQL' if server else 'SQLite'}: {cost}", flush=True)
        done = {"completed": options.sessions}
        is_well &= not cost.refusals and cost.states == done
    return 0 if is_well else 1


@contextmanager
def empty(server: str) -> Iterator[str]:
    """Lend the URL of an empty database beside another one; of none without a server."""
    if not server:
        yield ""
        return
    name = f"coterie_rounds_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield f"{server.rpartition('/')[0]}/{name}"
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def run(analyst: AnalystProcess, sessions: int, parties: int) -> Cost:
    """Let all sessions go through their rounds at once."""
    names = [f"s-{number}" for number in range(sessions)]
    with analyst.client() as client:
        members = [
            member for name in names for member in join_all(client, name, parties, 10)
        ]
        idle, begin = analyst.processor_seconds(), time.perf_counter()
        counts = asyncio.run(take_part(analyst.port, members))
        seconds = time.perf_counter() - begin
        serving, stepping = (
            now - before
            for now, before in zip(analyst.processor_seconds(), idle, strict=True)
        )
        states = Counter(client.session(name).state.value for name in names)
    answers = sum(counts.pop(status, 0) for status in (200, 201, 204))
    return Cost(answers, seconds, serving, stepping, dict(counts), dict(states))


async def take_part(port: int, members: list[Member]) -> Counter[int]:
    """Answer until all sessions are over; return how many uploads had which status."""
    counts: Counter[int] = Counter()
    await asyncio.gather(*(answer_all(port, member, counts) for member in members))
    return counts


async def answer_all(port: int, member: Member, counts: Counter[int]) -> None:
    """Take part in one session."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = f"/v1/sessions/{member.session}"
    task, status = b"", 200
    while status < 300:
        if not task:
            head = _head("GET", f"{path}/task?wait=20", member.token)
            status, task = await _exchange(reader, writer, head, counts)
        if task and status == 200:
            upload = member.upload(member.reply(task))
            headers = requests.contribution_headers(upload.content) | WAIT
            headers["Content-Length"] = str(len(upload.content))
            head = _head("PUT", upload.path, member.token, headers)
            request = head + upload.content
            status, task = await _exchange(reader, writer, request, counts)
            counts[status] += 1
            status, task = (200, task) if status == 201 else (status, b"")
    writer.close()


def _head(
    method: str, path: str, token: str, headers: dict[str, str] | None = None
) -> bytes:
    sent = {"Host": "analyst", **requests.bearer(token), **(headers or {})}
    lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in sent.items())]
    return "\r\n".join([*lines, "", ""]).encode()


async def _exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    request: bytes,
    counts: Counter[int],
) -> tuple[int, bytes]:
    """Send a request until it is not put off; return status and body of its answer."""
    while True:
        writer.write(request)
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        status = int(first.split()[1])
        if status not in PUT_OFF:
            return status, body
        counts[status] += 1
        await asyncio.sleep(1)


if __name__ == "__main__":
    raise SystemExit(main())

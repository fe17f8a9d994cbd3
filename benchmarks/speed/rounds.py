"""What a round costs the analyst: of a hundred sessions of `dummy` with five parties.

CPU time for each answer, of the process that serves, and of those that step rounds.
Parties answer in this process, and wait for the next task as those of the SDK do.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.speed.analyst_process import AnalystProcess, Member, join_all
from benchmarks.speed.figures import Figure, Run
from clustering_protocols.wire.http_headers import wait_header
from party_sdk.analyst_client import requests

WAIT = wait_header(20)
PUT_OFF = frozenset({429, 500, 503})


class Cost(NamedTuple):
    """What a run took, and what came of it."""

    answers: int
    seconds: float
    serving: float
    stepping: float
    refusals: dict[int, int]
    states: dict[str, int]


def figures(run: Run) -> Iterator[Figure]:
    """Yield what an answer costs on SQLite.

    Raises RuntimeError if a request was refused or a session has not completed.
    """
    n_sessions, n_parties = (2, 2) if run.small else (100, 5)
    with (
        tempfile.TemporaryDirectory() as folder,
        AnalystProcess(Path(folder)) as analyst,
    ):
        cost = play(analyst, n_sessions, n_parties)
    if cost.refusals or cost.states != {"completed": n_sessions}:
        raise RuntimeError(f"refused {cost.refusals}, sessions {cost.states}")
    name = f"{n_sessions} sessions of {n_parties}, an answer, ms of CPU time"
    yield Figure(f"{name} where it is served", 1000 * cost.serving / cost.answers, 6)
    yield Figure(f"{name} where it is stepped", 1000 * cost.stepping / cost.answers)


def play(analyst: AnalystProcess, sessions: int, parties: int) -> Cost:
    """Run all sessions at once; return what they cost."""
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
    """Answer until all sessions are over; return how many uploads got which status."""
    counts: Counter[int] = Counter()
    await asyncio.gather(*(answer_all(port, member, counts) for member in members))
    return counts


async def answer_all(port: int, member: Member, counts: Counter[int]) -> None:
    """Answer every task of one session; count the statuses of uploads."""
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
    sent = {"Host": "analyst", **requests.bearer_header(token), **(headers or {})}
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

"""What a round costs the analyst: of a hundred sessions of `dummy` with five parties.

CPU time for each answer, of the process that serves, and of those that step rounds.
Parties answer in this process, and wait for the next task as those of the SDK do.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.speed.analyst_process import AnalystProcess, Member, join_all
from benchmarks.speed.figures import Figure
from clustering_protocols.wire.http_headers import wait_header
from party_sdk.analyst_client import requests

WAIT = wait_header(20)
PUT_OFF = frozenset({429, 500, 503})


def figures(*, small: bool) -> Iterator[Figure]:
    """Yield what an answer costs on SQLite.

    Raises RuntimeError if a request was refused or a session has not completed.
    """
    n_sessions, n_parties = (2, 2) if small else (100, 5)
    names = [f"s-{number}" for number in range(n_sessions)]
    counts: Counter[int] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        AnalystProcess(Path(folder)) as analyst,
        analyst.client() as client,
    ):
        members = [
            member for name in names for member in join_all(client, name, n_parties, 10)
        ]
        before = analyst.processor_seconds()
        asyncio.run(answer_together(analyst.url, members, counts))
        serving, stepping = np.subtract(analyst.processor_seconds(), before)
        states = Counter(client.session(name).state.value for name in names)
    answers = sum(counts.pop(status, 0) for status in (200, 201, 204))
    if counts or states != {"completed": n_sessions}:
        raise RuntimeError(f"refused {counts}, sessions {states}")
    name = f"{n_sessions} sessions of {n_parties}, an answer, ms of CPU time"
    yield Figure(f"{name} where it is served", 1000 * serving / answers, 6)
    yield Figure(f"{name} where it is stepped", 1000 * stepping / answers)


async def answer_together(
    url: str, members: list[Member], counts: Counter[int]
) -> None:
    """Answer until all sessions are over; count the statuses of uploads."""
    await asyncio.gather(*(answer_all(url, member, counts) for member in members))


async def answer_all(url: str, member: Member, counts: Counter[int]) -> None:
    """Answer every task of one session; count the statuses of uploads."""
    path, trusted = f"/v1/sessions/{member.session}/task", ssl.SSLContext()
    async with httpx.AsyncClient(base_url=url, timeout=60, verify=trusted) as http:
        http.headers.update(requests.bearer_header(member.token))

        async def exchange(method: str, path: str, **options: Any) -> httpx.Response:
            """Send a request until it is not put off; return the answer."""
            while True:
                answer = await http.request(method, path, **options)
                if answer.status_code not in PUT_OFF:
                    return answer
                counts[answer.status_code] += 1
                await asyncio.sleep(1)

        status, task = 200, b""
        while status < HTTPStatus.MULTIPLE_CHOICES:
            if not task:
                answer = await exchange("GET", path, params={"wait": 20})
                status, task = answer.status_code, answer.content
            if task and status == HTTPStatus.OK:
                upload = member.upload(member.reply(task))
                headers = requests.contribution_headers(upload.content) | WAIT
                sent = {"content": upload.content, "headers": headers}
                answer = await exchange("PUT", upload.path, **sent)
                status = answer.status_code
                counts[status] += 1
                task = b""
                if status == HTTPStatus.CREATED:  # with the next task, if there is one
                    status, task = 200, answer.content

"""Half-sent headers at an analyst that no proxy stands in front of."""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from support.analyst_process import Analyst
from support.repeats import thorough
from uvicorn.server import ServerState

from analyst_service.cli import shutdown
from analyst_service.cli.shutdown import TimedProtocol, WaitingConnections
from tests.system.http import few_files

HALF = b"GET /healthz HTTP/1.1\r\nHost: analyst\r\nX-Slow: "
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: analyst\r\n\r\n"
N_HALF = thorough(ci=400, nightly=1500)


@contextmanager
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.thorough
@pytest.mark.threat(136)
def test_half_headers_take_no_place_from_honest_calls(tmp_path: Path) -> None:
    """Callers come from the same address: nothing tells them apart but their haste."""
    with (
        Analyst(tmp_path, program=few_files.__file__, cold=True) as analyst,
        many_files(),
        ExitStack() as half,
        httpx.Client(base_url=analyst.url, timeout=20) as kept,
    ):
        assert kept.get("/healthz").status_code == 200
        for number in range(N_HALF):
            there = socket.create_connection(("127.0.0.1", analyst.port))
            half.enter_context(there).sendall(HALF)
            if number % (N_HALF // 20) == 0:
                assert httpx.get(f"{analyst.url}/healthz", timeout=20).is_success
                assert kept.get("/v1/identity").is_success


@asynccontextmanager
async def serving(waiting: WaitingConnections) -> AsyncIterator[int]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        head = {"type": "http.response.start", "status": 204, "headers": []}
        await send(head)
        await send({"type": "http.response.body", "body": b""})

    config = uvicorn.Config(app, lifespan="off")
    config.load()
    made = partial(
        TimedProtocol,
        waiting=waiting,
        config=config,
        server_state=ServerState(),
        app_state={},
    )
    server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.threat(136)
@pytest.mark.parametrize(
    "begun", [b"", HALF, WHOLE + HALF], ids=["none", "half", "2nd"]
)
def test_a_header_has_a_deadline(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(shutdown, "HEADER_SECONDS", 0.3)

    async def tried() -> float:
        async with serving(WaitingConnections(8)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            since = time.monotonic()
            writer.write(begun)
            with suppress(ConnectionError):  # a reset is as good as an end
                while await reader.read(1 << 16):
                    pass
            writer.close()
            return time.monotonic() - since

    assert 0.2 < asyncio.run(tried()) < 5


@pytest.mark.threat(136)
def test_the_oldest_of_too_many_unfinished_requests_is_closed() -> None:
    async def tried() -> list[bool]:
        async with serving(WaitingConnections(3)) as port:
            opened = [
                await asyncio.open_connection("127.0.0.1", port) for _ in range(2)
            ]
            for _, writer in opened:  # answered, and kept: they wait for nothing
                writer.write(WHOLE)
            for reader, _ in opened:
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204")
            for _ in range(5):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(HALF)
                opened.append((reader, writer))
                await asyncio.sleep(0.05)
            gone = []
            for reader, _ in opened:
                try:
                    gone.append(await asyncio.wait_for(reader.read(1), 0.1) == b"")
                except TimeoutError:
                    gone.append(False)
                except ConnectionError:
                    gone.append(True)
            for _, writer in opened:
                writer.close()
            return gone

    assert asyncio.run(tried()) == [False, False, True, True, False, False, False]

"""Half-sent headers at an analyst without a proxy, and the end of a drain."""

import asyncio
import resource
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from fastapi import FastAPI
from uvicorn.server import ServerState

from analyst_service.cli import shutdown
from analyst_service.cli.shutdown import (
    DrainingServer,
    TimedProtocol,
    WaitingConnections,
)

HALF = b"GET /healthz HTTP/1.1\r\nHost: analyst\r\nX-Slow: "
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: analyst\r\n\r\n"


def test_a_quarter_of_the_files_may_wait_for_a_header() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for files, limit in ((256, 64), (60, 16)):
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
        try:
            assert WaitingConnections()._limit == limit
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


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
            reads = (asyncio.wait_for(reader.read(1), 0.5) for reader, _ in opened)
            ends = await asyncio.gather(*reads, return_exceptions=True)
            for _, writer in opened:
                writer.close()
            return [end == b"" or isinstance(end, ConnectionError) for end in ends]

    assert asyncio.run(tried()) == [False, False, True, True, False, False, False]


@pytest.mark.parametrize("seconds", [0, 300])
def test_a_drain_ends_when_its_time_is_over(seconds: int) -> None:
    app = Mock()
    app.state.service.draining.is_set.return_value = False
    server = DrainingServer(app, seconds, uvicorn.Config(app))
    server.handle_exit(signal.SIGTERM, None)
    assert asyncio.run(server.on_tick(1)) is (seconds == 0)
    app.state.service.start_draining.assert_called_once()


def test_a_drain_answers_a_request_on_each_open_connection_and_closes_it() -> None:
    """Also where the request is sent while the drain begins."""

    async def tried() -> list[bytes]:
        app = FastAPI()
        app.state.service = Mock()
        app.state.service.draining.is_set.return_value = False
        http = partial(TimedProtocol, waiting=WaitingConnections(8))
        config = uvicorn.Config(app, port=0, lifespan="off", http=http)  # type: ignore[arg-type]  # uvicorn calls it
        config.load()
        server = DrainingServer(app, 300, config)
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        port = server.servers[0].sockets[0].getsockname()[1]
        used, fresh = [
            await asyncio.open_connection("127.0.0.1", port) for _ in range(2)
        ]
        used[1].write(WHOLE)
        await used[0].readuntil(b"{")
        await used[0].readuntil(b"}")
        server.handle_exit(signal.SIGTERM, None)
        await server.on_tick(1)
        for _, writer in (used, fresh):
            writer.write(WHOLE)
        answers = [await asyncio.wait_for(r.read(), 5) for r, _ in (used, fresh)]
        for _, writer in (used, fresh):
            writer.close()
        await server.shutdown()
        return answers

    for answer in asyncio.run(tried()):
        assert answer.startswith(b"HTTP/1.1 404")
        assert b"connection: close" in answer

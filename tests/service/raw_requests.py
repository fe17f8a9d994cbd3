"""Requests sent to the ASGI app directly, so that a test controls each piece of a body."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from support.in_process import Api

SILENCE = None  # instead of a piece: nothing comes any more
GONE = ""  # instead of a piece: the client has disconnected
Piece = bytes | str | None


@dataclass
class Exchange:
    """A request's pieces, how many bytes the app read of them, and its response."""

    pieces: list[Piece]
    read: int = 0
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""

    @property
    def problem(self) -> str:
        return str(json.loads(self.content)["type"]).rpartition(":")[2]

    async def receive(self) -> dict[str, Any]:
        piece = self.pieces.pop(0) if self.pieces else SILENCE
        if piece is SILENCE:  # and the client stays
            await asyncio.Event().wait()
        if piece == GONE:
            return {"type": "http.disconnect"}
        self.read += len(piece or b"")
        more = bool(self.pieces)
        return {"type": "http.request", "body": piece, "more_body": more}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
        self.content += message.get("body", b"")


def start(
    api: Api,
    method: str,
    path: str,
    pieces: Sequence[Piece] = (),
    *,
    secret: str | None = None,
    address: str = "192.0.2.1",
    **headers: str,
) -> Future[Exchange]:
    """Send a request; the future is done once it is answered."""
    given = {"content-type": "application/json"}
    given |= {name.lower(): value for name, value in headers.items()}
    if secret is not None:
        given["authorization"] = f"Bearer {secret}"
    if pieces and "content-length" not in given:
        given["transfer-encoding"] = "chunked"
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(k.encode(), v.encode()) for k, v in given.items()],
        "client": (address, 1),
        "server": ("127.0.0.1", 80),
    }
    exchange = Exchange(list(pieces) or [b""])

    async def run() -> Exchange:
        await api.app(scope, exchange.receive, exchange.send)
        return exchange

    return api.portal.start_task_soon(run)


def ask(api: Api, method: str, path: str, *args: Any, **more: Any) -> Exchange:
    return start(api, method, path, *args, **more).result(60)

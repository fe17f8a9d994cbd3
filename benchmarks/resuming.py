"""One large contribution over a line that is cut again and again: bytes and seconds.

    python -m benchmarks.resuming [--mebibytes 1024] [--cuts 10] [--seed 1] [--ways cut]

The SDK sends it through a proxy that breaks the connection at so many random places. A
piece counts in full as soon as it is begun, however little of it left. Beside it: the
same without a cut, and as one body; the three take turns.
"""

from __future__ import annotations

import argparse
import random
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import httpx

from benchmarks.analyst_process import AnalystProcess, Upload, mebibytes, rows_for
from party_sdk.analyst_client import http_analyst
from party_sdk.analyst_client.http_analyst import IN_PIECES_FROM, connect
from party_sdk.analyst_client.transport import Listeners

GOAL = 1.1
_WAYS = ("cut", "uncut", "whole")
_RESET = struct.pack("ii", 1, 0)


def main() -> None:
    """Print what cuts cost, beside their goal; end with 1 above it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=_WAYS, default=_WAYS)
    options = parser.parse_args()
    n_rows = rows_for(max(options.mebibytes << 20, IN_PIECES_FROM))
    with (
        tempfile.TemporaryDirectory() as folder,
        AnalystProcess(Path(folder)) as analyst,
    ):
        sent = {}
        for name in options.ways:
            [upload] = analyst.uploads(name, 1, n_rows)
            size = len(upload.content)
            places = _places(options, size) if name == "cut" else []
            sent[name] = _send(analyst, upload, places, whole=name == "whole")
            del upload
    print(f"contribution of {mebibytes(size)}")
    for name, (seconds, begun, resumed) in sent.items():
        times = f", resumed {resumed} times" if resumed else ""
        print(f"{name:9} {seconds:7.1f} s  {begun / size:.3f} of its bytes{times}")
    if "cut" in sent:
        ratio = sent["cut"][1] / size
        print(f"{options.cuts} cuts: {ratio:.3f} of its bytes (goal: at most {GOAL})")
        sys.exit(int(ratio > GOAL))


def _places(options: argparse.Namespace, size: int) -> list[int]:
    """Return after how many bytes the line is cut."""
    drawn = random.Random(options.seed)  # noqa: S311  where to cut is no secret
    return sorted(drawn.randrange(size) for _ in range(options.cuts))


def _send(
    analyst: AnalystProcess, upload: Upload, places: Sequence[int], *, whole: bool
) -> tuple[float, int, int]:
    """Return seconds, bytes of all bodies that were begun, and how often it resumed."""
    begun, resumed = [0], [0.0]

    def count(request: httpx.Request) -> None:
        begun.append(int(request.headers.get("content-length", 0)))

    session, _, rest = upload.path.removeprefix("/v1/sessions/").partition("/rounds/")
    round_, _, attempt = rest.removesuffix("/contribution").partition("/attempts/")
    with _proxy(analyst.port, places) as port:
        url = f"http://127.0.0.1:{port}"
        http = httpx.Client(base_url=url, timeout=120, event_hooks={"request": [count]})
        told = Listeners(on_resumed=resumed.append)
        pieces = patch.object(
            http_analyst, "IN_PIECES_FROM", len(upload.content) + whole
        )
        with pieces, connect(url, http=http, listeners=told) as line:
            own = line.as_party(upload.token)
            begin = time.perf_counter()
            own.contribute(session, int(round_), int(attempt), upload.content)
            seconds = time.perf_counter() - begin
    return seconds, sum(begun), len(resumed) - 1


# The line


@contextmanager
def _proxy(port: int, places: Sequence[int]) -> Iterator[int]:
    """Pass bytes on to a port; reset the connection after each of so many bytes."""
    left, seen = list(places), 0

    def serve(near: socket.socket) -> None:
        nonlocal seen
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            back = threading.Thread(target=_pass_on, args=(far, near))
            back.start()
            with suppress(OSError):
                while piece := near.recv(1 << 16):
                    seen += len(piece)
                    if left and seen >= left[0]:
                        left.pop(0)
                        for each in (near, far):
                            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                        far.shutdown(socket.SHUT_RDWR)
                        near.shutdown(socket.SHUT_RDWR)
                        break
                    far.sendall(piece)
                far.shutdown(socket.SHUT_WR)
            back.join()

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, _ = server.accept()
                threading.Thread(target=serve, args=(near,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
    if left:
        raise RuntimeError(f"{len(left)} cuts were not made")


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(1 << 16):
            target.sendall(piece)


if __name__ == "__main__":
    main()

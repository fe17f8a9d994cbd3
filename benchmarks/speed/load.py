"""A thousand uploads of a megabyte at once, of twenty sessions with fifty parties."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from benchmarks.speed.analyst_process import AnalystProcess, Upload, rows_for
from benchmarks.speed.figures import Figure, Run

MEGABYTE = 10**6


def figures(run: Run) -> Iterator[Figure]:
    """Yield seconds, memory of the service, and uploads that were not stored.

    Raises RuntimeError where a stored blob is not what was sent.
    """
    n_sessions, n_parties = (1, 3) if run.small else (20, 50)
    with (
        tempfile.TemporaryDirectory() as folder,
        AnalystProcess(Path(folder)) as analyst,
    ):
        uploads = [
            upload
            for number in range(n_sessions)
            for upload in analyst.uploads(f"s-{number}", n_parties, rows_for(MEGABYTE))
        ]
        most = [0]
        over = threading.Event()
        watcher = threading.Thread(target=watch, args=(analyst, most, over))
        watcher.start()
        begin = time.perf_counter()
        answers = asyncio.run(send_all(analyst.port, uploads))
        seconds = time.perf_counter() - begin
        over.set()
        watcher.join()
        if not digests_are_equal(Path(folder), uploads):
            raise RuntimeError("a stored blob is not what was sent")
    refused = sum(status != 201 for status, _ in answers)
    yield Figure(f"{len(uploads)} uploads of a megabyte at once, s", seconds, 60)
    yield Figure("  refused", refused, 0)
    yield Figure("  slowest answer, s", max(took for _, took in answers))
    yield Figure("  memory of the service, MiB", most[0] / 2**20, 954)


def watch(analyst: AnalystProcess, most: list[int], over: threading.Event) -> None:
    """Note the most memory that the service has."""
    while not over.wait(0.01):
        most[0] = max(most[0], analyst.memory()["VmRSS"])


async def send_all(port: int, uploads: list[Upload]) -> list[tuple[int, float]]:
    """Send all at once; return status and seconds of each."""
    return await asyncio.gather(*(send(port, upload) for upload in uploads))


async def send(port: int, upload: Upload) -> tuple[int, float]:
    """Send one upload."""
    begin = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(upload.request)
    writer.write(upload.content)
    await writer.drain()
    status = int((await reader.readline()).split()[1])
    writer.close()
    return status, time.perf_counter() - begin


def digests_are_equal(folder: Path, uploads: list[Upload]) -> bool:
    """Return whether every upload is stored, byte for byte."""
    return all(
        sha256((folder / "blobs" / name[:2] / name).read_bytes()).hexdigest() == name
        for name in (sha256(upload.content).hexdigest() for upload in uploads)
    )

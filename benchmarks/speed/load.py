"""A thousand uploads of a megabyte at once, of twenty sessions with fifty parties.

    python -m benchmarks.speed.load [--sessions 20] [--parties 50]

Prints seconds, statuses, the slowest answer and the service's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path

from benchmarks.speed.analyst_process import AnalystProcess, Upload, mebibytes, rows_for

MEGABYTE = 10**6


def main() -> None:
    """Print the figures beside their goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--parties", type=int, default=50)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        AnalystProcess(Path(folder)) as analyst,
    ):
        uploads = [
            upload
            for number in range(options.sessions)
            for upload in analyst.uploads(
                f"s-{number}", options.parties, rows_for(MEGABYTE)
            )
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
        whole = digests_are_equal(Path(folder), uploads)
    statuses = Counter(status for status, _ in answers)
    print(f"{len(uploads)} uploads at once in {seconds:.1f} s  (goal: under 60 s)")
    print(f"statuses {dict(statuses)}  (goal: all 201)")
    print(f"slowest answer {max(took for _, took in answers):.1f} s")
    print(f"resident memory at most {mebibytes(most[0])}  (goal: under 1000 MB)")
    print(f"every blob has the digest of its upload: {whole}")


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


if __name__ == "__main__":
    main()

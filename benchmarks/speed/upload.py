"""One large upload: the service's memory, and its time against a bare socket.

    python -m benchmarks.speed.upload [--mebibytes 256] [--runs 5]

The bare socket receives the same bytes in a process of its own, hashes them (SHA-256),
writes them to a file of the same folder and syncs it: what any upload must do. The
service does so through uvicorn, checks names, dtypes, shapes and values against the
task, and commits a row. Runs alternate; the ratio is the median of pairs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from benchmarks.speed.analyst_process import AnalystProcess, Upload, mebibytes, rows_for

GOAL_RATIO = 2.0
GOAL_GROWTH = 64 << 20


def main() -> None:
    """Print growth of memory and ratio of times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=256)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    n_rows = rows_for(options.mebibytes << 20)
    with (
        tempfile.TemporaryDirectory() as folder,
        AnalystProcess(Path(folder)) as analyst,
    ):
        uploads = [
            analyst.uploads(f"s-{number}", 1, n_rows)[0]
            for number in range(options.runs)
        ]
        pairs = [
            (bare(upload, Path(folder)), served(analyst, upload)) for upload in uploads
        ]
    report(pairs, len(uploads[0].content))


def report(pairs: list[tuple[float, tuple[float, dict[str, int]]]], size: int) -> None:
    """Print the figures beside their goals."""
    ratio = median(seconds / floor for floor, (seconds, _) in pairs)
    own = max(growth["RssAnon"] for _, (_, growth) in pairs)
    everything = max(growth["VmRSS"] for _, (_, growth) in pairs)
    print(f"upload of {mebibytes(size)}, {len(pairs)} runs")
    print(f"bare socket  {median(floor for floor, _ in pairs):.2f} s")
    print(f"service      {median(s for _, (s, _) in pairs):.2f} s")
    print(f"ratio        {ratio:.2f}  (goal: at most {GOAL_RATIO})")
    print(f"growth       {mebibytes(own)} of the process's own memory, ", end="")
    print(f"{mebibytes(everything)} resident with mapped files", end="  ")
    print(f"(goal: less than {mebibytes(GOAL_GROWTH)})")


def served(analyst: AnalystProcess, upload: Upload) -> tuple[float, dict[str, int]]:
    """Return the seconds of one upload, and by how much memory grew at its most."""
    before, most = analyst.memory(), analyst.memory()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.002):
            for name, size in analyst.memory().items():
                most[name] = max(most[name], size)

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.perf_counter()
    with socket.create_connection(("127.0.0.1", analyst.port)) as connection:
        connection.sendall(upload.request)
        connection.sendall(upload.content)
        answer = connection.recv(1 << 16)
    seconds = time.perf_counter() - begin
    over.set()
    watcher.join()
    if not answer.startswith(b"HTTP/1.1 201 "):
        raise RuntimeError(answer.decode(errors="replace"))
    return seconds, {name: most[name] - before[name] for name in before}


def bare(upload: Upload, folder: Path) -> float:
    """Return the seconds that a bare socket needs for the same bytes."""
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    size = len(upload.content)
    process = context.Process(target=receive, args=(far, str(folder / "bare"), size))
    process.start()
    port = near.recv()
    begin = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(upload.content)
        digest = connection.recv(64).decode()
    seconds = time.perf_counter() - begin
    process.join()
    if digest != sha256(upload.content).hexdigest():
        raise RuntimeError("the bare socket received other bytes")
    return seconds


def receive(parent: Connection, path: str, size: int) -> None:
    """Receive, hash, write, sync, answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        parent.send(server.getsockname()[1])
        connection, _ = server.accept()
        with connection, Path(path).open("wb") as file:
            digest, seen = sha256(), 0
            while seen < size:
                piece = connection.recv(1 << 18)
                digest.update(piece)
                file.write(piece)
                seen += len(piece)
            file.flush()
            os.fsync(file.fileno())
            connection.sendall(digest.hexdigest().encode())


if __name__ == "__main__":
    main()

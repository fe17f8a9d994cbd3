"""One large upload: the service's memory, and its time against a bare socket.

The bare socket receives the same bytes in a process of its own, hashes them (SHA-256),
writes them to a file in the same folder and syncs it: what any upload must do. The
service does so through uvicorn, checks names, dtypes, shapes and values against the
task, and commits a row. Runs alternate; the ratio is the median of pairs.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from benchmarks.speed.analyst_process import AnalystProcess, Upload
from benchmarks.speed.figures import Figure


def figures(*, small: bool) -> Iterator[Figure]:
    """Yield ratio of times and growth of memory."""
    size, runs = (1 << 20, 1) if small else (256 << 20, 5)
    with (
        tempfile.TemporaryDirectory() as folder,
        AnalystProcess(Path(folder)) as analyst,
    ):
        n_rows = size // 8  # the dummy's answer has eight bytes a row
        uploads = [analyst.prepare_upload(f"s-{n}", n_rows) for n in range(runs)]
        pairs = [
            (bare(upload, Path(folder)), served(analyst, upload)) for upload in uploads
        ]
    ratio = median(seconds / floor for floor, (seconds, _) in pairs)
    growth = {
        name: max(most[name] for _, (_, most) in pairs) / 2**20
        for name in ("RssAnon", "VmRSS")
    }
    yield Figure(f"upload of {size >> 20} MiB ÷ a bare socket", ratio, 2)
    yield Figure("  growth of the service's own memory, MiB", growth["RssAnon"], 64)
    yield Figure("  growth with mapped files, MiB", growth["VmRSS"])


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
    """Receive an upload; hash, write and sync it, and answer with the digest."""
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

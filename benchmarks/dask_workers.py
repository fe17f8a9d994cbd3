"""A Dask scheduler and workers held to so much memory, as processes of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from distributed import Client

from benchmarks import held_memory
from benchmarks.analyst_process import free_port

_START_SECONDS = 120.0


class Workers(NamedTuple):
    """The scheduler's address, and the numbers of the workers' processes."""

    address: str
    processes: list[int]


@contextmanager
def running(data: Path, n_workers: int, gibibytes: float) -> Iterator[Workers]:
    """Run workers of one thread that read the blobs of an analyst's folder.

    Each may have so much memory of its own (RLIMIT_DATA), and pauses at 80 % of it with
    the files that it has mapped (Dask's ``--memory-limit``).
    """
    address = f"tcp://127.0.0.1:{free_port()}"
    where = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
    limit = ("--memory-limit", f"{gibibytes}GiB") if gibibytes else ()
    alone = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
    port = address.rpartition(":")[2]
    started = [_dask(data, 0.0, "scheduler", "--port", port, *where)]
    try:
        for _ in range(n_workers):
            words = ("worker", address, *alone, *limit, *where)
            started.append(_dask(data, gibibytes, *words))
        with Client(address, timeout=_START_SECONDS, set_as_default=False) as client:
            client.wait_for_workers(n_workers, timeout=_START_SECONDS)
        yield Workers(address, [each.pid for each in started[1:]])
    finally:
        for process in started:
            process.kill()
            process.wait()


def _dask(data: Path, gibibytes: float, *words: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        env=os.environ | {"COTERIE_DATA_DIR": str(data)},
        stderr=subprocess.DEVNULL,
    )
    held_memory.hold(gibibytes, process.pid)
    return process

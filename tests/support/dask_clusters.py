"""Dask clusters for tests: in this process, or in processes that can be ended."""

import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import dask
from distributed import Client, LocalCluster

from analyst_service.engines.dask_engine import Cluster
from support.analyst_process import free_port


@contextmanager
def in_this_process() -> Iterator[Cluster]:
    """A scheduler and a worker with two threads, in threads of this process."""
    with (
        dask.config.set({"distributed.scheduler.http.routes": []}),
        _start_cluster() as local,
        Client(local, set_as_default=False) as client,
    ):
        yield Cluster(client)


def _start_cluster() -> LocalCluster:
    with warnings.catch_warnings():
        # on a busy machine: it takes more than a second, and warnings are errors here
        warnings.filterwarnings("ignore", "Creating scratch directories")
        return LocalCluster(
            processes=False,
            n_workers=1,
            threads_per_worker=2,
            dashboard_address="127.0.0.1:0",
        )


class Processes:
    """A scheduler and workers as administrators start them; each can be killed."""

    def __init__(
        self, n_workers: int, environment: Mapping[str, str], scheme: str = "tcp"
    ) -> None:
        self.port = free_port()
        self.address = f"{scheme}://127.0.0.1:{self.port}"
        self.environment = (
            os.environ
            | dict(environment)
            | {"DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]"}
        )
        self.started: list[subprocess.Popen[bytes]] = []
        self.start_scheduler()
        self.workers = [self.start_worker() for _ in range(n_workers)]

    def start_scheduler(self) -> None:
        words = ["scheduler", "--protocol", self.address.partition(":")[0]]
        where = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        self.scheduler = self._dask(
            *words, *where, "--dashboard-address", "127.0.0.1:0"
        )
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        raise RuntimeError("the scheduler does not listen")

    def start_worker(self) -> subprocess.Popen[bytes]:
        alone = ["--nthreads", "1", "--no-dashboard", "--no-nanny"]
        where = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        return self._dask("worker", self.address, *alone, *where)

    def _dask(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words]
        process = subprocess.Popen(command, env=self.environment, stderr=sys.stderr)
        self.started.append(process)
        return process

    def close(self) -> None:
        for process in self.started:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(30)

"""A whole session of `omnifc` over HTTP, and the analyst's anonymous memory.

    python -m benchmarks.omnifc_session [--rows N] [--features D] [--algorithm A]

Seven parties (threads of this process), l = 2, t = 2, an analyst of its own process on
SQLite. Every party uploads 4 n (n - 1) bytes; the analyst maps the files. Anonymous
memory (RssAnon of Linux) of the service and its workers is sampled; the goal is below
3 GiB in all for 10,000 rows, the folder with 2.8 GB of uploads not counted. Ends with 1
above the goal, or above what `limits.analyst_bytes` states.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from sklearn.datasets import make_blobs

from clustering_protocols import simulation
from clustering_protocols.metrics import adjusted_rand
from clustering_protocols.protocols.omnifc import OmniFC, limits
from clustering_protocols.terms import Layout
from coterie import Coordinator, Party, Policy

COTERIE = (sys.executable, "-m", "party_sdk.cli")
PARTIES = 7
GOAL = 3 << 30
SEED = 0


def main() -> int:
    """Run, and print sizes and times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--algorithm", default="kmeans")
    given = parser.parse_args()
    X, truth = make_blobs(
        given.rows, given.features, centers=10, cluster_std=2.0, random_state=SEED
    )
    params = OmniFC(
        algorithm=given.algorithm,
        n_clusters=None if given.algorithm == "dbscan" else 10,
        features="distance_rows" if given.algorithm == "nmf" else "embedding",
        segments=2,
        noise=2,
        max_rows=given.rows,
    )
    parts = simulation.split(X, Layout.lattice(PARTIES), SEED)
    upload = limits.upload_bytes(params, given.rows, given.features)
    print(f"{given.rows} × {given.features}, {PARTIES} parties, {upload:,} bytes each")
    with (
        tempfile.TemporaryDirectory() as folder,
        analyst(Path(folder)) as (url, key, pid),
    ):
        watch = Watch(pid)
        begin = time.monotonic()
        labels = run(url, key, Path(folder), params, parts)
        seconds = time.monotonic() - begin
        watch.stop()
    found = np.empty(len(X), dtype=np.int64)
    for slot, rows in zip(parts.layout.names, parts.rows, strict=True):
        found[rows] = labels[slot]
    bound = limits.analyst_bytes(params, given.rows, given.features)
    print(
        f"{seconds:.0f} s; agreement with the groups {adjusted_rand(truth, found):.3f}"
    )
    print(
        f"analyst: {watch.idle:,} bytes before, at most {watch.peak:,} (goal {GOAL:,})"
    )
    print(f"one step: at most {watch.worker:,} (stated bound {bound:,})")
    return int(watch.peak > GOAL or watch.worker > bound)


def run(
    url: str, key: str, folder: Path, params: OmniFC, parts: simulation.Split
) -> dict[str, Any]:
    """Return every party's labels."""
    labels: dict[str, Any] = {}
    with ExitStack() as stack:
        coordinator = stack.enter_context(Coordinator(url, key, home=folder / "home"))
        session = coordinator.create_session(
            "benchmark", params, parts.layout, seed=SEED
        )
        invitations = session.invite()
        policy = Policy(accepted_risks=frozenset(session.status().risks))
        parties = {
            slot: stack.enter_context(
                Party.join(invitations[slot], home=folder / "home", policy=policy)
            )
            for slot in parts.layout.names
        }

        def take_part(slot: str) -> None:
            labels[slot] = parties[slot].run(parts.data[slot]).labels

        threads = [threading.Thread(target=take_part, args=(slot,)) for slot in parties]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return labels


@contextmanager
def analyst(folder: Path) -> Iterator[tuple[str, str, int]]:
    """Yield address, a coordinator's key and process id of an analyst."""
    environment = os.environ | {
        "COTERIE_DATA_DIR": str(folder / "analyst"),
        "COTERIE_DATABASE_URL": "",
    }
    command("migrate", environment)
    key = command("key create --label benchmark", environment).split()[-1]
    port = free_port()
    with (folder / "analyst.log").open("wb") as log:
        served = subprocess.Popen(
            [*COTERIE, "serve", "--port", str(port)],
            env=environment,
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_served(url)
        yield url, key, served.pid
    finally:
        served.terminate()
        served.wait()


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(words: str, environment: Mapping[str, str]) -> str:
    """Return what a command prints."""
    done = subprocess.run(
        [*COTERIE, *words.split()],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def wait_until_served(url: str) -> None:
    """Return once the analyst answers."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with suppress(httpx.TransportError):
            httpx.get(f"{url}/v1/protocols", timeout=30)
            return
        time.sleep(0.1)
    raise RuntimeError("the analyst does not answer")


class Watch:
    """Samples the anonymous memory of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.idle = sum(self.anonymous().values())
        self.peak = self.worker = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._over.set()
        self._thread.join()

    def anonymous(self) -> dict[int, int]:
        """Return bytes by process id."""
        tree = [self.pid]
        for pid in tree:
            with suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    tree += map(int, (task / "children").read_text().split())
        found = {}
        for pid in tree:
            with suppress(OSError, StopIteration):
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                line = next(line for line in lines if line.startswith("RssAnon"))
                found[pid] = int(line.split()[1]) << 10
        return found

    def _sample(self) -> None:
        while not self._over.wait(0.02):
            now = self.anonymous()
            self.peak = max(self.peak, sum(now.values()))
            below = [size for pid, size in now.items() if pid != self.pid]
            self.worker = max([self.worker, *below])


if __name__ == "__main__":
    sys.exit(main())

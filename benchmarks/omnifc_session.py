"""A whole session of `omnifc` over HTTP, and the anonymous memory of each role.

    python -m benchmarks.omnifc_session [--rows N] [--features D] [--algorithm A]
                                        [--distances all|landmarks] [--parties M]

Parties and analyst are processes of their own, the analyst on SQLite, l = 2, t = 2, seven
parties by default. By all distances every party uploads 4 n (n - 1) bytes; the analyst
maps the files. Anonymous memory (RssAnon of Linux) is sampled: of the service with its
workers, and of each party. Goals: below 3 GiB at the analyst for 10,000 rows by all
distances, below 2 GiB at every role by landmarks (for 200,000 rows, say); files with
uploads not counted. Ends with 1 above a goal, or above what `limits` states.
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
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
from pyarrow import parquet
from sklearn.datasets import make_blobs

from clustering_protocols import simulation
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.omnifc import OmniFC, limits
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.terms.terms import Layout
from coterie import Coordinator

COTERIE = (sys.executable, "-m", "party_sdk.cli")
GOALS = {"all": 3 << 30, "landmarks": 2 << 30}
SEED = 0


def main() -> int:
    """Run, and print sizes and times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--algorithm", default="kmeans")
    parser.add_argument("--distances", default="all", choices=GOALS)
    parser.add_argument("--parties", type=int, default=7)
    given = parser.parse_args()
    n, d, goal = given.rows, given.features, GOALS[given.distances]
    X, truth = make_blobs(n, d, centers=10, cluster_std=2.0, random_state=SEED)
    params = OmniFC(
        algorithm=given.algorithm,
        n_clusters=None if given.algorithm in {"dbscan", "hdbscan"} else 10,
        features="distance_rows" if given.algorithm == "nmf" else "embedding",
        distances=given.distances,
        segments=2,
        noise=2,
        max_rows=n,
    )
    parts = simulation.split(X, Layout.lattice(given.parties), SEED)
    upload = limits.upload_bytes(params, n, d)
    print(f"{n} × {d}, {given.parties} parties, {upload:,} bytes each", flush=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        analyst(Path(folder)) as (url, key, pid),
    ):
        watch = Watch(pid)
        begin = time.monotonic()
        labels, parties = run(url, key, Path(folder), params, parts)
        seconds = time.monotonic() - begin
        watch.stop()
    found = np.empty(n, dtype=np.int64)
    for slot, rows in zip(parts.layout.names, parts.rows, strict=True):
        found[rows] = labels[slot]
    bound = limits.analyst_bytes(params, n, d)
    of_party = limits.party_bytes(params, n, d)
    largest = max(parties.values())
    print(
        f"{seconds:.0f} s; agreement with the groups {adjusted_rand(truth, found):.3f}"
    )
    print(
        f"analyst: {watch.idle:,} bytes before, at most {watch.peak:,} (goal {goal:,})"
    )
    print(f"one step: at most {watch.worker:,} (stated bound {bound:,})")
    for slot, peak in parties.items():
        print(f"party {slot}: at most {peak:,}")
    print(f"largest party: {largest:,} (goal {goal:,}, stated bound {of_party:,})")
    above = watch.worker > bound or largest > of_party
    return int(above or watch.peak > goal or largest > goal)


def run(
    url: str, key: str, folder: Path, params: OmniFC, parts: simulation.Split
) -> tuple[dict[str, IntArray], dict[str, int]]:
    """Return every party's labels, and the most anonymous bytes of its process."""
    with Coordinator(url, key, home=folder / "home") as coordinator:
        session = coordinator.create_session(
            "benchmark", params, parts.layout, seed=SEED
        )
        invitations = session.invite()
        risks = [f"--accept-risk={code}" for code in session.status().risks]
    parties = {}
    for slot in parts.layout.names:
        part = parts.data[slot]
        X = np.concatenate(list(part.batches()))
        table = pa.table(dict(zip(part.columns, X.T, strict=True)))
        parquet.write_table(table, folder / f"{slot}.parquet")
        parties[slot] = take_part(folder, slot, invitations[slot], risks)
    watches = {slot: Watch(process.pid) for slot, process in parties.items()}
    ended = {slot: process.wait() for slot, process in parties.items()}
    for watch in watches.values():
        watch.stop()
    for slot in (slot for slot, code in ended.items() if code):
        raise RuntimeError((folder / f"{slot}.log").read_text())
    labels = {
        slot: parquet.read_table(folder / f"{slot}-labels.parquet")["label"].to_numpy()
        for slot in parties
    }
    return labels, {slot: watch.peak for slot, watch in watches.items()}


def take_part(
    folder: Path, slot: str, invitation: str, risks: list[str]
) -> subprocess.Popen[bytes]:
    """Start a party's process."""
    files = ["--data", f"{slot}.parquet", "--labels", f"{slot}-labels.parquet"]
    (folder / f"{slot}.invitation").write_text(invitation)
    with (folder / f"{slot}.log").open("wb") as log:
        return subprocess.Popen(
            [*COTERIE, "party", "run", f"@{slot}.invitation", *files, *risks],
            cwd=folder,
            env=os.environ | {"COTERIE_HOME": str(folder / slot)},
            stdout=log,
            stderr=log,
        )


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
